// The view that a peer trains by, and what follows from it for mixing: its
// rank, the rows of rounds, how many rounds an exchange may take, and the step
// size that is stable then.
//
// This header knows nothing of edges or of how members become known.

#ifndef GOSSAMER_RUNTIME_PEER_ADOPTED_VIEW_H_
#define GOSSAMER_RUNTIME_PEER_ADOPTED_VIEW_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/compress/codec.h"
#include "algorithms/edge/edge.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/training_state.h"
#include "runtime/replay/decisions.h"
#include "topology/fleet/membership.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

// kFailedPrecondition if this peer is not in the view, or if some would mix
// with fewer than PeerSpec::min_degree, which is asked of a first view alone:
// a peer that trains goes on.
absl::Status CheckView(const View& view, const PeerSpec& spec, bool first);

class AdoptedView {
 public:
  struct Parts {
    const Membership* membership = nullptr;
    Decisions* decisions = nullptr;
    const Codec* codec = nullptr;
    Neighborhood* neighborhood = nullptr;
    TrainingState* state = nullptr;
    Reporter* reporter = nullptr;
    // Null: View::MakeSchedule.
    ScheduleMaker make_schedule = nullptr;
    // Members that the view has no more are given up.
    std::function<void(const View&)> drop_members;
    // The view is in use; `first` of its incarnation, with edges of a
    // checkpoint.
    std::function<absl::Status(bool first, const SavedEdges& saved)> connect;
  };
  // All of them outlive this object.
  AdoptedView(const PeerSpec& spec, Parts parts);

  // Takes up the newest view that is known, if it has begun by this round.
  absl::Status Adopt(const SavedEdges& saved = {});
  // The incarnation that the view was of is over.
  void Reset() { view_ = std::make_shared<const View>(); }

  // h from here on: as the view says, or a replay.
  absl::Status AdoptOverlap(int overlap);

  bool in_fleet() const { return view().epoch != 0; }
  const View& view() const { return *view_; }
  const std::shared_ptr<const View>& shared_view() const { return view_; }
  int rank() const { return rank_; }
  const MixingSchedule& schedule() const { return *schedule_; }
  std::shared_ptr<const MixingSchedule> shared_schedule() const {
    return schedule_;
  }
  // h.
  int overlap() const { return overlap_; }
  // Chebyshev's weights, of each phase of a round.
  const std::vector<double>& omega() const { return omega_; }
  std::vector<RowEntry> RowOf(uint64_t round) const;

 private:
  bool Due(const View& newest) const;
  absl::StatusOr<float> StepSize() const;
  void ReportOverlap(int before);

  const PeerSpec& spec_;
  const Parts parts_;
  std::shared_ptr<const View> view_ = std::make_shared<const View>();
  int rank_ = 0;
  std::shared_ptr<const MixingSchedule> schedule_;
  int overlap_ = 1;
  float gamma_ = 1;
  std::vector<double> omega_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_ADOPTED_VIEW_H_
