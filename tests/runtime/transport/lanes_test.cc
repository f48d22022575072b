// Bodies spread over several streams come out in order, within a budget of
// waiting parts.

#include "runtime/transport/grpc/lanes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/rng.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace lanes_test {

constexpr size_t kMaxBody = 1 << 20;

std::vector<std::byte> Bytes(size_t n, uint64_t seed) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<std::byte>(RngKey(seed).Bits(i));
  }
  return bytes;
}

Frame MakeFrame(size_t head, size_t body, uint64_t seed = 1) {
  return {SharedBytes::FromVector(Bytes(head, seed)),
          SharedBytes::FromVector(Bytes(body, seed + 1))};
}

bool Same(const Frame& a, const Frame& b) {
  return std::ranges::equal(a.head.bytes(), b.head.bytes()) &&
         std::ranges::equal(a.body.bytes(), b.body.bytes());
}

ReceivedFrame Part(Frame frame, size_t parts,
                   Channel channel = Channel::kEdge) {
  return {.channel = channel, .frame = std::move(frame), .parts = parts};
}

std::shared_ptr<ByteBudget> Budget(size_t bytes = size_t{64} << 20) {
  return std::make_shared<ByteBudget>(bytes);
}

TEST(LanesTest, PartsAreTheBodyInOrder) {
  for (const size_t lanes : {1u, 2u, 3u, 8u}) {
    for (const size_t body : {0u, 1u, 4096u, 5000u, 300'001u}) {
      const Frame frame = MakeFrame(12, body);
      const std::vector<Frame> parts = SplitFrame(frame, lanes);
      ASSERT_EQ(parts.size(), lanes);
      size_t at = 0;
      for (size_t i = 0; i < lanes; ++i) {
        EXPECT_EQ(parts[i].head.size(), i == 0 ? 12u : 0u);
        // The parts reference the body: nothing was copied.
        EXPECT_EQ(parts[i].body.bytes().data(), frame.body.bytes().data() + at);
        at += parts[i].body.size();
      }
      EXPECT_EQ(at, body);
    }
  }
}

// Whole frames, and frames in two to four parts, whose lanes deliver in an
// order that a draw chooses.
TEST(LanesTest, FramesComeOutInTheOrderInWhichTheyWereSent) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RngKey key(seed);
    std::vector<Frame> sent;
    std::array<std::deque<ReceivedFrame>, kMaxLanes> under_way;
    for (uint64_t i = 0; i < 12; ++i) {
      const Frame& frame =
          sent.emplace_back(MakeFrame(i % 5, 9000 * key.Below(4, i), i));
      const size_t parts = 1 + key.Fold("parts").Below(4, i);
      if (parts == 1) {
        under_way[0].push_back(Part(frame, 0));
        continue;
      }
      const std::vector<Frame> split = SplitFrame(frame, parts);
      for (size_t lane = 0; lane < parts; ++lane) {
        under_way[lane].push_back(Part(split[lane], parts));
      }
    }
    const auto budget = Budget();
    LaneJoiner joiner(kMaxBody, budget);
    std::vector<ReceivedFrame> out;
    for (uint64_t draw = 0; draw < 2000; ++draw) {
      const size_t lane = key.Fold("lane").Below(4, draw);
      if (under_way[lane].empty()) continue;
      ReceivedFrame next = std::move(under_way[lane].front());
      under_way[lane].pop_front();
      ASSERT_TRUE(joiner.Add(lane, std::move(next), &out).ok());
    }
    ASSERT_EQ(out.size(), sent.size()) << seed;
    for (size_t i = 0; i < sent.size(); ++i) {
      EXPECT_TRUE(Same(out[i].frame, sent[i])) << seed << " " << i;
      EXPECT_EQ(out[i].parts, 0u);
    }
    EXPECT_EQ(budget->used(), 0u);
  }
}

TEST(LanesTest, APartThatNoPeerSendsIsRefused) {
  const auto refused = [](size_t lane, ReceivedFrame part) {
    LaneJoiner joiner(kMaxBody, Budget());
    std::vector<ReceivedFrame> out;
    const bool loss = absl::IsDataLoss(joiner.Add(lane, std::move(part), &out));
    EXPECT_TRUE(out.empty());
    return loss;
  };
  EXPECT_TRUE(refused(1, Part(MakeFrame(0, 10), 0))) << "whole, on lane 1";
  EXPECT_TRUE(refused(2, Part(MakeFrame(0, 10), 2))) << "lane 2 of two";
  EXPECT_TRUE(refused(0, Part(MakeFrame(0, 10), 1))) << "one part";
  EXPECT_TRUE(refused(0, Part(MakeFrame(0, 10), kMaxLanes + 1)));
  EXPECT_TRUE(refused(1, Part(MakeFrame(4, 10), 2))) << "a second head";
}

TEST(LanesTest, PartsOfDifferentFramesAreRefused) {
  const auto joined = [](ReceivedFrame first, ReceivedFrame second) {
    LaneJoiner joiner(100, Budget());
    std::vector<ReceivedFrame> out;
    EXPECT_TRUE(joiner.Add(1, std::move(second), &out).ok());
    return joiner.Add(0, std::move(first), &out);
  };
  EXPECT_TRUE(
      joined(Part(MakeFrame(0, 40), 2), Part(MakeFrame(0, 60), 2)).ok());
  EXPECT_TRUE(absl::IsDataLoss(
      joined(Part(MakeFrame(0, 40), 2), Part(MakeFrame(0, 61), 2))))
      << "together over the limit";
  EXPECT_TRUE(absl::IsDataLoss(
      joined(Part(MakeFrame(0, 40), 2), Part(MakeFrame(0, 40), 3))));
  EXPECT_TRUE(absl::IsDataLoss(joined(
      Part(MakeFrame(0, 40), 2), Part(MakeFrame(0, 40), 2, Channel::kState))));
}

// A peer that never sends the parts of lane 0 cannot fill the memory.
TEST(LanesTest, WaitingPartsAreWithinTheBudget) {
  const auto budget = Budget(3 * (300 + kHeldOverhead) + 100);
  {
    LaneJoiner joiner(kMaxBody, budget);
    std::vector<ReceivedFrame> out;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(joiner.Add(1, Part(MakeFrame(0, 300), 2), &out).ok());
    }
    EXPECT_TRUE(absl::IsResourceExhausted(
        joiner.Add(1, Part(MakeFrame(0, 300), 2), &out)));
    EXPECT_TRUE(out.empty());
  }
  EXPECT_EQ(budget->used(), 0u);
}

// Parts without bytes cannot either: they are objects too.
TEST(LanesTest, PartsWithoutBytesAreWithinTheBudget) {
  constexpr size_t kMax = size_t{1} << 20;
  const auto refused_after = [](size_t lane, size_t parts) {
    const auto budget = Budget(kMax);
    LaneJoiner joiner(kMaxBody, budget);
    std::vector<ReceivedFrame> out;
    // The front frame waits for its lane 1; whole frames may wait behind it.
    EXPECT_TRUE(joiner.Add(0, Part(Frame(), 3), &out).ok());
    size_t taken = 0;
    while (taken < kMax && joiner.Add(lane, Part(Frame(), parts), &out).ok()) {
      ++taken;
    }
    EXPECT_TRUE(out.empty());
    return taken;
  };
  EXPECT_LT(refused_after(2, 3), kMax / sizeof(ReceivedFrame));
  EXPECT_LT(refused_after(0, 3), kMax / sizeof(ReceivedFrame));
  EXPECT_LT(refused_after(0, 0), kMax / sizeof(ReceivedFrame));
}

// Later parts do not matter: no peer holds a part for ever.
TEST(LanesTest, KnowsSinceWhenItsOldestPartWaits) {
  LaneJoiner joiner(kMaxBody, Budget());
  EXPECT_EQ(joiner.waits_since(), absl::InfiniteFuture());
  std::vector<ReceivedFrame> complete;
  const auto add = [&](size_t lane, size_t parts, int second) {
    ReceivedFrame part = Part(MakeFrame(0, 100), parts);
    part.came = absl::FromUnixSeconds(second);
    ASSERT_TRUE(joiner.Add(lane, std::move(part), &complete).ok());
  };
  add(/*lane=*/3, /*parts=*/4, 10);
  add(/*lane=*/0, /*parts=*/0, 20);
  EXPECT_EQ(complete.size(), 1u);
  EXPECT_EQ(joiner.waits_since(), absl::FromUnixSeconds(10));
  add(/*lane=*/1, /*parts=*/2, 30);
  add(/*lane=*/0, /*parts=*/2, 40);
  EXPECT_EQ(complete.size(), 2u);
  EXPECT_EQ(joiner.waits_since(), absl::FromUnixSeconds(10));
  for (const size_t lane : {0u, 1u, 2u}) add(lane, /*parts=*/4, 50);
  EXPECT_EQ(complete.size(), 3u);
  EXPECT_EQ(joiner.waits_since(), absl::InfiniteFuture());
}

}  // namespace lanes_test
}  // namespace gossamer
