// The bytes of edges and all-reduces in this version, and the answers to other
// versions.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/collective/collective_message.h"
#include "algorithms/edge/frame.h"
#include "algorithms/edge/saved_edge.h"
#include "gmock/gmock.h"
#include "tests/fuzz/golden_wire.h"

namespace gossamer {
namespace golden_edge_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

EdgeHeader Header(FrameKind kind) {
  EdgeHeader h;
  h.kind = kind;
  h.format = WireFormat::kInt4;
  h.epoch = 0x1122334455667788;
  h.peer_epoch = 0x99aabbccddeeff00;
  h.to = 513;
  h.ack = 257;
  h.c = 0.25f;
  h.layout = 0xfeedbeef;
  if (kind == FrameKind::kHello) {
    h.basis = 5;
    h.replica = true;
    h.window = 2;
    h.run_id = "run";
  } else {
    h.prev = 256;
    h.requested_format = 3;
    h.payload_bytes = kind == FrameKind::kPayload ? 1000 : 0;
  }
  return h;
}

TEST(GoldenEdgeTest, FramesAndHeadsAreAsTheyWere) {
  ExpectGoldenWire("frame/hello", EncodeHeader(Header(FrameKind::kHello)));
  ExpectGoldenWire("frame/payload", EncodeHeader(Header(FrameKind::kPayload)));
  ExpectGoldenWire("frame/skip", EncodeHeader(Header(FrameKind::kSkip)));
  ExpectGoldenWire("collective/head",
                   EncodeCollectiveHead(
                       {.operation = 0x901, .step = 3, .body_bytes = 1000}));
  SavedEdge saved;
  saved.codec_state.codec = "innov-int4";
  ExpectGoldenWire("saved-edge/small", EncodeSavedEdge(saved));
}

TEST(GoldenEdgeTest, AnotherVersionIsRefusedWithBothNumbers) {
  for (const int step : {-1, 1}) {
    std::vector<std::byte> frame = EncodeHeader(Header(FrameKind::kSkip));
    Put<uint8_t>(frame, 4, static_cast<uint8_t>(kEdgeVersion + step));
    Put<uint32_t>(frame, 60, Crc32c(std::span(frame).first(60)));
    EXPECT_THAT(std::string(DecodeHeader(frame).status().message()),
                AllOf(HasSubstr(absl::StrCat(kEdgeVersion + step, " there")),
                      HasSubstr(absl::StrCat(kEdgeVersion, " here"))));

    std::vector<std::byte> head = EncodeCollectiveHead({});
    const uint32_t other = kCollectiveVersion + static_cast<uint32_t>(step);
    Put<uint32_t>(head, 4, other);
    EXPECT_THAT(std::string(DecodeCollectiveHead(head, 0).status().message()),
                AllOf(HasSubstr(absl::StrCat(other, " there")),
                      HasSubstr(absl::StrCat(kCollectiveVersion, " here"))));
  }
}

}  // namespace golden_edge_test
}  // namespace gossamer
