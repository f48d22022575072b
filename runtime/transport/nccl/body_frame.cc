#include "runtime/transport/nccl/body_frame.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "algorithms/base/little_endian.h"
#include "runtime/transport/nccl/nccl_api.h"

namespace gossamer {

std::vector<std::byte> EncodeBodyFrame(const BodyFrame& frame) {
  std::vector<std::byte> bytes(kBodyFrameBytes + frame.rest.size());
  Put(bytes, 0, static_cast<uint8_t>(frame.kind));
  Put(bytes, 1, static_cast<uint8_t>(frame.channel));
  Put(bytes, 4, frame.size);
  Put(bytes, 8, frame.key);
  Put(bytes, 16, frame.exchange);
  Put(bytes, 24, frame.ack);
  std::ranges::copy(frame.rest.bytes(), bytes.begin() + kBodyFrameBytes);
  return bytes;
}

absl::StatusOr<BodyFrame> DecodeBodyFrame(const SharedBytes& bytes) {
  const std::span<const std::byte> in = bytes.bytes();
  if (in.size() < kBodyFrameBytes) {
    return absl::DataLossError(
        absl::StrCat("a frame of the NCCL transport of ", in.size(), " bytes"));
  }
  const auto kind = Get<uint8_t>(in, 0);
  if (kind < static_cast<uint8_t>(BodyKind::kOffer) ||
      kind > static_cast<uint8_t>(BodyKind::kId)) {
    return absl::DataLossError(
        absl::StrCat("a frame of the NCCL transport of kind ", kind));
  }
  BodyFrame frame;
  frame.kind = static_cast<BodyKind>(kind);
  frame.channel = static_cast<Channel>(Get<uint8_t>(in, 1));
  frame.size = Get<uint32_t>(in, 4);
  frame.key = Get<uint64_t>(in, 8);
  frame.exchange = Get<uint64_t>(in, 16);
  frame.ack = Get<uint64_t>(in, 24);
  // Bodies of edges alone are offered.
  if (frame.kind == BodyKind::kOffer &&
      (frame.channel != Channel::kEdge || frame.exchange == 0 ||
       frame.size == 0)) {
    return absl::DataLossError("an offer of the NCCL transport of nothing");
  }
  if (frame.kind == BodyKind::kId &&
      in.size() != kBodyFrameBytes + NcclUniqueId().size()) {
    return absl::DataLossError("a unique id of NCCL of the wrong size");
  }
  // The rest shares the frame's memory.
  auto owner = std::make_shared<const SharedBytes>(bytes);
  frame.rest = SharedBytes(in.subspan(kBodyFrameBytes), std::move(owner));
  return frame;
}

}  // namespace gossamer
