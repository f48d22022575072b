// Finds neighbours that do not answer: which to probe, through which proxies to
// probe them too, which to suspect.
//
// A peer that has been silent for a while is probed, then through others too
// (Das, Gupta and Motivala, "SWIM", 2002).  A peer that stays silent for the
// suspicion time is suspected.  The time grows while this peer itself is late,
// because then the fault may be its own (local health: Dadgar, Phillips and
// Currey, "Lifeguard", 2018), and for a peer that has answered after it was
// suspected: its link has long pauses.  A suspicion is no verdict: the service
// counts the suspicions of several neighbours.  This header is pure and knows
// nothing of clocks, transports or rounds.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"

namespace gossamer {

// The detector of one peer.
class FailureDetector {
 public:
  // `suspect_after` is the suspicion time of a peer in good health.
  explicit FailureDetector(absl::Duration suspect_after)
      : suspect_after_(suspect_after) {}

  // Sets the peers to watch; a new one counts as heard of at `now`.
  void Watch(const std::set<PeerId>& peers, absl::Time now);
  void Heard(PeerId peer, absl::Time now);

  // A proxy, or the service, has heard of the peer in its silence.  Extends the
  // peer's suspicion time once per silence, so that indirect answers alone
  // cannot keep a dead peer in the fleet.
  void OnIndirectAck(PeerId peer, absl::Time now);
  // A proxy or the service has heard of it in the present silence.
  bool HasIndirectAck(PeerId peer) const;

  struct IndirectProbe {
    PeerId proxy;  // a peer that has been heard of lately
    PeerId target;
    friend bool operator==(const IndirectProbe&,
                           const IndirectProbe&) = default;
  };
  struct Probes {
    std::vector<PeerId> direct;
    std::vector<IndirectProbe> indirect;
  };
  // Called every period(); returns the probes to make now.
  Probes Tick(absl::Time now);
  absl::Duration period() const { return suspect_after_ / 8; }

  // The suspected peers as of the last tick, ascending.
  const std::vector<PeerId>& suspected() const { return suspected_; }
  // Lifeguard's: the factor by which the suspicion time is multiplied, at least
  // 1.
  int health_multiplier() const { return 1 + lateness_; }

 private:
  struct Watched {
    absl::Time heard;
    bool indirect_ack_used = false;  // during this silence
    bool was_suspected = false;      // during this silence
    int false_suspicions = 0;        // doublings of its suspicion time
    absl::Time falsely_suspected_at = absl::InfinitePast();
    absl::Time asked = absl::InfinitePast();  // when proxies were asked last
  };
  // Returns some of the peers that answer, different ones each time.
  std::vector<PeerId> ChooseProxies(const std::vector<PeerId>& silent);

  const absl::Duration suspect_after_;
  std::map<PeerId, Watched> watched_;
  std::vector<PeerId> suspected_;
  absl::Time last_tick_ = absl::InfinitePast();
  int lateness_ = 0;
  int ticks_in_time_ = 0;
  size_t next_proxy_ = 0;  // proxies take turns
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_
