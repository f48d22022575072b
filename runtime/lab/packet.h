// Reads from a device's frame where it goes and what it weighs on a wire.
//
// This header knows nothing of links or devices.

#ifndef GOSSAMER_RUNTIME_LAB_PACKET_H_
#define GOSSAMER_RUNTIME_LAB_PACKET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace gossamer {

// The largest frame that a device hands over: struct virtio_net_hdr and 64 KiB.
inline constexpr size_t kFrameHeader = 10;
inline constexpr size_t kMaxFrameBytes = kFrameHeader + 65'536;

struct PacketInfo {
  uint32_t destination;  // in the host's byte order
  // The bytes of all IP packets that the frame is split into, headers included,
  // without Ethernet's framing.
  uint64_t wire_bytes;
};

// Returns nothing if the frame is not a whole IPv4 packet.
std::optional<PacketInfo> InspectFrame(std::span<const uint8_t> frame);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_PACKET_H_
