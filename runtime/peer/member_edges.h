// The edges of a peer as members come and go: new members get an edge at once,
// those that a view no longer names lose theirs, and edges that are in no row
// any more become inactive.
//
// In a large fleet whose rows are drawn anew every round there are edges to the
// neighbours of the next rounds alone.  They keep nothing from one exchange to
// the next, so that nothing is lost when an edge is forgotten after its rounds.
//
// This header knows nothing of when a view comes into use, or of what edges
// carry.

#ifndef GOSSAMER_RUNTIME_PEER_MEMBER_EDGES_H_
#define GOSSAMER_RUNTIME_PEER_MEMBER_EDGES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "algorithms/compress/codec.h"
#include "algorithms/edge/edge.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/peer/lifecycle.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/training_state.h"
#include "runtime/replay/decisions.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/membership.h"
#include "topology/mixing_schedule.h"
#include "topology/view.h"

namespace gossamer {

class MemberEdges {
 public:
  struct Parts {
    Transport* transport = nullptr;
    Neighborhood* neighborhood = nullptr;
    Decisions* decisions = nullptr;
    std::shared_ptr<const Codec> codec;
    bool edges_sum = false;  // corrections of each edge, for common state
    const Lifecycle* lifecycle = nullptr;
    const TrainingState* state = nullptr;
    Reporter* reporter = nullptr;
    ScheduleMaker make_schedule = nullptr;  // null: View::MakeSchedule
  };
  // All of them outlive this object.
  MemberEdges(const PeerSpec& spec, Parts parts);

  // A view is known, long before its round comes.  Without deadlines that round
  // would never come if a peer that is gone were waited for.
  void OnView(const Membership& membership);
  // Gives up edges to peers that are in no view any more.
  void DropMembers(const View& newest);

  // The view is in use: an edge to every neighbour in it, and the edges of
  // `saved`.
  absl::Status Connect(std::shared_ptr<const View> in_use,
                       std::shared_ptr<const MixingSchedule> schedule,
                       const SavedEdges& saved);
  // A round begins by the view in use: edges for the rounds to come are made,
  // those of past rounds become inactive.
  absl::Status OnRound();
  // Announces the incarnation's epoch to all members.  The view is the first of
  // an incarnation that may begin in a fleet under way; `under_way`: it does.
  absl::Status AnnounceEpoch(const View& view, bool under_way);
  // The incarnation is over.
  void Reset();

 private:
  // The rounds, of those that have been gathered, in which this peer shares an
  // edge with another one.
  using SharedRounds = std::set<uint64_t>;
  // The rounds of a view.
  struct Horizon {
    std::shared_ptr<const View> view;
    std::shared_ptr<const MixingSchedule> schedule;  // null: none
    bool persistent = true;    // HasPersistentEdges() of it
    uint64_t gathered_to = 0;  // the first round that was not gathered
  };

  void AddEdgesOfNextView();
  uint64_t FirstToGather(const View& view) const;
  void LookAhead(Horizon& horizon, uint64_t end);
  // The other end must have an edge for the next of these rounds, or for one
  // that is past.
  bool Expects(const SharedRounds& rounds) const;
  absl::Status MakeEdges(const View& addresses);
  // `first`: the round of the first exchange.
  absl::Status AddEdgeFor(PeerId peer, uint64_t first, const View& addresses);
  void DeactivatePast();
  void AddMembers(const std::shared_ptr<const View>& newest);
  void Readdress(const View& newest);
  void ReportComingAndGoing(const View& newest);
  absl::Status ConnectNeighbors(const View& view,
                                const MixingSchedule& schedule,
                                const SavedEdges& saved, bool newcomers);
  absl::Status ConnectSaved(const View& view, const SavedEdges& saved);
  absl::Status AddEdge(Neighborhood::NewEdge edge, bool replica);

  const PeerSpec& spec_;
  const Parts parts_;
  const int max_neighbors_;  // PeerSpec's, if edges may be forgotten
  std::shared_ptr<const Codec> replicaless_;  // of edges beyond the budget
  // The newest whose members have been added or dropped.
  std::shared_ptr<const View> known_ = std::make_shared<const View>();
  Horizon now_, next_;  // of the view in use; of a newer one that is known
  // The graph is time-varying: a view of many members may have edges without
  // replicas, one of few has them with.
  bool time_varying_ = false;
  std::map<PeerId, SharedRounds> shared_rounds_;
  // From this round on all members train by the newest view that is known here:
  // they know in which rounds they share edges.  A member may never hear of a
  // view before it, and has no edge for its rounds then.
  uint64_t sure_from_ = 0;
  bool reported_ = false;  // that edges have no replicas
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_MEMBER_EDGES_H_
