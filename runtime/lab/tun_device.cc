#include "runtime/lab/tun_device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

constexpr char kName[] = "lab0";
constexpr char kNetmask[] = "255.255.0.0";
// The most packets that wait for the switch, which has queues of its own.
constexpr int kDeviceQueue = 20'000;

absl::StatusOr<FileDescriptor> OpenTun(const std::string& path) {
  // The switch reads until nothing is left; a blocking read would stop all
  // other links.
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() >= 0) return fd;
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": ", ::strerror(errno),
      "; the lab's devices need it: modprobe tun, or start the container with "
      "--device /dev/net/tun"));
}

ifreq Request() {
  ifreq request = {};
  // One name serves all hosts: each device is in a network of its own.
  ::strncpy(request.ifr_name, kName, sizeof(request.ifr_name) - 1);
  return request;
}

absl::Status Control(int fd, unsigned long what, void* argument,
                     const char* name) {
  if (::ioctl(fd, what, argument) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("lab device: ", name));
}

void PutAddress(const std::string& text, sockaddr& to) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
  ::memcpy(&to, &address, sizeof(address));
}

absl::Status BringUp(int socket, ifreq request) {
  GOSSAMER_RETURN_IF_ERROR(
      Control(socket, SIOCGIFFLAGS, &request, "SIOCGIFFLAGS"));
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return Control(socket, SIOCSIFFLAGS, &request, "SIOCSIFFLAGS");
}

absl::Status BringLoopbackUp(int socket) {
  ifreq request = {};
  ::strcpy(request.ifr_name, "lo");
  return BringUp(socket, request);
}

// Sets IFLA_GSO_MAX_SIZE by RTM_NEWLINK; no ioctl can do it.
absl::Status LimitBursts(int index, uint32_t bytes) {
  const FileDescriptor netlink(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (netlink.get() < 0) return absl::ErrnoToStatus(errno, "netlink");
  struct {
    nlmsghdr header;
    ifinfomsg info;
    rtattr attribute;
    uint32_t bytes;
  } request = {};
  static_assert(sizeof(request) ==
                NLMSG_LENGTH(sizeof(ifinfomsg)) + RTA_LENGTH(sizeof(uint32_t)));
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = RTM_NEWLINK;
  // Without the acknowledgement an error would go unnoticed.
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  request.info.ifi_index = index;
  request.attribute.rta_type = IFLA_GSO_MAX_SIZE;
  request.attribute.rta_len = RTA_LENGTH(sizeof(uint32_t));
  request.bytes = bytes;
  if (::send(netlink.get(), &request, sizeof(request), 0) < 0) {
    return absl::ErrnoToStatus(errno, "netlink: send");
  }
  alignas(nlmsghdr) char answer[1024];
  const ssize_t got = ::recv(netlink.get(), answer, sizeof(answer), 0);
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) {
    return absl::InternalError("netlink: no answer");
  }
  nlmsgerr result;
  ::memcpy(&result, answer + NLMSG_HDRLEN, sizeof(result));
  if (result.error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(-result.error, "lab device: gso_max_size");
}

absl::Status WriteSetting(const std::string& name, const std::string& value) {
  const std::string path = "/proc/sys/net/" + name;
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || ::write(file.get(), value.data(), value.size()) !=
                            static_cast<ssize_t>(value.size())) {
    return absl::ErrnoToStatus(errno, path);
  }
  return absl::OkStatus();
}

absl::Status SetOffload(int device, bool bursts) {
  // Checksums are left out: nothing can damage a packet between two
  // descriptors.
  const unsigned long features =
      TUN_F_CSUM | (bursts ? static_cast<unsigned long>(TUN_F_TSO4) : 0ul);
  if (::ioctl(device, TUNSETOFFLOAD, features) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "lab device: TUNSETOFFLOAD");
}

absl::Status Configure(const TunSpec& spec, int socket) {
  ifreq request = Request();
  PutAddress(spec.address, request.ifr_addr);
  GOSSAMER_RETURN_IF_ERROR(
      Control(socket, SIOCSIFADDR, &request, "SIOCSIFADDR"));
  PutAddress(kNetmask, request.ifr_netmask);
  GOSSAMER_RETURN_IF_ERROR(
      Control(socket, SIOCSIFNETMASK, &request, "SIOCSIFNETMASK"));
  request.ifr_mtu = static_cast<int>(spec.mtu);
  GOSSAMER_RETURN_IF_ERROR(Control(socket, SIOCSIFMTU, &request, "SIOCSIFMTU"));
  request.ifr_qlen = kDeviceQueue;
  // A user namespace may not set it; the few hundred packets of other devices
  // must do there.
  Control(socket, SIOCSIFTXQLEN, &request, "SIOCSIFTXQLEN").IgnoreError();
  if (spec.burst_bytes > spec.mtu) {
    GOSSAMER_RETURN_IF_ERROR(
        Control(socket, SIOCGIFINDEX, &request, "SIOCGIFINDEX"));
    GOSSAMER_RETURN_IF_ERROR(
        LimitBursts(request.ifr_ifindex, spec.burst_bytes));
  }
  // The device comes up last, with its address and size: the kernel sends as
  // soon as it is up.
  return BringUp(socket, Request());
}

}  // namespace

absl::StatusOr<FileDescriptor> MakeTunDevice(const TunSpec& spec) {
  GOSSAMER_ASSIGN_OR_RETURN(FileDescriptor device, OpenTun(spec.path));
  ifreq request = Request();
  // IFF_VNET_HDR puts a virtio_net_hdr before each packet, which says how a
  // piece is to be split.
  request.ifr_flags = static_cast<short>(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR);
  GOSSAMER_RETURN_IF_ERROR(
      Control(device.get(), TUNSETIFF, &request, "TUNSETIFF"));
  GOSSAMER_RETURN_IF_ERROR(
      SetOffload(device.get(), spec.burst_bytes > spec.mtu));
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return absl::ErrnoToStatus(errno, "socket");
  // The switch carries only IPv4.  A kernel without IPv6 has nothing to turn
  // off.
  WriteSetting("ipv6/conf/all/disable_ipv6", "1").IgnoreError();
  GOSSAMER_RETURN_IF_ERROR(BringLoopbackUp(socket.get()));
  GOSSAMER_RETURN_IF_ERROR(Configure(spec, socket.get()));
  return device;
}

absl::Status TuneTcp() {
  for (const auto& [name, value] :
       {std::pair("ipv4/tcp_rmem", "4096 131072 67108864"),
        std::pair("ipv4/tcp_wmem", "4096 65536 67108864"),
        std::pair("ipv4/tcp_slow_start_after_idle", "0")}) {
    GOSSAMER_RETURN_IF_ERROR(WriteSetting(name, value));
  }
  return absl::OkStatus();
}

}  // namespace gossamer
