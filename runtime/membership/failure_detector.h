// Which neighbours do not answer: who to probe, who to ask, who to suspect.
//
// A peer that has been silent for a while is probed, then through others, too
// (Das, Gupta and Motivala, "SWIM", 2002); who stays silent for the suspicion
// time is suspected.  The time grows while this peer itself is late, for then
// the fault may be its own (local health: Dadgar, Phillips and Currey,
// "Lifeguard", 2018).  A suspicion is no verdict: the service counts those of
// several neighbours.  Pure; knows nothing of clocks, transports or rounds.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"

namespace gossamer {

class FailureDetector {
 public:
  // `suspect_after`: the suspicion time of a peer in good health.
  explicit FailureDetector(absl::Duration suspect_after)
      : suspect_after_(suspect_after) {}

  // Peers to watch; a new one counts as heard of now.
  void Watch(const std::set<PeerId>& peers, absl::Time now);
  void Heard(PeerId peer, absl::Time now);

  // Another member has an answer of it.  Its silence is borne for one suspicion
  // time more, once: nobody keeps a dead peer in the fleet by vouching for it.
  void HeardThroughOthers(PeerId peer);

  struct Question {
    PeerId witness;  // who has been heard of lately
    PeerId about;
    friend bool operator==(const Question&, const Question&) = default;
  };
  struct Probes {
    std::vector<PeerId> direct;
    std::vector<Question> through_others;
  };
  // To be called every period(); returns whom to probe now.
  Probes Tick(absl::Time now);
  absl::Duration period() const { return suspect_after_ / 8; }

  // As of the last tick, ascending.
  const std::vector<PeerId>& suspected() const { return suspected_; }
  // Times by which the suspicion time is multiplied, at least 1.
  int patience() const { return 1 + lateness_; }

 private:
  struct Watched {
    absl::Time heard;
    bool vouched = false;                     // for this silence
    absl::Time asked = absl::InfinitePast();  // others, the last time
  };
  // Of those who answer, other ones every time.
  std::vector<PeerId> Witnesses(const std::vector<PeerId>& silent);

  const absl::Duration suspect_after_;
  std::map<PeerId, Watched> watched_;
  std::vector<PeerId> suspected_;
  absl::Time last_tick_ = absl::InfinitePast();
  int lateness_ = 0;
  int ticks_in_time_ = 0;
  size_t turn_ = 0;  // of the witnesses
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_FAILURE_DETECTOR_H_
