// The transport's bytes of this version, and what another version is told.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/transport/grpc/chunking.h"
#include "runtime/transport/grpc/hello.h"
#include "tests/fuzz/golden_wire.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

TransportHello Hello() {
  return {.self = {2}, .target = {1}, .attempt = 7, .lane = 3, .run_id = "run"};
}

TEST(GoldenTransportTest, HelloAndChunksAreAsTheyWere) {
  ExpectGoldenWire("transport-hello/hello", EncodeHello(Hello()));
  std::vector<std::byte> messages;
  FrameChunker chunker(Channel::kCollective,
                       {Payload::FromVector(BytesOf("head")),
                        Payload::FromVector(BytesOf("a body in two chunks"))},
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
}

TEST(GoldenTransportTest, AnotherVersionIsRefusedWithBothNumbers) {
  for (const uint32_t version :
       {kTransportVersion - 1, kTransportVersion + 1}) {
    TransportHello hello = Hello();
    hello.version = version;
    const auto read = DecodeHello(EncodeHello(hello));
    ASSERT_TRUE(read.ok()) << read.status();
    const absl::Status refused = CheckHello(*read, PeerId{1}, "run");
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_THAT(refused.message(),
                HasSubstr(absl::StrCat("version ", version, " ")));
    EXPECT_THAT(refused.message(),
                HasSubstr(absl::StrCat("version ", kTransportVersion)));
  }
}

}  // namespace
}  // namespace gossamer
