#include "runtime/lab/packet_switch.h"

#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>

#include "runtime/lab/realtime_priority.h"

namespace gossamer {
namespace {

// Frames that are read from one device before the others have their turn.
constexpr int kBatch = 64;
constexpr int kMaxEvents = 64;
// Bytes in flight on all links: the bound of a flood over a link without a
// rate.
constexpr size_t kMaxFlyingBytes = size_t{2} << 30;
// The longest wait, after which the switch checks its flights again.
constexpr Nanos kLongestWait = kNanosPerSecond;
constexpr uint32_t kStopEvent = ~0u;

// The clock is the one by which epoll's waits count.
Nanos Monotonic() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

double CpuSeconds() {
  rusage usage;
  ::getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) +
           1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

absl::Status Watch(int epoll, int fd, uint32_t data) {
  epoll_event event = {.events = EPOLLIN, .data = {.u32 = data}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "lab switch: epoll");
}

}  // namespace

LinkCounters SwitchReport::Total() const {
  LinkCounters total;
  for (const auto& row : links) {
    for (const LinkCounters& link : row) {
      total.carried += link.carried;
      total.bytes += link.bytes;
      total.queue_full += link.queue_full;
      total.outage += link.outage;
      total.lost += link.lost;
    }
  }
  return total;
}

PacketSwitch::PacketSwitch(std::vector<Port> ports,
                           const std::vector<std::vector<LinkSpec>>& links,
                           uint64_t seed)
    : ports_(std::move(ports)), buffer_(kMaxFrameBytes) {
  const RngKey key(seed);
  for (size_t i = 0; i < ports_.size(); ++i) {
    port_of_[ports_[i].address] = static_cast<uint32_t>(i);
    uplinks_.emplace_back(LinkSpec{.bytes_per_second = ports_[i].uplink},
                          key.Fold(i));
    std::vector<LinkModel>& row = models_.emplace_back();
    for (size_t j = 0; j < ports_.size(); ++j) {
      // Each direction draws its losses and its jitter by a key of its own.
      row.emplace_back(links[i][j], key.Fold(i).Fold(j));
    }
  }
  report_.links.assign(ports_.size(), std::vector<LinkCounters>(ports_.size()));
}

PacketSwitch::~PacketSwitch() { Stop(); }

absl::Status PacketSwitch::Start() {
  epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  stop_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (epoll_.get() < 0 || stop_.get() < 0) {
    return absl::ErrnoToStatus(errno, "lab switch");
  }
  absl::Status status = Watch(epoll_.get(), stop_.get(), kStopEvent);
  for (size_t i = 0; i < ports_.size() && status.ok(); ++i) {
    status = Watch(epoll_.get(), ports_[i].device, static_cast<uint32_t>(i));
  }
  if (!status.ok()) return status;
  began_ = Monotonic();
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

const SwitchReport& PacketSwitch::Stop() {
  if (!thread_.joinable()) return report_;
  const uint64_t one = 1;
  // The counter is far from its maximum, so the write cannot fail.
  [[maybe_unused]] const ssize_t written =
      ::write(stop_.get(), &one, sizeof(one));
  thread_.join();
  flights_.clear();
  return report_;
}

Nanos PacketSwitch::Now() const { return Monotonic() - began_; }

void PacketSwitch::Run() {
  ::pthread_setname_np(::pthread_self(), "lab-switch");
  // Without the priority the lab works, and packets are late while the machine
  // is busy.
  report_.real_time = SetRealtimePriority(kSwitchPriority);
  // Packets that are due go first: being late is the one error that this thread
  // can make.
  while (running_) {
    DeliverDue();
    WaitForWork();
  }
  FinishReport();
}

void PacketSwitch::WaitForWork() {
  Nanos wait = kLongestWait;
  if (!flights_.empty()) {
    wait = std::clamp<Nanos>(flights_.front().when - Now(), 0, kLongestWait);
  }
  const timespec limit = {.tv_sec = wait / kNanosPerSecond,
                          .tv_nsec = wait % kNanosPerSecond};
  epoll_event events[kMaxEvents];
  // epoll_wait() would count in whole milliseconds, which is longer than some
  // links.
  const int count =
      ::epoll_pwait2(epoll_.get(), events, kMaxEvents, &limit, nullptr);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u32 == kStopEvent) {
      running_ = false;
    } else {
      ReadFrom(events[i].data.u32);
    }
  }
}

void PacketSwitch::ReadFrom(uint32_t port) {
  // The batch bounds the time until other devices and due packets have their
  // turn.
  for (int i = 0; i < kBatch; ++i) {
    const ssize_t size =
        ::read(ports_[port].device, buffer_.data(), buffer_.size());
    if (size <= 0) return;  // nothing more has come, or the device is gone
    Accept(port, static_cast<size_t>(size));
  }
}

void PacketSwitch::Accept(uint32_t from, size_t size) {
  const std::optional<PacketInfo> info =
      InspectFrame(std::span(buffer_).first(size));
  const auto found = info ? port_of_.find(info->destination) : port_of_.end();
  if (found == port_of_.end() || found->second == from) {
    // Neighbour discovery and broadcasts end here as well.
    ++report_.unroutable;
    return;
  }
  const uint32_t to = found->second;
  LinkCounters& counters = report_.links[from][to];
  LinkModel::Decision decision = {LinkModel::Fate::kDelivered, Now()};
  if (!ports_[to].outside) {
    decision = uplinks_[from].Send(decision.when, info->wire_bytes);
  }
  if (decision.fate == LinkModel::Fate::kDelivered) {
    // The link sees it once it has left the host.
    decision = models_[from][to].Send(decision.when, info->wire_bytes);
  }
  switch (decision.fate) {
    case LinkModel::Fate::kQueueFull:
      ++counters.queue_full;
      return;
    case LinkModel::Fate::kOutage:
      ++counters.outage;
      return;
    case LinkModel::Fate::kLost:
      ++counters.lost;
      return;
    case LinkModel::Fate::kDelivered:
      break;
  }
  // A link without a rate has no queue that bounds it, so all flights share one
  // limit.
  if (flying_bytes_ + size > kMaxFlyingBytes) {
    ++report_.refused;
    return;
  }
  flying_bytes_ += size;
  ++counters.carried;
  counters.bytes += info->wire_bytes;
  auto frame = std::make_unique_for_overwrite<uint8_t[]>(size);
  // The frame waits as long as its link demands, and the buffer is needed for
  // the next one.
  ::memcpy(frame.get(), buffer_.data(), size);
  flights_.push_back({decision.when, order_++, to, static_cast<uint32_t>(size),
                      std::move(frame)});
  std::push_heap(flights_.begin(), flights_.end(), Later());
}

void PacketSwitch::DeliverDue() {
  // Packets that become due meanwhile wait until the devices have been read: a
  // flood of deliveries must not starve them.
  for (size_t left = flights_.size(); left > 0; --left) {
    const Nanos late = Now() - flights_.front().when;
    if (late < 0) return;
    std::pop_heap(flights_.begin(), flights_.end(), Later());
    const Flight flight = std::move(flights_.back());
    flights_.pop_back();
    flying_bytes_ -= flight.size;
    CountLateness(late);
    // A receiver whose queue is full loses the packet, as a network card does.
    if (::write(ports_[flight.to].device, flight.frame.get(), flight.size) <
        0) {
      ++report_.refused;
    }
  }
}

void PacketSwitch::CountLateness(Nanos late) {
  const auto micros = static_cast<uint64_t>(late / 1000);
  // Powers of two are enough for a percentile, and take no memory that grows.
  ++lateness_[std::min<size_t>(std::bit_width(micros), kBuckets - 1)];
  ++deliveries_;
  const double exact = 1e-3 * static_cast<double>(late);
  late_us_ += exact;
  report_.worst_late_us = std::max(report_.worst_late_us, exact);
}

void PacketSwitch::FinishReport() {
  report_.seconds = 1e-9 * static_cast<double>(Now());
  report_.cpu_seconds = CpuSeconds();
  if (deliveries_ == 0) return;
  report_.mean_late_us = late_us_ / static_cast<double>(deliveries_);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += lateness_[i];
    if (seen * 100 < deliveries_ * 99) continue;
    // The upper end of the bucket stands for all in it.
    report_.p99_late_us =
        std::min(std::exp2(static_cast<double>(i)), report_.worst_late_us);
    return;
  }
}

}  // namespace gossamer
