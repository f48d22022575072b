// Carries packets between the devices of the lab's hosts, each as late as its
// link demands.
//
// One thread reads what a host sends, asks the link's model, keeps the packet
// until its time, and writes it to its destination.  This header knows nothing
// of namespaces, processes or the contents of packets.

#ifndef GOSSAMER_RUNTIME_LAB_PACKET_SWITCH_H_
#define GOSSAMER_RUNTIME_LAB_PACKET_SWITCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/lab/link_model.h"
#include "runtime/lab/packet.h"

namespace gossamer {

// Counts of one direction of a link.  A packet that TCP hands over in one piece
// counts once; its bytes are those of all its parts.
struct LinkCounters {
  uint64_t carried = 0;  // delivered, or on its way at the end
  uint64_t bytes = 0;    // of the carried packets
  uint64_t queue_full = 0;
  uint64_t outage = 0;
  uint64_t lost = 0;
};

struct SwitchReport {
  std::vector<std::vector<LinkCounters>> links;  // [from][to]
  // Addressed to no host, or not IPv4.
  uint64_t unroutable = 0;
  uint64_t refused = 0;  // by the receiving device, or over the memory limit
  double seconds = 0;
  double cpu_seconds = 0;  // includes the receiving hosts' network stacks
  // The time from a packet's due time to its delivery, in microseconds.
  double mean_late_us = 0;
  double p99_late_us = 0;
  double worst_late_us = 0;
  bool real_time = false;  // the thread had real-time priority

  LinkCounters Total() const;
};

// The switch of one lab.
class PacketSwitch {
 public:
  struct Port {
    int device;        // made by MakeTunDevice, outlives the switch
    uint32_t address;  // in the host's byte order
    // Bytes a second over all its links together; 0: no limit.
    uint64_t uplink = 0;
    bool outside = false;  // packets to it pass no uplink
  };

  // `links` is [from][to] for all ports.
  PacketSwitch(std::vector<Port> ports,
               const std::vector<std::vector<LinkSpec>>& links, uint64_t seed);
  // Stops the switch.
  ~PacketSwitch();
  PacketSwitch(const PacketSwitch&) = delete;
  PacketSwitch& operator=(const PacketSwitch&) = delete;

  // Called once.  The links' time begins.
  absl::Status Start();
  // Stops, drops the packets under way, and returns the counts so far.
  // Idempotent.
  const SwitchReport& Stop();

 private:
  struct Flight {
    Nanos when;
    uint64_t order;  // orders the flights of one time
    uint32_t to;
    uint32_t size;
    std::unique_ptr<uint8_t[]> frame;
  };
  struct Later {
    bool operator()(const Flight& a, const Flight& b) const {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  // Lateness in microseconds, counted by powers of two.
  static constexpr size_t kBuckets = 32;

  void Run();
  void ReadFrom(uint32_t port);
  void DeliverDue();
  void Accept(uint32_t from, size_t size);
  void WaitForWork();
  void CountLateness(Nanos late);
  void FinishReport();
  Nanos Now() const;

  const std::vector<Port> ports_;
  std::vector<std::vector<LinkModel>> models_;
  // A packet passes its host's first.
  std::vector<LinkModel> uplinks_;
  std::unordered_map<uint32_t, uint32_t> port_of_;  // by address
  FileDescriptor epoll_;
  FileDescriptor stop_;
  std::thread thread_;

  // Used only by the thread while it runs.
  bool running_ = true;
  Nanos began_ = 0;
  std::vector<uint8_t> buffer_;
  std::vector<Flight> flights_;  // a heap, the next one first
  uint64_t order_ = 0;
  size_t flying_bytes_ = 0;
  uint64_t lateness_[kBuckets] = {};
  uint64_t deliveries_ = 0;
  double late_us_ = 0;
  SwitchReport report_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_PACKET_SWITCH_H_
