#include "runtime/peer/joiner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

absl::Status NotInTheFleet(absl::Duration limit) {
  return absl::DeadlineExceededError(absl::StrCat(
      "not in the fleet within ", absl::FormatDuration(limit),
      " (mixing.liveness_limit); start the missing peers, or look at the "
      "topology service's status"));
}

}  // namespace

Joiner::Joiner(const PeerSpec& spec, Parts parts)
    : spec_(spec), parts_(std::move(parts)) {}

// Returns whether there is a view, or a reason for which none will come.
bool Joiner::Answered() const {
  const Membership& m = *parts_.membership;
  return m.view().epoch != 0 || m.outside() ||
         parts_.lifecycle->out_of_time() || m.stop().committed ||
         !m.refused().ok();
}

Task<absl::Status> Joiner::Join() {
  Membership* const m = parts_.membership;
  // One limit holds for all attempts: registering again or collecting again
  // does not begin the time anew.
  const absl::Time limit = parts_.loop->Now() + spec_.liveness_limit;
  while (!parts_.lifecycle->over()) {
    const bool news = co_await parts_.waiter->Until(
        [this, m] {
          // Donors are of interest once: with a restored state the peer only
          // waits to be admitted.
          if (Answered() || (!unadmitted_state_ && !m->donors().empty()))
            return true;
          parts_.resume->Tick();
          return parts_.resume->round().has_value();
        },
        limit, [this] { return parts_.resume->next_tick(); });
    if (parts_.lifecycle->out_of_time()) {
      co_return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kLeft);
    }
    if (!news) co_return NotInTheFleet(spec_.liveness_limit);
    if (m->view().epoch != 0) {
      // A view comes before a refusal or a stop: a peer that is a member
      // follows the fleet's rounds to the stop.
      Task<absl::Status> taken = AdoptFirstView();
      GOSSAMER_CO_RETURN_IF_ERROR(co_await taken.result());
      if (parts_.lifecycle->state() == Lifecycle::State::kTraining) {
        co_return absl::OkStatus();
      }
      continue;
    }
    GOSSAMER_CO_RETURN_IF_ERROR(m->refused());
    if (parts_.resume->round()) {
      Task<absl::Status> gone_on = ResumeFromLastView();
      GOSSAMER_CO_RETURN_IF_ERROR(co_await gone_on.result());
      if (parts_.lifecycle->state() == Lifecycle::State::kTraining) {
        co_return absl::OkStatus();
      }
      continue;
    }
    if (m->stop().committed) {
      // The others have ended without this peer.
      co_return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kStopped);
    }
    // Donors that never give would have it ask for ever.
    if (parts_.loop->Now() >= limit) {
      co_return NotInTheFleet(spec_.liveness_limit);
    }
    if (m->outside()) {
      // The service gave this peer up while it waited: it was frozen, or the
      // service away.
      m->Rejoin(/*trained=*/unadmitted_state_ || parts_.state->steps() > 0);
      continue;
    }
    Task<absl::Status> collected = Collect();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await collected.result());
  }
  co_return absl::OkStatus();
}

// Begins by the view that is known, unless it is over by the time that the
// checkpoints have been read.
Task<absl::Status> Joiner::AdoptFirstView() {
  // Kept: another view may come while the checkpoints are read.
  const std::shared_ptr<const View> shared = parts_.membership->SharedView();
  const View& view = *shared;
  if (view.DepartureOf(spec_.self)) {
    co_return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kLeft);
  }
  // The check comes before files of gigabytes are read for a view that cannot
  // be.
  GOSSAMER_CO_RETURN_IF_ERROR(CheckView(view, spec_, /*first=*/true));
  const auto out_of_time = [this] { return parts_.lifecycle->out_of_time(); };
  Task<absl::StatusOr<Checkpointer::Resumed>> resume =
      parts_.checkpointer->Resume(view, out_of_time);
  const absl::StatusOr<Checkpointer::Resumed> resumed =
      co_await resume.result();
  GOSSAMER_CO_RETURN_IF_ERROR(resumed.status());
  // Reading took time, in which the service may have evicted this peer or let
  // it go.
  const View& now = parts_.membership->view();
  const bool gone = now.epoch == 0 || now.DepartureOf(spec_.self);
  if (gone || out_of_time()) {
    // A service that has lost this peer lets it in with what members give; a
    // peer without time for that keeps what it restored.
    if (out_of_time()) unadmitted_state_ = unadmitted_state_ || resumed->state;
    co_return absl::OkStatus();
  }
  // From here on the parameters are a member's own.
  unadmitted_state_ = false;
  GOSSAMER_CO_RETURN_IF_ERROR(
      parts_.lifecycle->Apply(Lifecycle::Event::kAdmitted));
  co_return parts_.views->Adopt(resumed->edges);
}

// The service does not answer, and members of the last view train by it:
// they wait for this peer, or have been going on without it.
Task<absl::Status> Joiner::ResumeFromLastView() {
  const uint64_t theirs = *parts_.resume->round();
  parts_.membership->ResumeFromLastView();
  Task<absl::Status> taken = AdoptFirstView();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await taken.result());
  if (parts_.lifecycle->state() != Lifecycle::State::kTraining) {
    co_return absl::OkStatus();
  }
  // No log repeats what others did meanwhile.
  parts_.decisions->NoteMembers(parts_.state->round());
  // The rounds between would be trained alone, while the others wait.
  parts_.state->set_round(std::max(parts_.state->round(), theirs));
  parts_.reporter->Report(
      "resumed_without_service",
      absl::StrFormat("the topology service does not answer, members of view "
                      "%d are in round %d: this peer goes on there from its "
                      "checkpoint of round %d",
                      parts_.views->view().epoch, theirs,
                      parts_.views->view().resume_round));
  co_return absl::OkStatus();
}

// The state comes from members, as the median of theirs, and is waited for
// until a view says that it is not needed.
Task<absl::Status> Joiner::Collect() {
  Task<absl::StatusOr<bool>> collect =
      parts_.sharing->Collect([this] { return Answered(); });
  const absl::StatusOr<bool> collected = co_await collect.result();
  // An error is one of this peer's own state.  A donor's failure is a report,
  // and another donor is asked.
  GOSSAMER_CO_RETURN_IF_ERROR(collected.status());
  if (!*collected) co_return absl::OkStatus();
  parts_.decisions->NoteMembers(parts_.state->round());
  unadmitted_state_ = true;
  parts_.membership->SetReady();
  co_return absl::OkStatus();
}

absl::Status Joiner::BeginIncarnation() {
  // The lifecycle may refuse, so it is asked before anything is given up.  The
  // log ends before the edges do: what they carried depends on the moment.
  GOSSAMER_RETURN_IF_ERROR(
      parts_.lifecycle->Apply(Lifecycle::Event::kNewIncarnation));
  parts_.decisions->NoteMembers(parts_.state->round());
  parts_.give_up_edges();
  parts_.health->BeginIncarnation();
  return absl::OkStatus();
}

void Joiner::ReportRejoined() {
  parts_.reporter->Report(
      "rejoined",
      absl::StrFormat("at round %d of view %d", parts_.state->round(),
                      parts_.views->view().epoch));
}

Task<absl::Status> Joiner::Rejoin() {
  parts_.reporter->Report(
      "outside",
      "the fleet has gone on without this peer; it registers again "
      "with the parameters that it has");
  GOSSAMER_CO_RETURN_IF_ERROR(BeginIncarnation());
  if (parts_.membership->stop().committed) {
    // The others end without this peer.
    co_return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kStopped);
  }
  parts_.membership->Rejoin(/*trained=*/true);
  Task<absl::Status> join = Join();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await join.result());
  if (!parts_.lifecycle->over()) ReportRejoined();
  co_return absl::OkStatus();
}

Task<absl::Status> Joiner::Recover() {
  GOSSAMER_CO_RETURN_IF_ERROR(parts_.health->MayRecover());
  // Recover() resets it; the report below says which of the two failed.
  const bool sound = parts_.health->sound();
  // A fleet that stops has no time for a recovery; if the service does not know
  // this peer at the moment, the next boundary asks again.
  if (parts_.membership->stop().committed ||
      !parts_.membership->RenewIncarnation()) {
    co_return absl::OkStatus();
  }
  parts_.health->Recover();
  parts_.reporter->Report(
      "spoilt",
      absl::StrFormat("%s; this peer gives its edges up and begins anew with "
                      "what members have (%d of at most %d times in a row)",
                      sound ? "no step has succeeded for long"
                            : "its parameters are not finite, or beyond "
                              "1e6",
                      parts_.health->in_a_row(), Health::kMaxInARow));
  // The checkpoint in hand waits for edges of the incarnation that ends here.
  parts_.checkpointer->Discard();
  unadmitted_state_ = false;
  // A peer with steps that is evicted while it waits would register as trained
  // (Join), and bring the lost parameters back.
  parts_.state->set_steps(0);
  GOSSAMER_CO_RETURN_IF_ERROR(BeginIncarnation());
  Task<absl::Status> join = Join();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await join.result());
  if (parts_.lifecycle->over()) co_return absl::OkStatus();
  if (!parts_.state->Sound()) {
    co_return absl::DataLossError(absl::StrFormat(
        "round %d: this peer's parameters are nonsense, and the fleet begins "
        "anew: no member has others to give; start this peer again, so that it "
        "begins with its first ones",
        parts_.state->round()));
  }
  ReportRejoined();
  co_return absl::OkStatus();
}

}  // namespace gossamer
