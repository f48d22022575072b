// Frames cut into chunks come out as they went in, and a damaged, forged or
// oversized chunk is refused.

#include "runtime/transport/grpc/chunking.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/base/rng.h"
#include "gtest/gtest.h"
#include "runtime/transport/grpc/hello.h"

namespace gossamer {
namespace chunking_test {

using ByteVector = std::vector<std::byte>;

constexpr size_t kMaxBody = 10'000;

ByteVector Bytes(size_t n, uint64_t seed) {
  ByteVector bytes(n);
  for (size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<std::byte>(RngKey(seed).Bits(i));
  }
  return bytes;
}

std::vector<ByteVector> Cut(const Frame& frame, size_t chunk_bytes,
                            Channel channel = Channel::kState) {
  FrameChunker chunker(channel, frame, chunk_bytes);
  std::vector<ByteVector> chunks;
  while (!chunker.done()) {
    const Chunk chunk = chunker.Next();
    ByteVector& bytes = chunks.emplace_back();
    for (const auto part : {chunk.header(), chunk.head, chunk.body}) {
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
  }
  return chunks;
}

Frame MakeFrame(size_t head, size_t body) {
  return {SharedBytes::FromVector(Bytes(head, 1)),
          SharedBytes::FromVector(Bytes(body, 2))};
}

// Feeds a chunk in pieces of at most `piece` bytes, empty ones between.
absl::Status Feed(FrameAssembler& assembler, const ByteVector& chunk,
                  size_t piece, std::optional<ReceivedFrame>* frame) {
  std::vector<std::span<const std::byte>> pieces;
  for (size_t i = 0; i < chunk.size(); i += piece) {
    pieces.push_back(
        std::span(chunk).subspan(i, std::min(piece, chunk.size() - i)));
    pieces.emplace_back();
  }
  return assembler.Add(pieces, frame);
}

TEST(ChunkingTest, FramesUnderWayShareABudget) {
  const auto budget = std::make_shared<ByteBudget>(1500 + 2 * kHeldOverhead);
  FrameAssembler one(kMaxBody, budget);
  const std::vector<ByteVector> chunks = Cut(MakeFrame(10, 1000), 300);
  std::optional<ReceivedFrame> frame;
  ASSERT_TRUE(Feed(one, chunks[0], 64, &frame).ok());
  EXPECT_EQ(budget->used(), 1010u + kHeldOverhead);
  EXPECT_EQ(one.lacks(), 0u);
  {
    FrameAssembler two(kMaxBody, budget);
    EXPECT_TRUE(absl::IsResourceExhausted(Feed(two, chunks[0], 64, &frame)));
    EXPECT_EQ(two.lacks(), 1010u + kHeldOverhead);
    FrameAssembler three(kMaxBody, budget);
    EXPECT_TRUE(Feed(three, Cut(MakeFrame(0, 490), 100)[0], 64, &frame).ok());
    EXPECT_EQ(budget->used(), 1500u + 2 * kHeldOverhead);
    // The same chunk goes on once there is room.
    three.Drop();
    EXPECT_EQ(budget->used(), 1010u + kHeldOverhead);
    EXPECT_TRUE(Feed(two, Cut(MakeFrame(0, 490), 100)[0], 64, &frame).ok());
    EXPECT_EQ(two.lacks(), 0u);
  }
  // A destroyed assembler has given its bytes back.
  EXPECT_EQ(budget->used(), 1010u + kHeldOverhead);
  for (size_t i = 1; i < chunks.size(); ++i) {
    ASSERT_TRUE(Feed(one, chunks[i], 64, &frame).ok());
  }
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(budget->used(), 0u);
}

TEST(ChunkingTest, FramesComeOutAsTheyWentIn) {
  for (size_t head : {0u, 1u, 64u, 4096u}) {
    for (size_t body : {0u, 1u, 99u, 100u, 101u, 1000u, 10'000u}) {
      const Frame frame = MakeFrame(head, body);
      for (size_t piece : {1u, 7u, 5000u}) {
        FrameAssembler assembler(kMaxBody);
        std::optional<ReceivedFrame> out;
        const std::vector<ByteVector> chunks = Cut(frame, 100);
        EXPECT_EQ(chunks.size(), std::max<size_t>(1, (body + 99) / 100));
        for (size_t i = 0; i < chunks.size(); ++i) {
          ASSERT_FALSE(out.has_value());
          ASSERT_TRUE(Feed(assembler, chunks[i], piece, &out).ok());
        }
        ASSERT_TRUE(out.has_value());
        EXPECT_EQ(out->channel, Channel::kState);
        EXPECT_TRUE(
            std::ranges::equal(out->frame.head.bytes(), frame.head.bytes()));
        EXPECT_TRUE(
            std::ranges::equal(out->frame.body.bytes(), frame.body.bytes()));
      }
    }
  }
}

TEST(ChunkingTest, OneAssemblerTakesManyFrames) {
  FrameAssembler assembler(kMaxBody);
  for (size_t n = 0; n < 50; ++n) {
    std::optional<ReceivedFrame> out;
    for (const ByteVector& chunk : Cut(MakeFrame(n, 37 * n), 100)) {
      ASSERT_TRUE(Feed(assembler, chunk, 64, &out).ok());
    }
    ASSERT_TRUE(out.has_value());
    EXPECT_EQ(out->frame.body.size(), 37 * n);
  }
}

TEST(ChunkingTest, EveryFlippedBitIsFound) {
  const std::vector<ByteVector> chunks = Cut(MakeFrame(5, 30), 20);
  ASSERT_EQ(chunks.size(), 2u);
  for (size_t bit = 0; bit < 8 * chunks[0].size(); ++bit) {
    ByteVector bad = chunks[0];
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    FrameAssembler assembler(kMaxBody);
    std::optional<ReceivedFrame> out;
    EXPECT_TRUE(absl::IsDataLoss(Feed(assembler, bad, 64, &out))) << bit;
    EXPECT_FALSE(out.has_value());
  }
}

TEST(ChunkingTest, EveryTruncationAndEveryExtraByteIsFound) {
  const ByteVector whole = Cut(MakeFrame(5, 30), 100)[0];
  for (size_t n = 0; n < whole.size(); ++n) {
    FrameAssembler assembler(kMaxBody);
    std::optional<ReceivedFrame> out;
    const ByteVector cut(whole.begin(), whole.begin() + n);
    EXPECT_TRUE(absl::IsDataLoss(Feed(assembler, cut, 64, &out))) << n;
  }
  ByteVector longer = whole;
  longer.push_back(std::byte{0});
  FrameAssembler assembler(kMaxBody);
  std::optional<ReceivedFrame> out;
  EXPECT_TRUE(absl::IsDataLoss(Feed(assembler, longer, 64, &out)));
}

TEST(ChunkingTest, ChunksOutOfOrderAreRefused) {
  const std::vector<ByteVector> chunks = Cut(MakeFrame(5, 250), 100);
  const auto feed = [&](std::vector<int> order) {
    FrameAssembler assembler(kMaxBody);
    absl::Status last;
    for (int i : order) {
      EXPECT_TRUE(last.ok());
      std::optional<ReceivedFrame> out;
      last = Feed(assembler, chunks[i], 64, &out);
    }
    return last;
  };
  EXPECT_TRUE(feed({0, 1, 2}).ok());
  EXPECT_TRUE(absl::IsDataLoss(feed({1}))) << "begins in the middle";
  EXPECT_TRUE(absl::IsDataLoss(feed({0, 0}))) << "begins twice";
  EXPECT_TRUE(absl::IsDataLoss(feed({0, 2}))) << "leaves one out";
}

// Makes a false chunk with a correct checksum.
ByteVector Forge(uint8_t channel, uint8_t flags, uint32_t length,
                 uint32_t head_size, uint64_t body_size, size_t payload) {
  ByteVector chunk(kFirstChunkHeaderBytes + payload);
  const auto put = [&](size_t at, auto value) {
    std::memcpy(&chunk[at], &value, sizeof value);
  };
  put(0, channel);
  put(1, flags);
  put(4, length);
  put(12, head_size);
  put(16, body_size);
  const auto all = std::span<const std::byte>(chunk);
  put(8, ExtendCrc32c(Crc32c(all.first(8)), all.subspan(12)));
  return chunk;
}

TEST(ChunkingTest, LiesWithCorrectChecksumsAreRefused) {
  const auto feed = [](const ByteVector& chunk) {
    FrameAssembler assembler(kMaxBody);
    std::optional<ReceivedFrame> out;
    return Feed(assembler, chunk, 64, &out);
  };
  EXPECT_TRUE(feed(Forge(0, 3, 20, 0, 20, 20)).ok());
  EXPECT_TRUE(feed(Forge(5, 3, 20, 0, 20, 20)).ok());
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(6, 3, 20, 0, 20, 20)))) << "channel";
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(0, 7, 20, 0, 20, 20)))) << "flags";
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(0, 1, 20, 0, 20, 20)))) << "not last";
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(0, 1, 0, 0, 20, 0)))) << "empty";
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(0, 3, 20, 0, 21, 20)))) << "last";
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(0, 3, 21, 0, 21, 20)))) << "length";
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(0, 3, 20, 0, 10, 20)))) << "too much";
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(0, 1, 20, 4097, 0, 20)))) << "head";
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(0, 1, 20, 0, kMaxBody + 1, 20))));
  EXPECT_TRUE(absl::IsDataLoss(feed(Forge(0, 1, 20, ~0u, ~uint64_t{0}, 20))))
      << "nothing is allocated from such a length";
}

// A sanitizer would end the process.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ChunkingTest, AFrameForWhichThereIsNoMemoryIsRefused) {
  FrameAssembler assembler(SIZE_MAX);
  ByteVector chunk = Cut(MakeFrame(0, 100), 50)[0];
  Put(chunk, 16, uint64_t{1} << 60);
  Put(chunk, 8,
      ExtendCrc32c(Crc32c(std::span(chunk).first(8)),
                   std::span(chunk).subspan(kChunkHeaderBytes)));
  std::optional<ReceivedFrame> frame;
  const absl::Status added = Feed(assembler, chunk, 1000, &frame);
  EXPECT_TRUE(absl::IsResourceExhausted(added)) << added;
  EXPECT_FALSE(frame.has_value());
}
#endif

TEST(ChunkingTest, RandomBytesNeverDoHarm) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    FrameAssembler assembler(kMaxBody);
    const std::vector<ByteVector> good = Cut(MakeFrame(9, 300), 100);
    for (int i = 0; i < 4; ++i) {
      const RngKey key = RngKey(seed).Fold(i);
      ByteVector chunk = good[i % good.size()];
      for (uint64_t k = key.Below(4, 0); k > 0; --k) {
        chunk[key.Below(chunk.size(), 2 * k)] =
            static_cast<std::byte>(key.Bits(2 * k + 1));
      }
      for (uint64_t k = key.Below(3, 1); k > 0; --k) chunk.pop_back();
      std::optional<ReceivedFrame> out;
      if (!Feed(assembler, chunk, 16, &out).ok()) break;
    }
  }
}

TransportHello SomeHello() {
  return {
      .self = PeerId{3}, .target = PeerId{4}, .attempt = 5, .run_id = "run"};
}

TEST(HelloTest, ComesOutAsItWentIn) {
  const auto hello = DecodeHello(EncodeHello(SomeHello()));
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->self, PeerId{3});
  EXPECT_EQ(hello->target, PeerId{4});
  EXPECT_EQ(hello->attempt, 5u);
  EXPECT_EQ(hello->run_id, "run");
  EXPECT_TRUE(CheckHello(*hello, PeerId{4}, "run").ok());
}

TEST(HelloTest, DamageIsFound) {
  const ByteVector good = EncodeHello(SomeHello());
  for (size_t i = 0; i < good.size(); ++i) {
    ByteVector bad = good;
    bad[i] ^= std::byte{0x10};
    EXPECT_FALSE(DecodeHello(bad).ok()) << i;
    EXPECT_FALSE(DecodeHello(std::span(good).first(i)).ok()) << i;
  }
}

TEST(HelloTest, AHelloOfAnotherRunPeerOrVersionIsRefused) {
  const auto verdict = [](auto change) {
    TransportHello hello = SomeHello();
    change(hello);
    return CheckHello(hello, PeerId{4}, "run").status();
  };
  EXPECT_TRUE(verdict([](TransportHello&) {}).ok());
  for (const absl::Status& status :
       {verdict([](TransportHello& h) {
          h.versions = {9, 9};
        }),
        verdict([](TransportHello& h) { h.run_id = "other"; }),
        verdict([](TransportHello& h) { h.target = PeerId{9}; }),
        verdict([](TransportHello& h) { h.self = PeerId{4}; }),
        verdict([](TransportHello& h) { h.self = PeerId{0}; })}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
}

}  // namespace chunking_test
}  // namespace gossamer
