#include "runtime/peer/round_loop.h"

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Of the time between the end of a leave's limit and that of the process, the
// part in which a program may write its state out.
constexpr absl::Duration kLastState = absl::Seconds(1);

}  // namespace

// Each Task is kept in a variable: it must outlive the wait for its result
// (task.h).
Task<absl::Status> RoundLoop::Run() {
  Task<absl::Status> join = parts_.joiner->Join();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await join.result());
  if (!parts_.lifecycle->over()) {
    parts_.checkpointer->Reserve();
    parts_.evaluation->Reserve();
  }
  while (!parts_.lifecycle->over() && parts_.state->round() <= spec_.rounds) {
    Task<absl::Status> begin = Begin();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await begin.result());
    if (parts_.lifecycle->over()) break;
    Task<absl::Status> round = Round();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await round.result());
  }
  if (!parts_.lifecycle->over()) {
    GOSSAMER_CO_RETURN_IF_ERROR(
        parts_.lifecycle->EndRounds(Lifecycle::Outcome::kFinished));
  }
  Task<absl::Status> finish = Finish();
  co_return co_await finish.result();
}

// This is the boundary before a round, which settles the view that it is of and
// whether it comes.
Task<absl::Status> RoundLoop::Begin() {
  // A device that has failed computes nothing more, and what it gives is zeros.
  GOSSAMER_CO_RETURN_IF_ERROR(parts_.state->queue().status());
  // The view comes first: what follows asks about the members and the
  // departures of the view that this round belongs to.
  GOSSAMER_CO_RETURN_IF_ERROR(parts_.views->Adopt());
  // Peer::OnMembership has dropped the edges already, so the round in which
  // this peer was evicted has ended by itself.
  if (parts_.membership->outside()) {
    Task<absl::Status> rejoin = parts_.joiner->Rejoin();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await rejoin.result());
    if (parts_.lifecycle->over()) co_return absl::OkStatus();
  }
  // Until here the service may still send this peer to another checkpoint; from
  // here on it trains by this view.
  parts_.membership->ViewAdopted();
  Task<bool> stop = parts_.stop->AtStop();
  if (co_await stop.result()) {
    parts_.decisions->NoteStop(parts_.state->round());
    co_return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kStopped);
  }
  if (parts_.stop->Leaves()) {
    co_return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kLeft);
  }
  // From here on this peer cannot promise any longer to stop before this round,
  // so the question for a stop has to come before (StopState).
  parts_.membership->BeginRound(parts_.state->round());
  co_return absl::OkStatus();
}

Task<absl::Status> RoundLoop::Round() {
  const absl::Time started = parts_.loop->Now();
  RoundMetrics& metrics = parts_.reporter->metrics();
  // The trainers add to both several times in one round.
  metrics.seconds_computing = metrics.seconds_waiting = 0;
  Task<absl::Status> trained = parts_.trainer->Round();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await trained.result());
  // The rounds ended within this one, as in a centralized fleet that stops: it
  // has no metrics, and no checkpoint may be of its middle.
  if (parts_.lifecycle->over()) co_return absl::OkStatus();
  GOSSAMER_CO_RETURN_IF_ERROR(parts_.state->queue().status());
  parts_.health->EndRound();
  Task<absl::Status> recovered = RecoverIfDiverged();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await recovered.result());
  // The recovery has begun another incarnation at another round: what was
  // measured belongs to none of its rounds.
  if (parts_.health->rounds() == 0) co_return absl::OkStatus();
  // The evaluation comes before the report, which carries its score.
  Task<bool> evaluated = parts_.evaluation->Run(parts_.trainer->IsLast());
  co_await evaluated.result();
  parts_.reporter->EndRound(started, *parts_.neighborhood,
                            parts_.health->recoveries());
  // A checkpoint bears the round that comes next, which a jump changes: it is
  // decided before the checkpoint is begun.
  parts_.state->set_round(DecideNextRound());
  parts_.checkpointer->WriteIfSealed();
  if (parts_.checkpointer->Begins()) {
    Task<bool> prepared = PrepareState(absl::ZeroDuration());
    if (!co_await prepared.result()) co_return absl::OkStatus();
  }
  parts_.checkpointer->BeginIfDue();
  parts_.checkpointer->WriteIfSealed();
  co_return absl::OkStatus();
}

// In a centralized fleet all peers have one x, so no member has a better one;
// and a replay has no members that give states.
Task<absl::Status> RoundLoop::RecoverIfDiverged() {
  if (spec_.centralized() || parts_.decisions->replays() ||
      !parts_.health->Diverged()) {
    co_return absl::OkStatus();
  }
  Task<absl::Status> recover = parts_.joiner->Recover();
  co_return co_await recover.result();
}

Task<bool> RoundLoop::PrepareState(absl::Duration least) {
  const absl::Time until = parts_.loop->Now() + least;
  const std::function<bool()> enough = [this, until] {
    return parts_.lifecycle->out_of_time() && parts_.loop->Now() >= until;
  };
  co_await parts_.state->Prepared(*parts_.waiter, *parts_.loop, enough);
  co_return parts_.state->Prepare();
}

uint64_t RoundLoop::DecideNextRound() {
  const uint64_t round = parts_.state->round();
  if (parts_.decisions->replays()) return parts_.decisions->Next(round);
  const uint64_t next = parts_.trainer->NextRound();
  if (next != round + 1) parts_.decisions->NoteJump(round, next);
  return next;
}

Task<absl::Status> RoundLoop::Finish() {
  const Lifecycle& lifecycle = *parts_.lifecycle;
  const bool in_fleet = parts_.views->in_fleet();
  if (lifecycle.stopped() && !in_fleet) {
    parts_.reporter->Report("ended_without",
                            "the run is over; this peer was not in it then");
  }
  // A peer that waits to begin, or to begin again with what it got, has nothing
  // of its own: saved as of a round that it knows from before, it would set
  // aside later ones that the others share.
  bool own = in_fleet || (parts_.state->steps() > 0 &&
                          !parts_.joiner->has_unadmitted_state());
  own = own && parts_.trainer->AtBoundary();
  if (own && parts_.checkpointer->saves()) {
    Task<bool> prepared = PrepareState(kLastState);
    own = co_await prepared.result();
    if (!own) {
      parts_.reporter->Report("checkpoint_failed",
                              "the program's state was not at hand when the "
                              "time was up; the checkpoints before stay");
    }
  }
  parts_.checkpointer->BeginLast(own);
  // A peer that goes alone is to the others as if it had died.
  if (!lifecycle.out_of_time()) parts_.trainer->AnnounceEnd();
  Task<bool> drained = parts_.drain->Run();
  co_await drained.result();
  // A peer that leaves, or whose time is up, has none for older checkpoints and
  // for scores.
  const bool hurries = lifecycle.left() || lifecycle.out_of_time();
  Task<bool> saved = parts_.checkpointer->Finish(hurries);
  co_await saved.result();
  if (!hurries && !lifecycle.out_of_time()) {
    Task<bool> scored = parts_.evaluation->Finish();
    co_await scored.result();
  }
  parts_.reporter->ReportConnections(/*last=*/true);
  if (lifecycle.left()) {
    parts_.reporter->Report(
        "left", absl::StrCat("before round ", parts_.state->round()));
  }
  // The last transition comes after the files are written: an ended peer has
  // nothing left to do.
  co_return parts_.lifecycle->Apply(Lifecycle::Event::kSettled);
}

}  // namespace gossamer
