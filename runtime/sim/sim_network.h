// A network of peers in virtual time: latency, bandwidth and every fault that a
// run must survive, requested one by one or drawn from a seed.
//
// On a living connection no frame is lost, repeated, reordered or damaged
// unless SimChaos asks for it.  When a connection breaks, each end sees the
// surviving frames (a random prefix in each direction) and then OnDown.  This
// header knows nothing of what the frames say.  One thread; a run depends on
// the seed only.

#ifndef GOSSAMER_RUNTIME_SIM_SIM_NETWORK_H_
#define GOSSAMER_RUNTIME_SIM_SIM_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/rng.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/transport/transport.h"

namespace gossamer {

// One direction between two peers.
struct SimLink {
  absl::Duration latency = absl::Milliseconds(1);
  // A frame takes latency · (1 + jitter · u), with u uniform in [0, 1), but
  // never overtakes another.
  double jitter = 0;
  double bytes_per_second = 0;  // 0: no limit
};

// Faults that a correct transport never commits, as probabilities per frame.
struct SimChaos {
  double lose = 0;
  double duplicate = 0;
  // Swaps it with the frame before it, if that is still in flight.
  double reorder = 0;
  double corrupt = 0;  // one bit
};

struct SimOptions {
  uint64_t seed = 1;
  SimLink link = {};
  // The time from a lost connection to the next attempt.
  absl::Duration redial_delay = absl::Milliseconds(20);
  // The time until an end notices that a partition has cut a connection.
  absl::Duration keepalive = absl::Seconds(1);
  // The probability that a new connection comes as two, as if both ends dialled
  // at once.
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

  // Returns the transport of `peer` on `loop`, which outlives it.  Destroying
  // it is a crash of the peer: connections break, and nothing of it is heard
  // until another is created.  Of two at a time the newer one is dialled and
  // dials; the older one keeps the connections that it has.  A connection
  // opens when both ends have called Connect().  The smaller id dials, and
  // finds no peer if the other end is at another `address` ("": at any).
  std::unique_ptr<Transport> CreateEndpoint(PeerId peer, VirtualPeerLoop* loop,
                                            std::string address = "");

  void SetLink(PeerId from, PeerId to, SimLink link);
  // All directions have the link that `link_of` says, until SetLink.  Frames
  // under way arrive as they would have.
  using LinkOf = std::function<SimLink(PeerId from, PeerId to)>;
  void SetLinks(LinkOf link_of);
  // A peer's frames to all others share one wire of this rate; 0: no limit.
  void SetUplink(PeerId from, double bytes_per_second);
  void SetChaos(SimChaos chaos) { chaos_ = chaos; }

  // Breaks every connection of the pair; none opens for `closed_for`.
  void Break(PeerId a, PeerId b,
             absl::Duration closed_for = absl::ZeroDuration());
  // Holds the items under way from one peer to the other until `until`.
  void Stall(PeerId from, PeerId to, absl::Time until);
  // Stops the peer like a stopped process: its loop does not run.
  void Freeze(PeerId peer, absl::Time until);
  // Cuts `side` off from all others; replaces an earlier partition.  With
  // `one_way` only the frames of `side` are lost.  It hears the others until
  // its silence ends the connections (SimOptions::keepalive); new ones need
  // both directions.
  void Partition(std::set<PeerId> side, bool one_way = false);
  void Heal();

  // Totals that one peer has sent the other, lost or not.
  struct Sent {
    uint64_t frames = 0;
    uint64_t bytes = 0;
  };
  // Of all directions in which something was sent.
  using Traffic = std::map<std::pair<PeerId, PeerId>, Sent>;  // from, to
  Traffic AllSent() const;
  // Frames that SimChaos has changed.
  struct ChaosSeen {
    uint64_t lost = 0, duplicated = 0, reordered = 0;
  };
  const ChaosSeen& chaos_seen() const { return chaos_seen_; }

  // The pairs whose two ends have called Connect(), and the peers.
  using PairSet = std::set<std::pair<PeerId, PeerId>>;
  PairSet Pairs() const;
  std::set<PeerId> Peers() const;

 private:
  friend class sim_internal::Endpoint;
  using PairKey = std::pair<PeerId, PeerId>;  // the smaller id first
  using ConnectionPtr = std::shared_ptr<sim_internal::Connection>;

  struct Direction {
    std::optional<SimLink> link;
    absl::Time busy_until = absl::InfinitePast();
    absl::Time stalled_until = absl::InfinitePast();
    Sent sent;
  };
  struct Uplink {
    double bytes_per_second = 0;
    absl::Time busy_until = absl::InfinitePast();
  };
  struct Pair {
    absl::Time closed_until = absl::InfinitePast();
    bool dialling = false;
    std::vector<ConnectionPtr> connections;  // the oldest first
    uint64_t dials = 0;
    uint64_t breaks = 0;
  };

  static PairKey KeyOf(PeerId a, PeerId b);
  // The newest endpoint of a peer; null if it has none.
  sim_internal::Endpoint* At(PeerId peer) const;
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
  // The link of a direction; said by link_of_ when it is first asked for.
  const SimLink& LinkFor(PeerId from, PeerId to, Direction& direction);
  absl::Time Arrival(PeerId from, PeerId to, size_t bytes);
  Transit TransitOf(PeerId from, PeerId to, size_t bytes);
  void Forget(const ConnectionPtr& c, int end);

  VirtualPeerLoop loop_;
  const SimOptions options_;
  const RngKey key_;
  LinkOf link_of_;
  SimChaos chaos_;
  ChaosSeen chaos_seen_;
  std::set<PeerId> partitioned_;
  // The newest last; none is empty.
  std::map<PeerId, std::vector<sim_internal::Endpoint*>> endpoints_;
  std::map<std::pair<PeerId, PeerId>, Direction> directions_;  // from, to
  std::map<PeerId, Uplink> uplinks_;                           // those limited
  std::map<PairKey, Pair> pairs_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SIM_SIM_NETWORK_H_
