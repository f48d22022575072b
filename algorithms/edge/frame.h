// Frames of an edge as bytes: a header of 64 bytes, little-endian (PROTOCOL.md
// 3).
//
//   0 magic "GSMR"  4 version  5 kind  6 wire format  7 flags
//   8 epoch  16 peer_epoch  24 prev  32 to  40 ack  48 c (float32)
//   52 payload length  56 layout fingerprint  60 CRC-32C of bytes 0 to 59
//
// The upper three bits of byte 6 are reserved and 0.  A hello has its basis in
// `prev`, bit 0 of `flags` set if the codec keeps replicas, and after the
// header: window (1 byte), length of the run id (1 byte), run id, CRC-32C of
// these.  In other frames `flags` is the wire format that the sender requests
// of the other end, 0 for none.  The payload of a payload frame travels beside
// the header, so a resend changes the header only.
//
// This header knows nothing of what an edge does with a frame.

#ifndef GOSSAMER_ALGORITHMS_EDGE_FRAME_H_
#define GOSSAMER_ALGORITHMS_EDGE_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/compress/codec.h"
#include "algorithms/edge/edge_state.h"

namespace gossamer {

inline constexpr uint8_t kEdgeVersion = 1;
inline constexpr size_t kEdgeHeaderBytes = 64;
inline constexpr size_t kMaxRunIdBytes = 128;

// The content of a header of any kind; PROTOCOL.md 3 has the fields' meaning.
struct EdgeHeader {
  FrameKind kind = FrameKind::kSkip;
  WireFormat format = WireFormat::kDenseF32;
  uint64_t epoch = 0;
  uint64_t peer_epoch = 0;
  uint64_t prev = 0;
  uint64_t to = 0;
  uint64_t ack = 0;
  float c = 0;                   // payload: γ·w
  uint8_t requested_format = 0;  // not in a hello: a WireFormat, 0: none
  uint32_t payload_bytes = 0;
  uint32_t layout = 0;  // fingerprint, folded to 32 bits
  // Hello only.
  uint64_t basis = 0;
  bool replica = false;
  uint8_t window = 1;
  std::string run_id;
};

// The layout's fingerprint as headers carry it.
constexpr uint32_t FoldFingerprint(uint64_t fingerprint) {
  return static_cast<uint32_t>(fingerprint ^ fingerprint >> 32);
}

std::vector<std::byte> EncodeHeader(const EdgeHeader& header);
// kDataLoss if these are not the bytes of a header; kUnimplemented, naming
// both, if its version is not this one.
absl::StatusOr<EdgeHeader> DecodeHeader(std::span<const std::byte> bytes);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_EDGE_FRAME_H_
