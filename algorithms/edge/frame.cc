#include "algorithms/edge/frame.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"

namespace gossamer {
namespace {

constexpr uint32_t kMagic = 0x524d5347;  // "GSMR"
constexpr uint8_t kReplicaFlag = 1;
// The low bits of the wire format's byte; the others are reserved.
constexpr int kFormatBits = 5;
static_assert(kLastWireFormat < 1 << kFormatBits);

// The tail has a checksum of its own: the header's covers 60 bytes of fixed
// place, and the length of the run id must be known to be sound before it is
// used.
absl::Status DecodeHelloTail(std::span<const std::byte> tail, EdgeHeader& h) {
  // Window, length and checksum, with an empty run id.
  if (tail.size() < 6) return absl::DataLossError("hello is cut short");
  const size_t length = Get<uint8_t>(tail, 1);
  if (length > kMaxRunIdBytes || tail.size() != 6 + length) {
    return absl::DataLossError("hello has a run id of a wrong length");
  }
  if (Crc32c(tail.first(2 + length)) != Get<uint32_t>(tail, 2 + length)) {
    return absl::DataLossError("hello fails its checksum");
  }
  h.window = Get<uint8_t>(tail, 0);
  h.run_id.assign(reinterpret_cast<const char*>(tail.data()) + 2, length);
  return absl::OkStatus();
}

}  // namespace

// The bytes are pinned by tests/golden/wire/frame: peers of different builds
// talk to each other, so a change of any of them needs another version.
std::vector<std::byte> EncodeHeader(const EdgeHeader& h) {
  const bool hello = h.kind == FrameKind::kHello;
  const size_t tail = hello ? 6 + h.run_id.size() : 0;
  std::vector<std::byte> out(kEdgeHeaderBytes + tail);
  Put(out, 0, kMagic);
  Put(out, 4, kEdgeVersion);
  Put(out, 5, static_cast<uint8_t>(h.kind));
  Put(out, 6, static_cast<uint8_t>(h.format));
  Put(out, 7,
      hello ? static_cast<uint8_t>(h.replica ? kReplicaFlag : 0)
            : h.requested_format);
  Put(out, 8, h.epoch);
  Put(out, 16, h.peer_epoch);
  // A hello has no predecessor, so the basis takes that place and the header
  // keeps one size.
  Put(out, 24, hello ? h.basis : h.prev);
  Put(out, 32, h.to);
  Put(out, 40, h.ack);
  Put(out, 48, h.c);
  Put(out, 52, h.payload_bytes);
  Put(out, 56, h.layout);
  // Last, over all fields before it.  The payload is not covered: the transport
  // checks it, and a resend only rewrites the header (PROTOCOL.md 3).
  Put(out, 60, Crc32c(std::span(out).first(60)));
  if (hello) {
    const size_t n = h.run_id.size();
    Put(out, 64, h.window);
    Put(out, 65, static_cast<uint8_t>(n));
    std::memcpy(out.data() + 66, h.run_id.data(), n);
    Put(out, 66 + n, Crc32c(std::span(out).subspan(64, 2 + n)));
  }
  return out;
}

absl::StatusOr<EdgeHeader> DecodeHeader(std::span<const std::byte> bytes) {
  if (bytes.size() < kEdgeHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat("frame header of ", bytes.size(), " bytes"));
  }
  // Magic and version come before the checksum, so that a peer of another
  // release is named as such and not as a damaged frame.
  if (Get<uint32_t>(bytes, 0) != kMagic) {
    return absl::DataLossError("frame does not begin with GSMR");
  }
  if (Get<uint8_t>(bytes, 4) != kEdgeVersion) {
    return absl::UnimplementedError(
        absl::StrCat("edge protocol version ", Get<uint8_t>(bytes, 4),
                     " there, ", kEdgeVersion, " here: update the older peer"));
  }
  if (Crc32c(bytes.first(60)) != Get<uint32_t>(bytes, 60)) {
    return absl::DataLossError("frame header fails its checksum");
  }
  EdgeHeader h;
  const uint8_t kind = Get<uint8_t>(bytes, 5);
  if (kind < 1 || kind > 3) {
    return absl::DataLossError(absl::StrCat("unknown frame kind ", kind));
  }
  h.kind = static_cast<FrameKind>(kind);
  const uint8_t format = Get<uint8_t>(bytes, 6);
  if (format >> kFormatBits != 0) {
    return absl::DataLossError(
        absl::StrCat("reserved bits are set in the wire format ", format,
                     " of a frame header: both ends need the same version"));
  }
  h.format = static_cast<WireFormat>(format);
  h.epoch = Get<uint64_t>(bytes, 8);
  h.peer_epoch = Get<uint64_t>(bytes, 16);
  h.prev = Get<uint64_t>(bytes, 24);
  h.to = Get<uint64_t>(bytes, 32);
  h.ack = Get<uint64_t>(bytes, 40);
  h.c = Get<float>(bytes, 48);
  h.payload_bytes = Get<uint32_t>(bytes, 52);
  h.layout = Get<uint32_t>(bytes, 56);
  if (h.kind != FrameKind::kHello) {
    // Only a hello has a tail.
    if (bytes.size() != kEdgeHeaderBytes) {
      return absl::DataLossError("bytes after the frame header");
    }
    h.requested_format = Get<uint8_t>(bytes, 7);
    return h;
  }
  h.basis = std::exchange(h.prev, 0);
  h.replica = (Get<uint8_t>(bytes, 7) & kReplicaFlag) != 0;
  absl::Status tail = DecodeHelloTail(bytes.subspan(kEdgeHeaderBytes), h);
  if (!tail.ok()) return tail;
  return h;
}

}  // namespace gossamer
