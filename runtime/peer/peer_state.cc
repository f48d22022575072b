// What others see of a peer, and what stays of it: scores, metrics, sketches,
// checkpoints, and the end of a run.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/edge/saved_edge.h"
#include "runtime/peer/peer.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// How long the end of a run waits for neighbours that are not connected.  Who
// lives may be rounds behind, or wait for others that are, and needs this
// peer's last payloads: leaving before they are complete there would move the
// mean.
constexpr absl::Duration kDrainLimit = absl::Seconds(10);
// Without this peer's part of the last mean another one would end with nothing.
constexpr absl::Duration kPartLimit = absl::Minutes(2);
// A running peer does not wait longer than this many rounds for the edges of a
// checkpoint; unsealed ones are left out (PROTOCOL.md 6).
constexpr uint64_t kMaxSealingRounds = 64;
constexpr absl::Duration kSketchInterval = absl::Seconds(1);
constexpr uint64_t kMaxSketchEvery = 1 << 16;

// Where nobody waits for all: what had not come in time then is not complete in
// a replay, either.
bool CompleteAtEnd(ExchangeId limit, const Decisions& decisions,
                   Neighborhood& neighborhood) {
  if (decisions.replays() && !neighborhood.CanComplete(limit)) return false;
  neighborhood.Complete(limit);
  return true;
}

}  // namespace

Task<bool> Peer::Evaluate() {
  metrics_.score.reset();
  metrics_.score_name.clear();
  Evaluator* const evaluator = parts_.game->evaluator();
  const bool last = round_ == spec_.rounds;
  const bool due =
      last || (spec_.evaluate_every != 0 && round_ % spec_.evaluate_every == 0);
  if (!spec_.evaluates || evaluator == nullptr || !due) co_return false;
  absl::StatusOr<double> score = 0.0;
  absl::Status drawn;
  co_await Compute([&] {
    // The same latents every time, so that scores and pictures compare.
    const RngKey key = RngKey(spec_.seed).Fold("evaluation");
    score = evaluator->Score(generator(), key);
    if (spec_.samples_folder.empty()) return;
    drawn = evaluator->WriteSamples(
        generator(), key,
        absl::StrCat(spec_.samples_folder, "/round-", round_, ".png"));
  });
  if (score.ok()) {
    metrics_.score = *score;
    metrics_.score_name = evaluator->score_name();
  } else {
    Tell("score_failed", std::string(score.status().message()));
  }
  if (!drawn.ok() && !absl::IsUnimplemented(drawn)) {
    Tell("samples_failed", std::string(drawn.message()));
  }
  co_return true;
}

void Peer::Publish(absl::Time started) {
  const absl::Time now = parts_.loop->Now();
  const absl::Duration length = now - started;
  round_length_ = round_length_ == absl::ZeroDuration()
                      ? length
                      : 0.9 * round_length_ + 0.1 * length;
  const TransportCounters bytes = parts_.transport->counters();
  metrics_.round = round_;
  metrics_.steps = steps_;
  metrics_.finished = now;
  metrics_.bytes_sent = bytes.bytes_sent;
  metrics_.bytes_received = bytes.bytes_received;
  metrics_.seconds_exchanging =
      absl::ToDoubleSeconds(neighborhood_.TakeExchangeTime());
  busy_.Add(absl::ToDoubleSeconds(length) - metrics_.seconds_waiting);
  exchanges_.Add(metrics_.seconds_exchanging);
  const double busy = busy_.Quantile(0.5);
  neighborhood_.SetBusy(
      absl::Seconds(busy),
      absl::Seconds(
          std::max(busy, parts_.membership->fleet_busy().value_or(0))));
  metrics_.corrections = neighborhood_.corrections();
  metrics_.skipped = neighborhood_.skipped();
  metrics_.late = neighborhood_.late();
  if (const auto clipping = neighborhood_.TakeClipping()) {
    metrics_.clipping = {clipping->clipped, clipping->longest};
  }
  parts_.metrics->OnRound(metrics_);
  TellStrangers(/*last=*/false);

  SketchNow();
  PeerReport report;
  report.round = round_ + 1;
  report.steps = steps_;
  report.rounds_per_second =
      1 / std::max(1e-9, absl::ToDoubleSeconds(round_length_));
  report.tempo = {.busy_seconds = busy,
                  .exchange_seconds = exchanges_.Quantile(0.9),
                  .rounds = busy_.size()};
  report.generator_loss = metrics_.generator_loss;
  report.discriminator_loss = metrics_.discriminator_loss;
  report.score = metrics_.score;
  report.bytes_sent = bytes.bytes_sent;
  report.sketch = std::move(sketch_);
  report.sketch_round = sketch_round_;
  report.spoilt = spoilt_;
  parts_.membership->Report(report);
}

// Rounds that are multiples of a power of two, about one a second: peers that
// choose different powers still sketch common rounds.
void Peer::SketchNow() {
  sketch_.clear();
  if (!parts_.sketch || round_ % sketch_every_ != 0) return;
  const absl::Time now = parts_.loop->Now();
  const absl::Duration since = now - sketched_;
  if (since < kSketchInterval && sketch_every_ < kMaxSketchEvery) {
    sketch_every_ *= 2;
  } else if (since > 4 * kSketchInterval && sketch_every_ > 1) {
    sketch_every_ /= 2;
  }
  sketched_ = now;
  if (!Sound()) return;
  sketch_ = parts_.sketch(parts_.game->parameters());
  sketch_round_ = round_;
}

bool Peer::Sound() const {
  return HostKernels().all_within(spec_.largest_parameter,
                                  parts_.game->parameters());
}

// A payload with an infinity would spoil the neighbours: an edge skips it.
bool Peer::CheckSound() {
  sound_ = Sound();
  if (!sound_) {
    Tell("nonfinite_parameters",
         "this peer's parameters are not finite, or beyond "
         "mixing.largest_parameter; it contributes nothing");
  } else {
    asked_in_vain_ = false;  // it can be asked again
  }
  return sound_;
}

void Peer::VisitState(StateVisitor& visitor) {
  visitor.Counter("steps", steps_);
  visitor.Floats(kParametersName, parts_.game->parameters());
  if (!ema_.empty()) visitor.Floats(kEmaName, ema_);
  PrefixedVisitor optimizer(visitor, "optimizer.");
  parts_.step->VisitState(optimizer);
  if (parts_.gradients != nullptr) {
    PrefixedVisitor gradients(visitor, "gradients.");
    parts_.gradients->VisitState(gradients);
  }
  PrefixedVisitor game(visitor, "game.");
  parts_.game->VisitState(game);
}

void Peer::BeginCheckpoint() {
  if (parts_.checkpoints == nullptr || checkpoint_ ||
      spec_.checkpoint_every == 0 || round_ > spec_.rounds ||
      (round_ - 1) % spec_.checkpoint_every != 0) {
    return;
  }
  TakeState();
}

CheckpointId Peer::OwnId() const {
  return {.run_id = spec_.run_id,
          .peer_id = spec_.self.value,
          .round = round_,
          .layout_fingerprint = parts_.game->layout().fingerprint(),
          .configuration_hash = spec_.configuration_hash};
}

void Peer::TakeState() {
  // The end of a run waits for the records, with a checkpoint or without.
  neighborhood_.BeginRecord(MakeExchangeId(round_));
  if (!Sound()) {
    Tell("checkpoint_failed",
         "this peer's parameters are not finite; the checkpoints before stay");
    return;
  }
  absl::StatusOr<Checkpoint> taken =
      TakeCheckpoint(OwnId(), [this](StateVisitor& v) { VisitState(v); });
  if (!taken.ok()) {
    Tell("checkpoint_failed", std::string(taken.status().message()));
    return;
  }
  checkpoint_ = *std::move(taken);
}

// Saves the checkpoint in hand if its edges are sealed, or if it has waited
// long enough, or if it is `now` or never.
Task<bool> Peer::SaveCheckpoint(bool now) {
  if (!checkpoint_) co_return false;
  const bool late = round_ > checkpoint_->id.round + kMaxSealingRounds;
  if (!neighborhood_.Sealed() && !late && !now) co_return false;
  for (const auto& [peer, edge] : neighborhood_.TakeRecords()) {
    checkpoint_->bytes[absl::StrCat(kEdgePrefix, peer.value)] =
        EncodeSavedEdge(edge);
  }
  absl::Status saved;
  co_await Compute([&] { saved = parts_.checkpoints->Save(*checkpoint_); });
  if (saved.ok()) {
    Tell("checkpoint", absl::StrCat("round ", checkpoint_->id.round));
  } else {
    // Training does not depend on it: say so and go on.
    Tell("checkpoint_failed", std::string(saved.message()));
  }
  checkpoint_.reset();
  co_return saved.ok();
}

// Completes what is in flight as its round would have: in order, so that the
// end of a run is the same bits whatever comes first.
void Peer::Drain() {
  while (!rows_.empty()) {
    const auto& [round, row] = *rows_.begin();
    if (!neighborhood_.Missing(row, MakeExchangeId(round)).empty()) return;
    const ExchangeId limit = MakeExchangeId(round + 1);
    if (!CompleteAtEnd(limit, decisions_, neighborhood_)) return;
    rows_.erase(rows_.begin());
  }
  CompleteAtEnd(MakeExchangeId(round_), decisions_, neighborhood_);
}

// Whoever this peer waits for at its end lives, and will say what is missing.
bool Peer::MaySettle() const {
  return neighborhood_.MaySettle() &&
         std::ranges::all_of(all_reducer_.Remaining(), [this](PeerId peer) {
           return neighborhood_.Connected(peer);
         });
}

// Nobody leaves while a neighbour still needs something of it.
Task<absl::Status> Peer::Finish() {
  ends_ = true;
  const ExchangeId cut = MakeExchangeId(round_);
  if (parts_.checkpoints != nullptr) {
    Task<bool> earlier = SaveCheckpoint(/*now=*/true);
    co_await earlier.result();
  }
  const bool in_fleet = view_.epoch != 0;
  if (stopped_ && !in_fleet) {
    Tell("ended_without", "the run is over; this peer was not in it then");
  }
  // One that waits to begin, or to begin again with what it got, has nothing of
  // its own: saved as of a round that it knows from before, it would set aside
  // later ones that the others share.  And one that left within a centralized
  // round has no longer what the others had at its beginning.
  const bool between =
      !spec_.centralized ||
      (steps_ % static_cast<uint64_t>(spec_.steps_per_round) == 0 &&
       !averaging_);
  if (parts_.checkpoints != nullptr && !all_reducer_.spoilt() && between &&
      (in_fleet || (steps_ > 0 && !has_state_))) {
    TakeState();
  } else {
    neighborhood_.BeginRecord(cut);
  }
  // Whoever goes alone is to the others as if it had died.
  if (spec_.centralized && !leaves_now_) all_reducer_.Part();
  bool settled = false;
  absl::Time connected = parts_.loop->Now();
  const absl::Duration limit = std::min(
      spec_.centralized ? kPartLimit : kDrainLimit, spec_.liveness_limit);
  co_await waiter_.Until(
      [&] {
        Drain();
        if ((left_ || rows_.empty()) && !SeededBug("leave-unanswered")) {
          // Who learns of it late still sends: it gets its answers now.
          neighborhood_.Pass(MakeExchangeId(kMaxRound));
          CompleteAtEnd(MakeExchangeId(kMaxRound), decisions_, neighborhood_);
        }
        neighborhood_.FlushAll();
        // Whoever leaves resumes with nobody, and those that rest owe it no
        // word of rounds that it has nothing in.
        settled =
            SeededBug("leave-early") ||
            (neighborhood_.Settled() && (left_ || neighborhood_.Sealed()) &&
             (leaves_now_ || all_reducer_.Remaining().empty()));
        const absl::Time now = parts_.loop->Now();
        if (MaySettle()) connected = now;
        return settled || now - connected >= limit;
      },
      parts_.loop->Now() + spec_.liveness_limit,
      [this] { return parts_.loop->Now() + absl::Milliseconds(20); });
  if (!settled) {
    neighborhood_.Complete(cut);
    if (!neighborhood_.Settled(/*resting=*/false)) {
      Tell("not_settled", "a neighbour did not answer at the end of the run");
    }
  }
  for (const PeerId peer :
       leaves_now_ ? std::vector<PeerId>() : all_reducer_.Remaining()) {
    Tell("not_settled",
         absl::StrCat("peer ", peer.value, " has not said that it is done"));
  }
  Task<bool> saved = SaveCheckpoint(/*now=*/true);
  co_await saved.result();
  TellStrangers(/*last=*/true);
  if (left_) Tell("left", absl::StrCat("before round ", round_));
  leaves_now_ = true;  // nothing is left to ask for
  if (leave_timer_ != EventLoop::TimerId{}) {
    parts_.loop->Cancel(leave_timer_);
    leave_timer_ = {};
  }
  co_return absl::OkStatus();
}

void Peer::TellStrangers(bool last) {
  const uint64_t refused = parts_.transport->counters().strangers_refused;
  const uint64_t news =
      last ? strangers_.Rest(refused) : strangers_.Due(refused);
  if (news == 0) return;
  Tell("strangers_refused",
       absl::StrFormat("%d connections so far were hung up on: as many were "
                       "open as may be of whom nobody knew who they are",
                       refused),
       news);
}

void Peer::Tell(EventKind kind, const std::string& detail, uint64_t times) {
  parts_.metrics->OnEvent({parts_.loop->Now(), round_, kind, detail, times});
}

}  // namespace gossamer
