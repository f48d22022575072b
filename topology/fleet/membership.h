// A peer's knowledge of its fleet: the view, the fleet's round, when to stop.
//
// A fleet whose members never change needs nothing of outside(), Rejoin(),
// RenewIncarnation(), ViewAdopted(), RequestLeave() and Suspect().
//
// The round loop reads it at round boundaries and never waits for it once it
// trains: with the service gone it goes on with the last view.  This header
// knows nothing of transports or of how the service is reached.

#ifndef GOSSAMER_TOPOLOGY_FLEET_MEMBERSHIP_H_
#define GOSSAMER_TOPOLOGY_FLEET_MEMBERSHIP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "algorithms/game/player_losses.h"
#include "topology/fleet/event_tally.h"
#include "topology/view.h"

namespace gossamer {

// The times that a peer's rounds and exchanges take, over its last ones in the
// present view.
struct RoundTiming {
  double busy_seconds = 0;      // a round without its waiting, median
  double exchange_seconds = 0;  // the longest of a round, 90th percentile
  uint64_t rounds = 0;          // with an exchange of the present formats
  bool waits = true;            // rounds are clearly longer than busy_seconds
};

// The measured link from one peer to another.
struct LinkMeasurement {
  double rtt_seconds = 0;       // the least of some
  double bytes_per_second = 0;  // the most of some; 0: no limit was seen
};

// A link that the service asks a peer to measure.
struct SurveyTask {
  uint64_t number = 0;
  Member to;
};

// The report that a peer sends to the service from time to time.
struct PeerReport {
  uint64_t round = 0;  // the next round it will emit
  uint64_t steps = 0;
  double rounds_per_second = 0;
  RoundTiming timing;
  PlayerLosses losses;          // of the last round; empty before
  std::optional<double> score;  // latest, if this peer evaluates
  uint64_t bytes_sent = 0;      // since start
  std::vector<double> sketch;   // count-sketch of x; empty: none yet
  uint64_t sketch_round = 0;    // the boundary it was taken at
  uint64_t spoilt = 0;          // how often it lost its parameters, since start
  EventTally events;            // since start, as the heartbeat brought them
};

// The agreement of a fleet on one last round (all peers stop there, none
// before).
//   none → proposed(S): a peer that has not begun round S answers with
//   acknowledged_stop = S and will not begin it.  Once one is known to have
//   begun S the service proposes a later round; it must not wait for that peer
//   to end it, which may take a payload of one that stands at S.  Once all
//   have acknowledged: committed(S).
struct StopState {
  uint64_t round = 0;  // 0: go on
  bool committed = false;
};

// The round loop's only view of the service.  Implementations answer from what
// they have heard last, and none of these calls waits.
class Membership {
 public:
  virtual ~Membership() = default;
  // Newest view known; epoch 0 while there is none.  Adopt it at the boundary
  // of its from_round.  The reference holds until another view is known.
  virtual const View& view() const = 0;
  // The same, to keep.
  virtual std::shared_ptr<const View> SharedView() const {
    return std::make_shared<const View>(view());
  }
  // The round beyond which no peer jumps, as of the service's last answer: the
  // largest that two peers have got to; of one or two peers, the largest.
  // Nothing while the service does not answer.
  virtual std::optional<uint64_t> fleet_round() const = 0;
  // The second largest round, in the same way: at least two peers have got so
  // far.
  virtual std::optional<uint64_t> second_round() const = 0;
  // Seconds of a round without waiting at the slowest peer, which sets the
  // pace, as of the service's last answer.
  virtual std::optional<double> fleet_busy() const = 0;
  virtual StopState stop() const = 0;
  // This peer goes on from view() and has read all that it needed to begin
  // there.  Until then it may be sent to begin elsewhere.  Every round; cheap.
  virtual void ViewAdopted() {}
  // From here on this peer cannot stop before the end of `round`.  Every
  // round; cheap.
  virtual void BeginRound(uint64_t round) = 0;
  // This peer will not begin `round`.
  virtual void AcknowledgeStop(uint64_t round) = 0;
  // Asks for an end of the whole fleet's run at a round the service chooses.
  virtual void RequestStop() = 0;
  // The reason for which the service has refused this peer for good; OK as long
  // as it has not.
  virtual absl::Status refused() const { return absl::OkStatus(); }
  // True once no view holds this peer any more: it was silent for too long.
  // It gives up its edges and calls Rejoin().
  virtual bool outside() const { return false; }
  // Registers as another incarnation; there is no view() until it is admitted.
  // `trained`: it goes on with its parameters, else it begins as it would have
  // begun.
  virtual void Rejoin(bool trained) {}
  // As Rejoin(), for a member whose parameters are spoilt, though it is in the
  // view: as after a crash that lost the disk, donors() will come.  False if
  // this fleet has no way to do it, or does not know this peer now.
  virtual bool RenewIncarnation() { return false; }
  // view() is the first of the run that names this peer, of any incarnation.
  // False where the service does not know.
  virtual bool first_named() const { return false; }
  // The view by which the process before this one trained, if this peer may
  // resume from it: the service has not answered since the peer began.  Else
  // null.
  virtual std::shared_ptr<const View> last_view() const { return nullptr; }
  // view() is last_view() from here on, and its resume_round the newest
  // checkpoint of this peer; the service hears, once it answers, that the peer
  // trains.
  virtual void ResumeFromLastView() {}
  // view() was set by ResumeFromLastView(): others train by it already.
  virtual bool resumed_from_last_view() const { return false; }
  // Asks to leave in good order: a view will have this peer as a departure, or
  // the fleet stops as a whole if it cannot be without this peer.
  virtual void RequestLeave() {}
  // Members that have parameters for this peer, which begins without any in a
  // fleet under way; SetReady() reports that it has got them.
  virtual std::vector<Member> donors() const { return {}; }
  virtual void SetReady() {}
  // Joining peers that get parameters from this one.
  virtual std::vector<Member> joiners() const { return {}; }
  // Neighbours that do not answer, all of them at each call.
  virtual void Suspect(const std::vector<PeerId>& peers) {}
  // Of those, the peers that the service has heard of since, by its last
  // answer: the path to them may be broken.
  virtual std::vector<PeerId> heard_by_service() const { return {}; }
  // The measurement to make now, until its result is reported or another task
  // comes.
  virtual std::optional<SurveyTask> survey() const { return std::nullopt; }
  // Reports the result of a task; nullopt: the measurement failed.
  virtual void ReportMeasured(uint64_t number,
                              std::optional<LinkMeasurement> measured) {}
  // Kept and sent with the next heartbeat; cheap.
  virtual void Report(const PeerReport& report) = 0;
  // Called on the loop whenever something above may have changed, until its
  // owner removes it.
  virtual void Observe(const void* owner, std::function<void()> on_change) = 0;
  virtual void RemoveObserver(const void* owner) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_MEMBERSHIP_H_
