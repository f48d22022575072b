#include "runtime/peer/gossip_trainer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// The time that a round of a fleet with deadlines waits for neighbours whose
// epochs are not known yet; and the time once a known neighbour waits for this
// peer.
constexpr absl::Duration kAwaitLimit = absl::Seconds(5);
constexpr absl::Duration kAwaitedLimit = absl::Milliseconds(500);
// The time that the end of a run waits for neighbours that are not connected.
// A neighbour may be rounds behind, or wait for others that are, and needs this
// peer's last payloads: leaving before they are complete there would move the
// mean.
constexpr absl::Duration kDrainLimit = absl::Seconds(10);
// The time between two polls of a device: a snapshot takes some of them.
constexpr absl::Duration kDevicePollInterval = absl::Microseconds(50);

}  // namespace

GossipTrainer::GossipTrainer(const PeerSpec& spec, Parts parts)
    : spec_(spec),
      parts_(std::move(parts)),
      neighborhood_(*parts_.neighborhood),
      common_(parts_.step->hooks(), parts_.state->queue()) {
  // A method without common state has no hooks that an observer could call.
  if (common_.extent().size > 0) {
    neighborhood_.AddObservers([this](PeerId) { return &common_; });
  }
}

absl::Status GossipTrainer::OnView(bool first, const SavedEdges& saved) {
  const View& view = parts_.views->view();
  const uint64_t round = parts_.state->round();
  // Duals and tracked gradients of an earlier incarnation were given back where
  // its edges ended.
  if (first && view.resume_round == 0) common_.OnNewIncarnation();
  if (first && view.resume_round != 0) {
    common_.Restored(saved);
    // Exchanges in flight at the checkpoint are due as they were then.
    const auto h = static_cast<uint64_t>(parts_.views->overlap());
    for (uint64_t r = round; r-- > 1 && r + h > round;) {
      rows_[r] = parts_.views->RowOf(r);
    }
  }
  // Edges come before the watch: it watches those that there are.
  GOSSAMER_RETURN_IF_ERROR(parts_.edges->Connect(
      parts_.views->shared_view(), parts_.views->shared_schedule(), saved));
  parts_.watch->Refresh();
  // A replay waits for its peers as long as they take: a suspicion would have
  // one evicted, by the clock.
  if (!parts_.decisions->replays()) parts_.watch->Start();
  // Nobody can wait for a peer that no view has named before.
  return first && !parts_.membership->first_named()
             ? parts_.edges->AnnounceEpoch(
                   view, parts_.membership->resumed_from_last_view())
             : absl::OkStatus();
}

void GossipTrainer::OnAnswer() {
  round_chooser_.Answered(parts_.state->round());
}

Task<absl::Status> GossipTrainer::Round() {
  const uint64_t round = parts_.state->round();
  // A replay changes h at the rounds at which the run did.
  if (const auto overlap = parts_.decisions->Overlap(round)) {
    GOSSAMER_CO_RETURN_IF_ERROR(parts_.views->AdoptOverlap(*overlap));
  }
  GOSSAMER_CO_RETURN_IF_ERROR(parts_.edges->OnRound());
  // A view with less overlap makes more due at once.
  Task<absl::Status> due = CompleteDue(round);
  GOSSAMER_CO_RETURN_IF_ERROR(co_await due.result());
  // The row is kept: a later view may change the rows of later rounds, but this
  // exchange is due with the neighbours that it was emitted to.  A reference
  // into a map stays valid while other rounds are erased.
  const Row& row = rows_[round] = parts_.views->RowOf(round);
  Task<bool> met = AwaitNeighbours(row, MakeExchangeId(round));
  co_await met.result();
  if (parts_.views->overlap() > 0) {
    Task<absl::Status> overlapped = Overlapped(row);
    co_return co_await overlapped.result();
  }
  // With h = 0 the two halves come one after the other: x ← W(x − ηg) if the
  // step comes first, else x ← Wx − ηg.
  for (const bool mix : {!spec_.step_then_mix, spec_.step_then_mix}) {
    Task<absl::Status> half = mix ? Mix(row) : Step();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await half.result());
  }
  rows_.erase(round);
  co_return absl::OkStatus();
}

// The exchange of this round hides behind this round's step and those of the
// next h − 1.
Task<absl::Status> GossipTrainer::Overlapped(const Row& row) {
  const uint64_t round = parts_.state->round();
  Task<absl::Status> emit = Emit(row, MakeExchangeId(round));
  GOSSAMER_CO_RETURN_IF_ERROR(co_await emit.result());
  Task<absl::Status> step = Step();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await step.result());
  Task<absl::Status> complete = CompleteDue(round + 1);
  co_return co_await complete.result();
}

// x ← W^t x, or the polynomial of W that Chebyshev found better: t exchanges
// one after the other.
Task<absl::Status> GossipTrainer::Mix(const Row& row) {
  Row weighted = row;
  for (int phase = 0; phase < spec_.mixing_rounds; ++phase) {
    const ExchangeId id =
        MakeExchangeId(parts_.state->round(), static_cast<uint32_t>(phase));
    // The weights go into the coefficients that the payloads carry, so that
    // both ends of an edge correct by the same one.
    const double omega = spec_.chebyshev ? parts_.views->omega()[phase] : 1;
    for (size_t i = 0; i < row.size(); ++i) {
      weighted[i].coefficient = static_cast<float>(omega * row[i].coefficient);
    }
    if (spec_.chebyshev) {
      // x is copied: the corrections of this phase change it in place.
      const DeviceSpan<const float> x = parts_.state->parameters();
      before_.EnsureSize(parts_.state->queue(), x.size,
                         "the parameters before");
      parts_.state->queue().Copy(x, before_.span());
    }
    Task<absl::Status> emit = Emit(weighted, id);
    GOSSAMER_CO_RETURN_IF_ERROR(co_await emit.result());
    Task<absl::Status> wait = Await(row, id);
    GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
    Task<absl::Status> complete = Complete(id + 1);
    GOSSAMER_CO_RETURN_IF_ERROR(co_await complete.result());
    if (spec_.chebyshev) Accelerate(omega);
  }
  co_return absl::OkStatus();
}

// x += (ω − 1)·(what the phase before moved it).  Both ends of an edge move by
// opposite corrections, so the mean stays where it is.
void GossipTrainer::Accelerate(double omega) {
  const DeviceSpan<float> x = parts_.state->parameters();
  const DeviceQueue& queue = parts_.state->queue();
  // The first ω of a round is 1, so a move of the round before is never added.
  if (omega != 1) {
    queue.Run(&DeviceKernels::axpy, static_cast<float>(omega - 1), moved_, x);
  }
  moved_.EnsureSize(queue, x.size, "the last move");
  queue.Copy(x, moved_.span());
  queue.Run(&DeviceKernels::axpy, -1.0f, before_, moved_);
}

Task<absl::Status> GossipTrainer::Emit(std::span<const RowEntry> row,
                                       ExchangeId id) {
  // In a run a payload without room becomes a skip; a replay waits until there
  // is room, since it was a payload then.
  Task<absl::Status> room =
      Repeat([=, this] { return neighborhood_.CanEmit(row, id); });
  GOSSAMER_CO_RETURN_IF_ERROR(co_await room.result());
  const bool on_host = parts_.state->queue().on_host();
  if (!on_host) {
    parts_.state->BeginValidityCheck();
    Task<absl::Status> looked = DeviceDone();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await looked.result());
  }
  neighborhood_.Emit(row, id, Contributes());
  if (!on_host) {
    // Frames wait at their edges until the device has encoded what they carry.
    Task<absl::Status> encoded = DeviceDone();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await encoded.result());
    neighborhood_.SendReady();
  }
  co_return absl::OkStatus();
}

// The loop serves others while the device works.
Task<absl::Status> GossipTrainer::DeviceDone() {
  DeviceFence fence = parts_.state->queue().RecordFence();
  const bool done = co_await parts_.waiter->Until(
      [&fence] { return fence.done(); },
      parts_.loop->Now() + spec_.liveness_limit,
      [this] { return parts_.loop->Now() + kDevicePollInterval; });
  if (done) co_return parts_.state->queue().status();
  co_return absl::DeadlineExceededError(absl::StrCat(
      "round ", parts_.state->round(), ": the device has not finished in ",
      absl::FormatDuration(spec_.liveness_limit),
      " (mixing.liveness_limit); look at it with nvidia-smi, and resume from "
      "the checkpoint"));
}

// A payload with an infinity would spoil the neighbours: an edge skips it.
bool GossipTrainer::Contributes() {
  if (parts_.health->Check()) return true;
  parts_.reporter->Report("nonfinite_parameters",
                          "this peer's parameters are not finite, or beyond "
                          "1e6; it contributes nothing");
  return false;
}

Task<absl::Status> GossipTrainer::Step() {
  const absl::Time started = parts_.loop->Now();
  // Between these marks the compute engine owns x: no state is offered, and
  // what edges give back waits.
  parts_.state->BeginStep();
  common_.BeginStep();
  co_await parts_.runner->Run([this] {
    parts_.runner->LocalSteps(parts_.views->rank());
    parts_.state->UpdateAverage();
  });
  parts_.state->EndStep();
  common_.EndStep();
  parts_.after_step();
  parts_.reporter->metrics().seconds_computing +=
      absl::ToDoubleSeconds(parts_.loop->Now() - started);
  co_return absl::OkStatus();
}

Task<absl::Status> GossipTrainer::Complete(ExchangeId limit) {
  // In a run only what has come is completed; a replay waits for as much as was
  // completed then.
  Task<absl::Status> all =
      Repeat([=, this] { return neighborhood_.CanComplete(limit); });
  GOSSAMER_CO_RETURN_IF_ERROR(co_await all.result());
  neighborhood_.Complete(limit);
  co_return absl::OkStatus();
}

// Completes what is due before `round` begins: the exchanges of max(1, h)
// rounds ago and older, never a newer one, however early it came.
Task<absl::Status> GossipTrainer::CompleteDue(uint64_t round) {
  const auto h = static_cast<uint64_t>(std::max(1, parts_.views->overlap()));
  while (!rows_.empty() && rows_.begin()->first + h <= round) {
    const auto& [of, row] = *rows_.begin();
    Task<absl::Status> wait = Await(row, MakeExchangeId(of));
    GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
    rows_.erase(rows_.begin());
  }
  // The first exchanges are not due yet, and the difference would wrap around.
  if (round <= h) co_return absl::OkStatus();
  Task<absl::Status> complete = Complete(MakeExchangeId(round - h + 1));
  co_return co_await complete.result();
}

// Without deadlines both epochs of every edge have to be known.  With them, a
// peer that cannot be reached must not hold up the others: once one of them has
// begun the round it waits for this peer.
Task<bool> GossipTrainer::AwaitNeighbours(std::span<const RowEntry> row,
                                          ExchangeId id) {
  // A first exchange waits until both epochs are known; otherwise timing would
  // decide whether it is a skip (PROTOCOL.md 9).
  absl::Time limit = parts_.loop->Now() + spec_.liveness_limit;
  const bool no_deadlines = spec_.deadline.kind == DeadlinePolicy::Kind::kNone;
  if (!no_deadlines) limit = std::min(limit, parts_.loop->Now() + kAwaitLimit);
  absl::Time awaited = absl::InfiniteFuture();
  co_return co_await parts_.waiter->Until(
      [&] {
        // This is asked again at each wake-up: the time begins when the first
        // neighbour is seen in this round.
        if (!no_deadlines && !neighborhood_.NoneHeard(id)) {
          awaited = std::min(awaited, parts_.loop->Now() + kAwaitedLimit);
        }
        return neighborhood_.HandshakesDone(row) ||
               parts_.health->donation_failed() || parts_.stop->EndedBehind() ||
               parts_.loop->Now() >= awaited;
      },
      limit, [&] { return awaited; });
}

// `row` stays as it is meanwhile.
Task<absl::Status> GossipTrainer::Await(std::span<const RowEntry> row,
                                        ExchangeId id) {
  // A replay completes what its log says and waits for that in Complete().
  if (parts_.decisions->replays()) co_return absl::OkStatus();
  const absl::Duration length = parts_.reporter->round_length();
  const absl::Time started = parts_.loop->Now();
  const bool arrived = co_await parts_.waiter->Until(
      [=, this] {
        // Edges that have become overdue are marked before the question, which
        // changes nothing itself.
        neighborhood_.UpdateOverdue(row, id, length);
        return neighborhood_.Arrived(row, id, length) ||
               parts_.stop->EndedBehind() || parts_.health->donation_failed();
      },
      started + spec_.liveness_limit,
      [=, this] { return neighborhood_.NextDeadline(row, id, length); });
  parts_.reporter->metrics().seconds_waiting +=
      absl::ToDoubleSeconds(parts_.loop->Now() - started);
  if (arrived) co_return absl::OkStatus();
  const std::vector<PeerId> missing = neighborhood_.Missing(row, id);
  co_return absl::DeadlineExceededError(absl::StrCat(
      "round ", RoundOf(id), ": no word from peer ",
      absl::StrJoin(
          missing, ", ",
          [](std::string* out, PeerId p) { absl::StrAppend(out, p.value); }),
      " for ", absl::FormatDuration(spec_.liveness_limit),
      " (mixing.liveness_limit); look at that peer's log, or set "
      "mixing.deadline to go on without slow peers"));
}

// Waits at a replay until what was done can be done again.
Task<absl::Status> GossipTrainer::Repeat(std::function<bool()> possible) {
  if (!parts_.decisions->replays()) co_return absl::OkStatus();
  const bool can = co_await parts_.waiter->Until(
      possible, parts_.loop->Now() + spec_.liveness_limit);
  if (can) co_return absl::OkStatus();
  co_return absl::DeadlineExceededError(absl::StrCat(
      "round ", parts_.state->round(),
      " does not go on as the log says within ",
      absl::FormatDuration(spec_.liveness_limit),
      " (mixing.liveness_limit): all peers must replay their logs of one run"));
}

// Without deadlines no peer gets far ahead of its neighbours.
uint64_t GossipTrainer::NextRound() {
  const uint64_t round = parts_.state->round();
  if (spec_.deadline.kind == DeadlinePolicy::Kind::kNone) return round + 1;
  const Membership& m = *parts_.membership;
  const StopState stop = m.stop();
  // A jump over the agreed round would miss the stop.
  const bool stops = stop.round != 0 && round + 1 <= stop.round;
  // The chooser knows neither views nor the service: all that it judges by is
  // in `seen`.
  RoundsSeen seen = neighborhood_.ObservedRounds();
  seen.static_graph = parts_.views->schedule().is_static();
  seen.pair = parts_.views->view().members.size() <= 2;
  seen.fleet = m.fleet_round();
  seen.second = m.second_round();
  seen.last = stops ? std::min(stop.round, spec_.rounds) : spec_.rounds;
  return round_chooser_.Next(round, parts_.views->overlap(), seen);
}

// Nobody waits for all at the end: an exchange that had not come in time then
// is not complete in a replay, either.
bool GossipTrainer::CompleteAtEnd(ExchangeId limit) {
  if (parts_.decisions->replays() && !neighborhood_.CanComplete(limit)) {
    return false;
  }
  neighborhood_.Complete(limit);
  return true;
}

// The exchanges are completed as each round would have done, in order, so that
// the end of a run has the same bits whatever comes first.
bool GossipTrainer::Drain() {
  while (!rows_.empty()) {
    const auto& [round, row] = *rows_.begin();
    if (!neighborhood_.Missing(row, MakeExchangeId(round)).empty()) {
      return false;
    }
    if (!CompleteAtEnd(MakeExchangeId(round + 1))) return false;
    rows_.erase(rows_.begin());
  }
  // Exchanges of edges that are in no row any more come last, as at a boundary.
  CompleteAtEnd(MakeExchangeId(parts_.state->round()));
  return true;
}

absl::Duration GossipTrainer::DrainLimit() const { return kDrainLimit; }

}  // namespace gossamer
