// The bytes of the transport in this version, and the answers to other
// versions.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/neighborhood/refusals.h"
#include "runtime/transport/grpc/chunking.h"
#include "runtime/transport/grpc/hello.h"
#include "tests/fuzz/golden_wire.h"

namespace gossamer {
namespace golden_transport_test {

using ::testing::HasSubstr;

TransportHello Hello() {
  return {.self = {2}, .target = {1}, .attempt = 7, .lane = 3, .run_id = "run"};
}

TEST(GoldenTransportTest, HelloAndChunksAreAsTheyWere) {
  ExpectGoldenWire("transport-hello/hello-2-3", EncodeHello(Hello()));
  TransportHello older = Hello();
  older.versions = {2, 2};
  ExpectGoldenWire("transport-hello/hello", EncodeHello(older));
  std::vector<std::byte> messages;
  FrameChunker chunker(
      Channel::kCollective,
      {SharedBytes::FromVector(BytesOf("head")),
       SharedBytes::FromVector(BytesOf("a body in two chunks"))},
      16, 2);
  while (!chunker.done()) {
    const Chunk chunk = chunker.Next();
    std::vector<std::byte> message(chunk.header().begin(),
                                   chunk.header().end());
    message.insert(message.end(), chunk.head.begin(), chunk.head.end());
    message.insert(message.end(), chunk.body.begin(), chunk.body.end());
    messages.push_back(std::byte{0});
    AppendPiece(message, messages);
  }
  ExpectGoldenWire("chunks/two", messages);
  FrameChunker notice(Channel::kNotice, {EncodeNotice("why"), SharedBytes()},
                      16);
  const Chunk chunk = notice.Next();
  std::vector<std::byte> message(chunk.header().begin(), chunk.header().end());
  message.insert(message.end(), chunk.head.begin(), chunk.head.end());
  messages = {std::byte{0}};
  AppendPiece(message, messages);
  ExpectGoldenWire("chunks/notice", messages);
}

absl::StatusOr<uint32_t> Greet(VersionRange other, VersionRange own) {
  TransportHello hello = Hello();
  hello.versions = other;
  const auto read = DecodeHello(EncodeHello(hello));
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->versions, other);
  return CheckHello(*read, PeerId{1}, "run", own);
}

TEST(GoldenTransportTest, TheNewestVersionInCommonIsSpoken) {
  EXPECT_EQ(Greet(kTransportVersions, kTransportVersions).value(),
            kTransportVersions.newest);
  EXPECT_EQ(Greet({2, 2}, kTransportVersions).value(), 2u);
  EXPECT_EQ(Greet({2, 4}, {3, 7}).value(), 4u);
  EXPECT_EQ(Greet({3, 7}, {2, 4}).value(), 4u);
  EXPECT_EQ(Greet({2, 9}, {4, 4}).value(), 4u);
}

TEST(GoldenTransportTest, WithoutOneInCommonBothAreNamed) {
  for (const auto& [other, own] :
       {std::pair{VersionRange{1, 2}, VersionRange{3, 5}},
        {VersionRange{3, 5}, VersionRange{1, 2}}}) {
    const absl::Status refused = Greet(other, own).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_THAT(refused.message(),
                HasSubstr(absl::StrCat("version ", other.Text(), " ")));
    EXPECT_THAT(refused.message(),
                HasSubstr(absl::StrCat("version ", own.Text(), ";")));
  }
}

// An end without a version, or one whose newest version is older than its
// oldest.
TEST(GoldenTransportTest, ImpossibleVersionsAreNoHello) {
  for (const VersionRange wrong : {VersionRange{0, 0}, {5, 4}}) {
    TransportHello hello = Hello();
    hello.versions = wrong;
    EXPECT_TRUE(absl::IsDataLoss(DecodeHello(EncodeHello(hello)).status()));
  }
}

}  // namespace golden_transport_test
}  // namespace gossamer
