#include "runtime/peer/peer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "runtime/neighborhood/wrap_watch.h"

namespace gossamer {

absl::StatusOr<std::unique_ptr<Peer>> Peer::Create(PeerSpec spec, Parts parts) {
  GOSSAMER_RETURN_IF_ERROR(CheckPeerSpec(spec, *parts.step, *parts.codec));
  return std::unique_ptr<Peer>(new Peer(std::move(spec), std::move(parts)));
}

Peer::Peer(PeerSpec spec, Parts parts)
    : spec_(std::move(spec)),
      parts_(std::move(parts)),
      common_(parts_.step->hooks()),
      decisions_(parts_.decisions != nullptr ? *parts_.decisions : unkept_),
      key_(RngKey(spec_.seed).Fold("step")),
      waiter_(parts_.loop),
      neighborhood_({.self = spec_.self,
                     .run_id = spec_.run_id,
                     .epoch = spec_.epoch,
                     .window = spec_.overlap_steps == kAutoOverlap
                                   ? kMaxOverlap
                                   : std::max(1, spec_.overlap_steps),
                     .layout = parts_.game->layout().fingerprint(),
                     .deadline = spec_.deadline,
                     .clip_radius = spec_.clip_radius,
                     .summed = common_.extent(),
                     .largest = spec_.largest_parameter},
                    parts_.loop, parts_.transport, parts_.game->parameters()),
      all_reducer_(parts_.transport),
      detector_(spec_.suspect_after),
      donor_(SendStateFrames()),
      prober_(parts_.loop, [this](PeerId peer, Frame frame) {
        return parts_.transport->Send(peer, Channel::kProbe, std::move(frame));
      }) {
  neighborhood_.SetDecisions(&decisions_);
  if (common_.extent().size > 0) {
    neighborhood_.AddObservers([this](PeerId) { return &common_; });
  }
  std::shared_ptr<WrapWatch> wraps = WrapWatch::Create(
      parts_.codec, parts_.game->layout(),
      [this](const std::string& detail) { Tell("moniqua_wraps", detail); });
  if (wraps != nullptr) {
    neighborhood_.AddObservers([wraps](PeerId) { return wraps.get(); });
  }
  neighborhood_.SetOnChange([this] { waiter_.Notify(); });
  neighborhood_.SetOnEvent(
      [this](EventKind kind, const std::string& detail, uint64_t times) {
        Tell(kind, detail, times);
      });
  neighborhood_.SetOnFrame(Channel::kProbe, [this](PeerId peer, Frame frame) {
    prober_.OnFrame(peer, frame);
  });
  prober_.SetOnTold(
      [this](PeerId peer) { detector_.HeardThroughOthers(peer); });
  neighborhood_.SetOnFrame(Channel::kState, [this](PeerId peer, Frame frame) {
    const absl::Time now = parts_.loop->Now();
    if (collector_) collector_->OnFrame(peer, frame, now);
    donor_.OnFrame(peer, frame, now);
    OfferState();
  });
  neighborhood_.SetOnFrame(
      Channel::kCollective,
      [this, refused = Repeated()](PeerId peer, Frame frame) mutable {
        const absl::Status status = all_reducer_.OnFrame(peer, frame);
        if (status.ok()) return;
        const uint64_t news = refused.Due(parts_.loop->Now());
        if (news == 0) return;
        Tell("collective_refused", std::string(status.message()), news);
      });
  neighborhood_.SetOnUp([this](PeerId peer) { all_reducer_.OnUp(peer); });
  neighborhood_.SetOnHeard(
      [this](PeerId peer) { detector_.Heard(peer, parts_.loop->Now()); });
  parts_.membership->SetOnChange([this] {
    round_chooser_.Answered(round_);
    OnMembership();
    waiter_.Notify();
  });
  const size_t generator =
      parts_.game->layout().extent(Player::kGenerator).size;
  if (spec_.ema > 0) {
    const auto x = parts_.game->parameters().first(generator);
    ema_.assign(x.begin(), x.end());
  }
}

Peer::~Peer() {
  for (const EventLoop::TimerId timer : {watch_timer_, leave_timer_}) {
    if (timer != EventLoop::TimerId{}) parts_.loop->Cancel(timer);
  }
  parts_.membership->SetOnChange(nullptr);
}

std::span<const float> Peer::generator() const {
  if (!ema_.empty()) return ema_;
  return parts_.game->parameters().first(
      parts_.game->layout().extent(Player::kGenerator).size);
}

Task<absl::Status> Peer::Run() {
  Task<absl::Status> join = Join();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await join.result());
  while (round_ <= spec_.rounds && !stopped_ && !left_) {
    GOSSAMER_CO_RETURN_IF_ERROR(AdoptView());
    if (parts_.membership->outside()) {
      Task<absl::Status> rejoin = Rejoin();
      GOSSAMER_CO_RETURN_IF_ERROR(co_await rejoin.result());
      if (stopped_ || left_) break;
    }
    parts_.membership->TookUpView();
    Task<bool> stop = AtStop();
    if (co_await stop.result()) {
      stopped_ = true;
      decisions_.TellStop(round_);
      break;
    }
    left_ = Leaves();
    if (left_) break;
    parts_.membership->BeginRound(round_);
    const absl::Time started = parts_.loop->Now();
    Task<absl::Status> round = Round();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await round.result());
    if (stopped_ || left_) break;
    ++rounds_since_life_;
    if (Sick()) {
      Task<absl::Status> healed = Heal();
      GOSSAMER_CO_RETURN_IF_ERROR(co_await healed.result());
      if (rounds_since_life_ == 0) continue;
    }
    Task<bool> evaluated = Evaluate();
    co_await evaluated.result();
    Publish(started);
    round_ = DecideNextRound();
    BeginCheckpoint();
    Task<bool> saved = SaveCheckpoint(/*now=*/false);
    co_await saved.result();
  }
  Task<absl::Status> finish = Finish();
  co_return co_await finish.result();
}

Task<absl::Status> Peer::Round() {
  metrics_.seconds_computing = metrics_.seconds_waiting = 0;
  if (spec_.centralized) {
    Task<absl::Status> round = CentralizedRound();
    co_return co_await round.result();
  }
  if (const auto overlap = decisions_.Overlap(round_)) {
    GOSSAMER_CO_RETURN_IF_ERROR(AdoptOverlap(*overlap));
  }
  // A view with less overlap makes more due at once.
  Task<absl::Status> due = CompleteDue(round_);
  GOSSAMER_CO_RETURN_IF_ERROR(co_await due.result());
  const std::vector<RowEntry>& row = rows_[round_] = RowOf(round_);
  Task<bool> met = MeetRow(row, MakeExchangeId(round_));
  co_await met.result();
  if (overlap_ > 0) {
    // The exchange of this round hides behind this round's step and those of
    // the next h − 1.
    const ExchangeId id = MakeExchangeId(round_);
    Task<absl::Status> room =
        Repeat([&] { return neighborhood_.CanEmit(row, id); });
    GOSSAMER_CO_RETURN_IF_ERROR(co_await room.result());
    neighborhood_.Emit(row, id, CheckSound());
    Task<absl::Status> step = Step();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await step.result());
    Task<absl::Status> wait = CompleteDue(round_ + 1);
    co_return co_await wait.result();
  }
  for (const bool mix : {!spec_.step_then_mix, spec_.step_then_mix}) {
    Task<absl::Status> half = mix ? Mix() : Step();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await half.result());
  }
  rows_.erase(round_);
  co_return absl::OkStatus();
}

// Completes what is due before `round` begins: the exchanges of max(1, h)
// rounds ago and older, never a newer one, however early it came.
Task<absl::Status> Peer::CompleteDue(uint64_t round) {
  const auto h = static_cast<uint64_t>(std::max(1, overlap_));
  while (!rows_.empty() && rows_.begin()->first + h <= round) {
    const auto& [of, row] = *rows_.begin();
    Task<absl::Status> wait = Await(row, MakeExchangeId(of));
    GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
    rows_.erase(rows_.begin());
  }
  if (round <= h) co_return absl::OkStatus();
  const ExchangeId limit = MakeExchangeId(round - h + 1);
  Task<absl::Status> all =
      Repeat([&] { return neighborhood_.CanComplete(limit); });
  GOSSAMER_CO_RETURN_IF_ERROR(co_await all.result());
  neighborhood_.Complete(limit);
  co_return absl::OkStatus();
}

// At a replay: waits until what was done can be done again.
Task<absl::Status> Peer::Repeat(std::function<bool()> possible) {
  if (!decisions_.replays()) co_return absl::OkStatus();
  const bool can = co_await waiter_.Until(
      possible, parts_.loop->Now() + spec_.liveness_limit);
  if (can) co_return absl::OkStatus();
  co_return absl::DeadlineExceededError(absl::StrCat(
      "round ", round_, " does not go on as the log says within ",
      absl::FormatDuration(spec_.liveness_limit),
      " (mixing.liveness_limit): all peers must replay their logs of one run"));
}

// x ← W^t x, or the polynomial of W that Chebyshev found better: t exchanges
// one after the other.
Task<absl::Status> Peer::Mix() {
  const std::vector<RowEntry>& row = rows_.at(round_);
  std::vector<RowEntry> weighted = row;
  for (int phase = 0; phase < spec_.mixing_rounds; ++phase) {
    const ExchangeId id = MakeExchangeId(round_, static_cast<uint32_t>(phase));
    const double omega = spec_.chebyshev ? omega_[phase] : 1;
    for (size_t i = 0; i < row.size(); ++i) {
      weighted[i].coefficient = static_cast<float>(omega * row[i].coefficient);
    }
    if (spec_.chebyshev) {
      const std::span<const float> x = parts_.game->parameters();
      before_.assign(x.begin(), x.end());
    }
    Task<absl::Status> room =
        Repeat([&] { return neighborhood_.CanEmit(row, id); });
    GOSSAMER_CO_RETURN_IF_ERROR(co_await room.result());
    neighborhood_.Emit(weighted, id, CheckSound());
    Task<absl::Status> wait = Await(row, id);
    GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
    Task<absl::Status> all =
        Repeat([&] { return neighborhood_.CanComplete(id + 1); });
    GOSSAMER_CO_RETURN_IF_ERROR(co_await all.result());
    neighborhood_.Complete(id + 1);
    if (spec_.chebyshev) Accelerate(omega);
  }
  co_return absl::OkStatus();
}

// x += (ω − 1)·(what the phase before moved it).  Both ends of an edge move by
// opposite corrections, so the mean stays where it is.
void Peer::Accelerate(double omega) {
  const std::span<float> x = parts_.game->parameters();
  const Kernels& kernels = HostKernels();
  if (omega != 1) kernels.axpy(static_cast<float>(omega - 1), moved_, x);
  moved_.assign(x.begin(), x.end());
  kernels.axpy(-1.0f, before_, moved_);
}

// `row` stays as it is meanwhile.
Task<absl::Status> Peer::Await(std::span<const RowEntry> row, ExchangeId id) {
  if (decisions_.replays()) co_return absl::OkStatus();
  const absl::Time started = parts_.loop->Now();
  const bool arrived = co_await waiter_.Until(
      [=, this] {
        return neighborhood_.Arrived(row, id, round_length_) || EndedBehind() ||
               asked_in_vain_;
      },
      started + spec_.liveness_limit,
      [=, this] { return neighborhood_.NextDeadline(row, id, round_length_); });
  metrics_.seconds_waiting +=
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

Pending<bool> Peer::Compute(std::function<void()> work) {
  Pending<bool> done;
  parts_.compute->Run(std::move(work), [done]() mutable { done.Set(true); });
  return done;
}

Task<absl::Status> Peer::Step() {
  const absl::Time started = parts_.loop->Now();
  stepping_ = true;
  common_.BeginStep();
  co_await Compute([this] {
    LocalSteps();
    UpdateAverage();
  });
  stepping_ = false;
  common_.EndStep();
  OfferState();
  metrics_.seconds_computing +=
      absl::ToDoubleSeconds(parts_.loop->Now() - started);
  co_return absl::OkStatus();
}

// On the compute engine.
void Peer::LocalSteps() {
  for (int i = 0; i < spec_.steps_per_round; ++i) {
    losses_ = parts_.step->Run(
        steps_, round_, key_.Fold(static_cast<uint64_t>(rank_)).Fold(steps_));
    ++steps_;
    NoteStep(losses_);
  }
}

void Peer::NoteStep(const absl::StatusOr<Losses>& losses) {
  steps_skipped_ = losses.ok() ? 0 : steps_skipped_ + 1;
  if (losses.ok()) {
    metrics_.generator_loss = losses->generator;
    metrics_.discriminator_loss = losses->discriminator;
    return;
  }
  parts_.loop->Post([this, alive = std::weak_ptr<bool>(alive_),
                     why = std::string(losses.status().message())] {
    if (!alive.expired()) Tell("step_skipped", why);
  });
}

void Peer::UpdateAverage() {
  if (ema_.empty()) return;
  HostKernels().ema(static_cast<float>(1 - spec_.ema),
                    parts_.game->parameters().first(ema_.size()), ema_);
}

}  // namespace gossamer
