// One direction of a link between two hosts as arithmetic: when a packet that
// is sent now arrives, or why it never does.
//
// A queue of bounded bytes empties at the link's rate; then come outages, loss,
// the propagation delay and jitter.  Packets overtake those alone that are
// drawn to be late.  This header knows nothing of sockets, devices, clocks or
// the contents of packets.

#ifndef GOSSAMER_RUNTIME_LAB_LINK_MODEL_H_
#define GOSSAMER_RUNTIME_LAB_LINK_MODEL_H_

#include <cstdint>
#include <vector>

#include "algorithms/base/rng.h"

namespace gossamer {

// Nanoseconds since the lab began.
using Nanos = int64_t;
inline constexpr Nanos kNanosPerSecond = 1'000'000'000;

// The link is down in [from, to), and again every `every`; 0: once.
struct Outage {
  Nanos from = 0;
  Nanos to = 0;
  Nanos every = 0;
};

// The properties of one direction.
struct LinkSpec {
  Nanos delay = 0;
  uint64_t bytes_per_second = 0;  // 0: no limit
  Nanos jitter = 0;               // adds between 0 and this, uniformly
  double loss = 0;                // probability, 0 to 1
  // The mean length of a run of losses, >= 1.  Above 1 the link is in one of
  // two states, in one of which it loses all (Gilbert, Bell System Technical
  // Journal, 1960).
  double loss_burst = 1;
  double reorder = 0;  // probability that a packet takes reorder_delay longer
  Nanos reorder_delay = 1'000'000;
  uint64_t queue_bytes = 8'000'000;
  std::vector<Outage> outages = {};
};

// The state of one direction.
class LinkModel {
 public:
  enum class Fate { kDelivered, kQueueFull, kOutage, kLost };
  struct Decision {
    Fate fate;
    Nanos when;  // the time of delivery, if it is delivered
  };

  // `spec` is in range: no negative values, loss at most 1, a queue of at most
  // 1 GB.
  LinkModel(LinkSpec spec, RngKey key);

  // Calls come in the order of time; a `now` before the last one counts as the
  // last one.
  Decision Send(Nanos now, uint64_t bytes);

  // Returns the bytes that wait or are being sent.
  uint64_t Backlog(Nanos now) const;
  const LinkSpec& spec() const { return spec_; }

 private:
  // Occupies the wire with `bytes`; returns the time at which the last one has
  // left.
  Nanos Serialize(Nanos now, uint64_t bytes);
  bool DownAt(Nanos when) const;
  bool Loses(uint64_t index);

  const LinkSpec spec_;
  const RngKey loss_key_;
  const RngKey jitter_key_;
  const RngKey reorder_key_;
  uint64_t sent_ = 0;
  bool losing_ = false;  // the state of a link that loses in bursts
  Nanos now_ = 0;
  Nanos free_at_ = 0;  // the time at which the wire's last byte leaves
  // The remainder of dividing bytes by the rate.  It is kept so that a long run
  // has the rate exactly.
  uint64_t remainder_ = 0;
  Nanos last_delivery_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_LINK_MODEL_H_
