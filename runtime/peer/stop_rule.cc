#include "runtime/peer/stop_rule.h"

#include <utility>

#include "algorithms/base/seeded_bug.h"

namespace gossamer {

StopRule::StopRule(const PeerSpec& spec, EventLoop* loop, Waiter* waiter,
                   Membership* membership, const Decisions* decisions,
                   const Lifecycle* lifecycle, const TrainingState* state,
                   std::function<bool()> abandoned)
    : spec_(spec),
      loop_(loop),
      waiter_(waiter),
      membership_(membership),
      decisions_(decisions),
      lifecycle_(lifecycle),
      state_(state),
      abandoned_(std::move(abandoned)) {}

bool StopRule::EndedBehind() const {
  const StopState stop = membership_->stop();
  return (stop.committed && stop.round <= state_->round()) || abandoned_();
}

bool StopRule::Leaves() const {
  if (lifecycle_->out_of_time()) return true;
  const auto round = membership_->view().DepartureOf(spec_.self);
  // The round of a departure is the first one without this peer.
  return round && state_->round() >= *round;
}

Task<bool> StopRule::AtStop() {
  const uint64_t round = state_->round();
  // A peer that leaves does not wait for the others' agreement.
  if (Leaves()) co_return false;
  if (decisions_->replays()) co_return round == decisions_->stop();
  const StopState stop = membership_->stop();
  // The others have ended without this peer, which they took for lost.
  if (stop.committed && round > stop.round) co_return true;
  if (stop.round == 0 || round > stop.round) co_return false;
  // The promise is made before the round is reached, so that the agreement
  // takes no round trip at the end; a peer that is already beyond it has
  // reported so by BeginRound().
  membership_->AcknowledgeStop(stop.round);
  if (round < stop.round || SeededBug("run-past-stop")) co_return false;
  // At the round itself: the run ends here unless a peer has begun it already.
  // With the service gone the run goes on; nothing is lost by that.
  const uint64_t agreed = stop.round;
  const bool decided = co_await waiter_->Until(
      [this, agreed] {
        return membership_->stop().committed ||
               membership_->stop().round != agreed || abandoned_() ||
               lifecycle_->out_of_time();
      },
      loop_->Now() + spec_.liveness_limit);
  // The members' own word counts where the service is gone.
  if (abandoned_()) co_return true;
  co_return decided && membership_->stop().committed &&
      membership_->stop().round == state_->round();
}

}  // namespace gossamer
