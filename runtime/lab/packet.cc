#include "runtime/lab/packet.h"

#include <string.h>

namespace gossamer {
namespace {

constexpr size_t kMinIp = 20;
constexpr size_t kMinTcp = 20;
constexpr uint8_t kTcp = 6;

// Offsets in struct virtio_net_hdr, whose header linux/virtio_net.h is no C++:
// how the packet is to be split, and into pieces of which size.
constexpr size_t kSplitKind = 1;
constexpr size_t kSplitSize = 4;
constexpr uint8_t kNoSplit = 0;

// Returns the bytes of the IP and TCP headers; 0 if the packet has none.
size_t HeaderBytes(std::span<const uint8_t> ip) {
  const size_t ip_bytes = 4u * (ip[0] & 0x0f);
  // Only TCP hands over pieces of several packets (SetOffload).
  if (ip_bytes < kMinIp || ip[9] != kTcp || ip.size() < ip_bytes + kMinTcp) {
    return 0;
  }
  return ip_bytes + 4u * (ip[ip_bytes + 12] >> 4);
}

}  // namespace

std::optional<PacketInfo> InspectFrame(std::span<const uint8_t> frame) {
  if (frame.size() < kFrameHeader + kMinIp) return std::nullopt;
  const std::span<const uint8_t> ip = frame.subspan(kFrameHeader);
  // The switch carries IPv4 alone; a device may still say something by IPv6
  // before it is turned off.
  if (ip[0] >> 4 != 4) return std::nullopt;
  PacketInfo info = {
      .destination = static_cast<uint32_t>(ip[16]) << 24 |
                     static_cast<uint32_t>(ip[17]) << 16 |
                     static_cast<uint32_t>(ip[18]) << 8 | ip[19],
      .wire_bytes = ip.size(),
  };
  uint16_t piece;
  ::memcpy(&piece, frame.data() + kSplitSize, sizeof(piece));
  if (frame[kSplitKind] == kNoSplit || piece == 0) return info;
  const size_t headers = HeaderBytes(ip);
  if (headers == 0 || headers >= ip.size()) return std::nullopt;
  const size_t payload = ip.size() - headers;
  // On a wire every packet of the piece would have headers of its own.
  const size_t segments = (payload + piece - 1) / piece;
  info.wire_bytes = payload + segments * headers;
  return info;
}

}  // namespace gossamer
