// Frames between two NCCL transports, on Channel::kBody: little-endian.
//
//   0 kind  1 channel  2 zero (2 bytes)  4 body size  8 key  16 exchange
//   24 ack
//
// and after these 32 bytes the head of the frame that is offered, or the unique
// id.  This header knows nothing of what follows from a frame.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_BODY_FRAME_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_BODY_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/shared_bytes.h"
#include "runtime/transport/transport.h"

namespace gossamer {

enum class BodyKind : uint8_t {
  kOffer = 1,    // the head of a frame; its body is to come
  kAgree = 2,    // both ends have offered this exchange: both launch it
  kDecline = 3,  // the bodies of this exchange travel by gRPC
  kBody = 4,     // a body by gRPC, beside this frame
  kBroken = 5,   // the sender has given the communicator up
  kId = 6        // the unique id of the communicator
};

inline constexpr size_t kBodyFrameBytes = 32;

struct BodyFrame {
  BodyKind kind = BodyKind::kOffer;
  Channel channel = Channel::kEdge;  // of the offered frame
  uint32_t size = 0;      // of the body, bytes; of an agreement its number
  uint64_t key = 0;       // NcclPlan::key
  uint64_t exchange = 0;  // Frame::exchange
  // All bodies that the receiver of this frame has offered up to this exchange
  // are here.
  uint64_t ack = 0;
  SharedBytes rest = {};  // after the fields
};

std::vector<std::byte> EncodeBodyFrame(const BodyFrame& frame);
// kDataLoss if these are not the bytes of one.
absl::StatusOr<BodyFrame> DecodeBodyFrame(const SharedBytes& bytes);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_BODY_FRAME_H_
