// A network of peers in virtual time: latency, bandwidth and every fault that
// a run must survive, asked for one by one or drawn from a seed.
//
// On a living connection no frame is lost, repeated, reordered or damaged
// unless SimChaos asks.  When a connection breaks, each end sees what survived
// of the frames in flight (a random prefix each way) and then OnDown.  Knows
// nothing of what the frames say.  One thread; a run depends on the seed only.

#ifndef GOSSAMER_RUNTIME_SIM_SIM_NETWORK_H_
#define GOSSAMER_RUNTIME_SIM_SIM_NETWORK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/rng.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/transport/transport.h"

namespace gossamer {

// One direction between two peers.
struct SimLink {
  absl::Duration latency = absl::Milliseconds(1);
  // A frame takes latency · (1 + jitter · u), u uniform in [0, 1), but never
  // overtakes.
  double jitter = 0;
  double bytes_per_second = 0;  // 0 is no limit
};

// What a correct transport never does: probabilities per frame.
struct SimChaos {
  double lose = 0;
  double duplicate = 0;
  double reorder = 0;  // with the frame sent before it, if still in flight
  double corrupt = 0;  // one bit
};

struct SimOptions {
  uint64_t seed = 1;
  SimLink link = {};
  // From a lost connection to the next attempt.
  absl::Duration redial_delay = absl::Milliseconds(20);
  // Until an end notices that a partition has cut a connection.
  absl::Duration keepalive = absl::Seconds(1);
  // The probability that a new connection comes as two, as when both ends
  // dial at once.
  double double_dial = 0;
  size_t max_body_bytes = size_t{1} << 30;
};

namespace sim_internal {
class Endpoint;
struct Connection;
struct Item;
}  // namespace sim_internal

class SimNetwork {
 public:
  // `loop` outlives the network, the network its endpoints.
  SimNetwork(VirtualLoop* loop, SimOptions options);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // The transport of `peer`, on `loop`, which outlives it.  Destroying it is
  // a crash of the peer: connections break and nothing of it is heard again
  // until another is created.  At most one per peer at a time.  A connection
  // opens when both ends have called Connect(); the smaller id dials, and finds
  // nobody if the other end is at another `address` ("": at any).
  std::unique_ptr<Transport> CreateEndpoint(PeerId peer, VirtualPeerLoop* loop,
                                            std::string address = "");

  void SetLink(PeerId from, PeerId to, SimLink link);
  void SetChaos(SimChaos chaos) { chaos_ = chaos; }

  // Breaks every connection of the pair; none opens for `closed_for`.
  void Break(PeerId a, PeerId b,
             absl::Duration closed_for = absl::ZeroDuration());
  // Holds what is under way from one peer to the other until `until`.
  void Stall(PeerId from, PeerId to, absl::Time until);
  // The peer stops as a stopped process does: its loop does not run.
  void Freeze(PeerId peer, absl::Time until);
  // Cuts `side` off from all others; replaces an earlier partition.  `one_way`:
  // what `side` sends gets lost; it hears the others until its silence ends the
  // connections (SimOptions::keepalive), and new ones would need both ways.
  void Partition(std::set<PeerId> side, bool one_way = false);
  void Heal();

  // What one peer has sent the other, lost or not.
  struct Sent {
    uint64_t frames = 0;
    uint64_t bytes = 0;
  };
  Sent SentBetween(PeerId from, PeerId to) const;
  // Frames that SimChaos has met.
  struct ChaosSeen {
    uint64_t lost = 0, duplicated = 0, reordered = 0;
  };
  const ChaosSeen& chaos_seen() const { return chaos_seen_; }

  // The pairs whose both ends have called Connect(), and the peers.
  using PairSet = std::set<std::pair<PeerId, PeerId>>;
  PairSet Pairs() const;
  std::set<PeerId> Peers() const;

 private:
  friend class sim_internal::Endpoint;
  using PairKey = std::pair<PeerId, PeerId>;  // the smaller first
  using ConnectionPtr = std::shared_ptr<sim_internal::Connection>;

  struct Direction {
    std::optional<SimLink> link;
    absl::Time busy_until = absl::InfinitePast();
    absl::Time stalled_until = absl::InfinitePast();
    Sent sent;
  };
  struct Pair {
    absl::Time closed_until = absl::InfinitePast();
    bool dialling = false;
    std::vector<ConnectionPtr> connections;  // the oldest first
    uint64_t dials = 0;
    uint64_t breaks = 0;
  };

  static PairKey KeyOf(PeerId a, PeerId b);
  bool MayConnect(PairKey key) const;
  void MaybeDial(PairKey key, absl::Duration delay);
  void Dial(PairKey key);
  void Open(PairKey key);
  void BreakConnection(const ConnectionPtr& c, absl::Time seen);
  void SendFrame(const ConnectionPtr& c, int from, Channel channel,
                 Frame frame);
  void Enqueue(const ConnectionPtr& c, int to, sim_internal::Item item);
  void Pump(const ConnectionPtr& c, int to);
  void SchedulePump(const ConnectionPtr& c, int to);
  absl::Time Arrival(PeerId from, PeerId to, size_t bytes);
  Transit TransitOf(PeerId from, PeerId to, size_t bytes);
  void Forget(const ConnectionPtr& c, int end);

  VirtualPeerLoop loop_;
  const SimOptions options_;
  const RngKey key_;
  SimChaos chaos_;
  ChaosSeen chaos_seen_;
  std::set<PeerId> partitioned_;
  std::map<PeerId, sim_internal::Endpoint*> endpoints_;
  std::map<std::pair<PeerId, PeerId>, Direction> directions_;  // from, to
  std::map<PairKey, Pair> pairs_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SIM_SIM_NETWORK_H_
