#include "runtime/peer/adopted_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "topology/mixing_matrix.h"

namespace gossamer {
namespace {

// The part of the largest stable step size that is used where old snapshots
// make the codec's own γ too large (PROTOCOL.md 9): the bound is that of a
// linear system, which a training is not.
constexpr double kMargin = 2.0 / 3;
// The same for corrections that come late (PROTOCOL.md 12).  Their age is taken
// as the worst that an edge has seen lately, which is a margin itself.
constexpr double kDampedMargin = 0.9;

}  // namespace

absl::Status CheckView(const View& view, const PeerSpec& spec, bool first) {
  if (!view.RankOf(spec.self)) {
    return absl::FailedPreconditionError(
        absl::StrCat("peer ", spec.self.value, " is not in view ", view.epoch,
                     " of run '", view.run_id, "'"));
  }
  // Clipping protects against liars only among enough honest neighbours.  A
  // peer that trains is not stopped by a fleet that shrinks.
  if (!first || spec.min_degree == 0) return absl::OkStatus();
  GOSSAMER_ASSIGN_OR_RETURN(const auto schedule, view.MakeSchedule());
  const int degree = MinDegree(*schedule);
  if (degree >= spec.min_degree) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "view ", view.epoch, " has graph ", view.schedule.graph,
      ", where some mix with ", degree, " others; mixing.clip_radius needs ",
      spec.min_degree, ": give the topology service the same configuration"));
}

AdoptedView::AdoptedView(const PeerSpec& spec, Parts parts)
    : spec_(spec), parts_(std::move(parts)) {}

bool AdoptedView::Due(const View& newest) const {
  // Views are ordered by generation and epoch: a service that begins with
  // another store counts epochs anew.
  if (!newest.NewerThan(view())) return false;
  // A view is adopted at its own round, the same at all members, so that both
  // ends of an edge take one row of W.  A replay keeps its first view: its log
  // has the changes of h, and ends where members change.
  if (in_fleet() && (parts_.state->round() < newest.from_round ||
                     parts_.decisions->replays())) {
    return false;
  }
  // It leaves before that view begins.
  return !newest.DepartureOf(spec_.self);
}

absl::Status AdoptedView::Adopt(const SavedEdges& saved) {
  if (!Due(parts_.membership->view())) return absl::OkStatus();
  const std::shared_ptr<const View> shared = parts_.membership->SharedView();
  const View& newest = *shared;
  const bool first = !in_fleet();
  GOSSAMER_RETURN_IF_ERROR(CheckView(newest, spec_, first));
  GOSSAMER_ASSIGN_OR_RETURN(schedule_,
                            ScheduleOf(parts_.make_schedule, newest));
  // A view with other options of the same members can be repeated; one with
  // other members cannot (decisions.h).
  const bool others = !first && newest.members != view().members;
  if (others) parts_.decisions->NoteMembers(parts_.state->round());
  view_ = shared;
  rank_ = *newest.RankOf(spec_.self);
  parts_.drop_members(newest);
  GOSSAMER_RETURN_IF_ERROR(AdoptOverlap(newest.overlap_steps));
  if (first) {
    // The service says where an incarnation begins; a round that this peer
    // counted before belongs to an earlier one.
    parts_.state->set_round(newest.resume_round != 0
                                ? newest.resume_round
                                : std::max<uint64_t>(1, newest.from_round));
  }
  return parts_.connect(first, saved);
}

void AdoptedView::ReportOverlap(int before) {
  const Reporter& reporter = *parts_.reporter;
  parts_.reporter->Report(
      "overlap",
      absl::StrFormat("overlap_steps %d from round %d (was %d); measured "
                      "here: a round without waiting %.1f ms, an exchange "
                      "%.1f ms",
                      overlap_, parts_.state->round(), before,
                      1e3 * reporter.median_busy(),
                      1e3 * reporter.long_exchange()));
}

absl::Status AdoptedView::AdoptOverlap(int overlap) {
  const int before = overlap_;
  overlap_ = spec_.overlap_steps;
  // Only a chosen overlap is kept in the log: one of the configuration is the
  // same at a replay.
  if (overlap_ == kAutoOverlap) {
    overlap_ = std::clamp(overlap, 1, kMaxOverlap);
    parts_.decisions->NoteOverlap(parts_.state->round(), overlap_);
    ReportOverlap(before);
  }
  // The service chooses h by the timing of rounds in this view; rounds of
  // another overlap would mislead it.
  parts_.reporter->ResetRoundTiming();
  GOSSAMER_ASSIGN_OR_RETURN(gamma_, StepSize());
  if (spec_.chebyshev) {
    if (!schedule_->is_static()) {
      // The weights follow from the eigenvalues of one matrix.
      return absl::InvalidArgumentError(
          "mixing.chebyshev needs the same graph every round");
    }
    omega_ = ChebyshevWeights(ContractionOfNorm(*schedule_, gamma_),
                              spec_.mixing_rounds);
  }
  // Damping lowers this ratio for the age that it sees (damping.h).
  parts_.neighborhood->SetOverlap(
      overlap_, kDampedMargin * StableStepSize(*schedule_, /*age=*/0) / gamma_);
  return absl::OkStatus();
}

absl::StatusOr<float> AdoptedView::StepSize() const {
  const float wanted =
      spec_.gamma > 0 ? static_cast<float>(spec_.gamma) : parts_.codec->gamma();
  const int age = overlap_ - 1;
  // With h ≤ 1 a correction acts on the x that its exchange began with: the
  // codec's γ is stable there.
  if (spec_.centralized() || age < 1) return wanted;
  const double bound = StableStepSize(*schedule_, age);
  // A γ of the configuration is refused instead of lowered: a person has set
  // it, and would read results as if it held.
  if (spec_.gamma == 0) {
    return std::min(wanted, static_cast<float>(bound * kMargin));
  }
  if (spec_.gamma < bound) return wanted;
  return absl::InvalidArgumentError(absl::StrCat(
      "mixing.gamma ", spec_.gamma, " is not stable with overlap_steps ",
      overlap_, " on this schedule: it must be below ", bound,
      "; leave it out to get ", bound * kMargin));
}

std::vector<RowEntry> AdoptedView::RowOf(uint64_t round) const {
  std::vector<RowEntry> row;
  if (parts_.codec->Due(round).empty()) return row;
  for (const Neighbor& n : schedule_->Row(rank_, round).neighbors) {
    row.push_back({view().members[static_cast<size_t>(n.rank)].id,
                   gamma_ * static_cast<float>(n.weight)});
  }
  return row;
}

}  // namespace gossamer
