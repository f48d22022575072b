// A host's only network device.  Packets that the host's kernel sends come out
// of a file descriptor; packets that are written there reach the host.
//
// This header knows nothing of other hosts, links or time.

#ifndef GOSSAMER_RUNTIME_LAB_TUN_DEVICE_H_
#define GOSSAMER_RUNTIME_LAB_TUN_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/file_descriptor.h"

namespace gossamer {

struct TunSpec {
  std::string address;  // "10.77.0.1", in a network of 65,534 hosts
  uint32_t mtu = 1500;
  // The most bytes that TCP may hand over in one piece, which is split into
  // packets later.  At most the MTU: only packets.
  uint32_t burst_bytes = 0;
  std::string path = "/dev/net/tun";  // of the driver
};

// Makes the device "lab0" in the network of the calling thread, with its
// address and route, and brings it and `lo` up.  Frames are a virtio_net_hdr
// (10 bytes) and an IPv4 packet; reads do not block.  The device lives as long
// as the descriptor.  Errors say what to do about the driver.
absl::StatusOr<FileDescriptor> MakeTunDevice(const TunSpec& spec);

// Lets TCP in the network of the calling thread fill long fat links:
//
//   net.ipv4.tcp_rmem = 4096 131072 67108864
//   net.ipv4.tcp_wmem = 4096 65536 67108864
//   net.ipv4.tcp_slow_start_after_idle = 0
absl::Status TuneTcp();

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_TUN_DEVICE_H_
