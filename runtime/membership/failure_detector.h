// Which neighbours do not answer: who to probe, who to suspect.
//
// Whoever has been silent for a while is probed; who then stays silent for the
// suspicion time is suspected.  The time grows while this peer itself is late,
// for then the fault may be its own (local health: Dadgar, Phillips and Currey,
// "Lifeguard", 2018).  A suspicion is no verdict: the service counts those of
// several neighbours, which is what an indirect probe would ask of them.  Pure;
// knows nothing of clocks, transports or rounds.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_

#include <map>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "runtime/base/ids.h"

namespace gossamer {

class FailureDetector {
 public:
  // `suspect_after`: the suspicion time of a peer in good health.
  explicit FailureDetector(absl::Duration suspect_after)
      : suspect_after_(suspect_after) {}

  // Peers to watch; who is new counts as heard of now.
  void Watch(const std::set<PeerId>& peers, absl::Time now);
  void Heard(PeerId peer, absl::Time now);

  // To be called every period(); returns whom to probe now.
  std::vector<PeerId> Tick(absl::Time now);
  absl::Duration period() const { return suspect_after_ / 8; }

  // As of the last tick, ascending.
  const std::vector<PeerId>& suspected() const { return suspected_; }
  // Times by which the suspicion time is multiplied, at least 1.
  int patience() const { return 1 + lateness_; }

 private:
  const absl::Duration suspect_after_;
  std::map<PeerId, absl::Time> heard_;
  std::vector<PeerId> suspected_;
  absl::Time last_tick_ = absl::InfinitePast();
  int lateness_ = 0;
  int ticks_in_time_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_
