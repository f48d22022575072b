// The head of a collective's message: 32 bytes, little-endian; the body travels
// beside it.
//
//   0 magic "GSMC"  4 version (4 bytes)  8 operation  16 step (4 bytes)
//   20 length of the body (8 bytes)  28 CRC-32C of bytes 0 to 27
//
// This header knows nothing of what a step does or of who sent it.

#ifndef GOSSAMER_ALGORITHMS_COLLECTIVE_COLLECTIVE_MESSAGE_H_
#define GOSSAMER_ALGORITHMS_COLLECTIVE_COLLECTIVE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

inline constexpr uint32_t kCollectiveVersion = 3;
// Instead of a step's number: this rank has ended its last operation.  Such a
// message is called a FIN.
inline constexpr uint32_t kFin = ~uint32_t{0};
// These also stand instead of a step's number, for an operation that NCCL sums
// (sum_agreement.h): this rank has begun it; lacks its sum and all later ones;
// the body is its sum; the body is the unique id of NCCL's communicator.
inline constexpr uint32_t kNcclBegun = kFin - 1;
inline constexpr uint32_t kNcclFailed = kFin - 2;
inline constexpr uint32_t kNcclSum = kFin - 3;
inline constexpr uint32_t kNcclUniqueId = kFin - 4;
constexpr bool IsNcclMessage(uint32_t step) {
  return step >= kNcclUniqueId && step < kFin;
}
inline constexpr size_t kCollectiveHeadBytes = 32;

// The fields of a head that differ from message to message.
struct CollectiveHead {
  uint64_t operation = 0;  // its number, which rises with the run
  uint32_t step = 0;       // of AllReduce, or of a vote
  uint64_t body_bytes = 0;
  friend bool operator==(const CollectiveHead&,
                         const CollectiveHead&) = default;
};

std::vector<std::byte> EncodeCollectiveHead(const CollectiveHead& head);
// Reads the head of a message whose body has `body_bytes` bytes.  kDataLoss if
// these are not the bytes of a head or it does not belong to such a body;
// kUnimplemented, naming both, if its version is not this one.
absl::StatusOr<CollectiveHead> DecodeCollectiveHead(
    std::span<const std::byte> bytes, size_t body_bytes);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COLLECTIVE_COLLECTIVE_MESSAGE_H_
