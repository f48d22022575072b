#include "runtime/lab/link_meter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "algorithms/base/status_macros.h"
#include "runtime/base/steady_time.h"
#include "runtime/lab/realtime_priority.h"

namespace gossamer {
namespace {

constexpr uint16_t kPort = 7;
constexpr int kSocketBuffer = 32 << 20;
constexpr absl::Duration kBetweenPings = absl::Milliseconds(5);
// The payload of one IP packet of the usual MTU; a smaller MTU only splits it.
constexpr size_t kPayload = 1472;
constexpr size_t kOverhead = 28;  // IP and UDP
// So many datagrams go in one system call: a call for each would limit the
// rate.
constexpr int kMessages = 32;

sockaddr_in AddressOf(uint32_t address) {
  sockaddr_in result = {};
  result.sin_family = AF_INET;
  result.sin_port = htons(kPort);
  result.sin_addr.s_addr = address;
  return result;
}

absl::StatusOr<FileDescriptor> SocketAt(int network, uint32_t address) {
  // A socket stays in the namespace in which it was made, so one thread can
  // measure between any two hosts.
  GOSSAMER_ASSIGN_OR_RETURN(const ScopedNetwork there,
                            ScopedNetwork::Enter(network));
  FileDescriptor fd(
      ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in own = AddressOf(address);
  if (fd.get() < 0 || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&own),
                             sizeof(own)) != 0) {
    return absl::ErrnoToStatus(errno, "lab meter: socket");
  }
  for (int what : {SO_RCVBUFFORCE, SO_SNDBUFFORCE}) {
    // Smaller buffers only make the measurement of fast links less exact.
    ::setsockopt(fd.get(), SOL_SOCKET, what, &kSocketBuffer,
                 sizeof(kSocketBuffer));
  }
  return fd;
}

void SendPing(int socket, uint32_t address, uint64_t id) {
  const sockaddr_in to = AddressOf(address);
  ::sendto(socket, &id, sizeof(id), 0, reinterpret_cast<const sockaddr*>(&to),
           sizeof(to));
}

bool ReceivePing(int socket, uint64_t& id) {
  return ::recv(socket, &id, sizeof(id), 0) == sizeof(id);
}

void WaitFor(int a, int b, absl::Duration limit) {
  pollfd both[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
  const timespec most = absl::ToTimespec(std::max(limit, absl::ZeroDuration()));
  ::ppoll(both, 2, &most, nullptr);
}

// One datagram that is sent many times in one call.
struct Burst {
  explicit Burst(uint32_t address) : to(AddressOf(address)) {
    for (mmsghdr& m : messages) {
      m = {};
      m.msg_hdr.msg_name = &to;
      m.msg_hdr.msg_namelen = sizeof(to);
      m.msg_hdr.msg_iov = &part;
      m.msg_hdr.msg_iovlen = 1;
    }
  }
  char payload[kPayload] = {};
  iovec part = {payload, sizeof(payload)};
  sockaddr_in to;
  mmsghdr messages[kMessages];
};

}  // namespace

absl::StatusOr<LinkMeter> LinkMeter::Make(const Lab& lab) {
  LinkMeter meter;
  for (size_t rank = 0; rank < lab.hosts(); ++rank) {
    in_addr address = {};
    ::inet_pton(AF_INET, lab.Address(rank).c_str(), &address);
    meter.addresses_.push_back(address.s_addr);
    GOSSAMER_ASSIGN_OR_RETURN(FileDescriptor socket,
                              SocketAt(lab.Network(rank), address.s_addr));
    meter.sockets_.push_back(std::move(socket));
  }
  return meter;
}

RoundTrips LinkMeter::MeasureRoundTrips(size_t from, size_t to, int count,
                                        absl::Duration limit) {
  // One thread is both ends: the clock is one, and no other thread's delay is
  // measured.
  const int here = sockets_[from].get(), there = sockets_[to].get();
  // The measurement is of the network, not of this machine's other work.
  const ScopedRealtimePriority priority(kMeterPriority);
  std::map<uint64_t, absl::Time> sent;
  std::vector<double> took;
  RoundTrips result;
  absl::Time next = SteadyNow();
  absl::Time end = next + limit;
  for (absl::Time now = next; now < end; now = SteadyNow()) {
    // The pings have a distance in time, so that no ping waits behind another.
    if (result.sent < count && now >= next) {
      sent[next_ping_] = SteadyNow();
      SendPing(here, addresses_[to], next_ping_++);
      ++result.sent;
      next = now + kBetweenPings;
      end = now + limit;
    }
    if (result.sent == count && sent.empty()) break;
    WaitFor(here, there, (result.sent < count ? next : end) - SteadyNow());
    uint64_t id = 0;
    // The far end answers at once, before the near end looks at its clock.
    while (ReceivePing(there, id)) SendPing(there, addresses_[from], id);
    while (ReceivePing(here, id)) {
      const auto mine = sent.find(id);
      if (mine == sent.end()) continue;  // a late answer of an earlier call
      took.push_back(absl::ToDoubleMilliseconds(SteadyNow() - mine->second));
      sent.erase(mine);
    }
  }
  result.answered = static_cast<int>(took.size());
  if (took.empty()) return result;
  std::sort(took.begin(), took.end());
  result.min_ms = took.front();
  result.median_ms = took[took.size() / 2];
  result.max_ms = took.back();
  return result;
}

int64_t LinkMeter::Drain(int socket) const {
  char scrap[kMessages][8];
  iovec parts[kMessages];
  mmsghdr messages[kMessages] = {};
  for (int i = 0; i < kMessages; ++i) {
    parts[i] = {scrap[i], sizeof(scrap[i])};  // the rest is cut off
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  int64_t total = 0;
  for (int got;
       (got = ::recvmmsg(socket, messages, kMessages, 0, nullptr)) > 0;) {
    total += got;
    if (got < kMessages) break;
  }
  return total;
}

double LinkMeter::MeasureRate(size_t from, size_t to, double bytes_per_second,
                              absl::Duration how_long, absl::Duration limit) {
  const int here = sockets_[from].get(), there = sockets_[to].get();
  const ScopedRealtimePriority priority(kMeterPriority);
  // Datagrams of an earlier measurement would count as arrived at once.
  Drain(there);
  Burst burst(addresses_[to]);
  constexpr double kBytes = kPayload + kOverhead;
  const absl::Time begin = SteadyNow();
  absl::Time first = absl::InfiniteFuture(), last = begin;
  int64_t sent = 0, received = 0, in_first = 0;
  for (absl::Time now = begin; now < std::max(last, begin + how_long) + limit;
       now = SteadyNow()) {
    const bool sending = now < begin + how_long;
    const double due =
        bytes_per_second * absl::ToDoubleSeconds(now - begin) / kBytes;
    // The clock decides how many datagrams are due, so a late thread catches
    // up.
    if (sending && static_cast<double>(sent) < due) {
      const auto most = static_cast<unsigned>(
          std::min<double>(kMessages, due - static_cast<double>(sent) + 1));
      sent += std::max(0, ::sendmmsg(here, burst.messages, most, 0));
    }
    if (const int64_t got = Drain(there); got > 0) {
      last = SteadyNow();
      if (first == absl::InfiniteFuture()) {
        first = last;
        in_first = got;
      }
      received += got;
    } else if (!sending && received > 0 &&
               now > last + absl::Milliseconds(50)) {
      break;
    }
    WaitFor(there, there,
            sending ? absl::Microseconds(200) : absl::Milliseconds(20));
  }
  // A single burst has no time in it.
  if (last <= first) return 0;
  // The first datagrams only start the clock.
  return static_cast<double>(received - in_first) * kBytes /
         absl::ToDoubleSeconds(last - first);
}

}  // namespace gossamer
