#include "runtime/peer/peer.h"

#include <algorithm>
#include <utility>

#include "algorithms/base/status_macros.h"
#include "algorithms/base/throttle.h"
#include "runtime/peer/centralized_trainer.h"
#include "runtime/peer/common_state.h"
#include "runtime/peer/gossip_trainer.h"

namespace gossamer {
namespace {

// The time that a committed stop still has when a peer's time to leave is over:
// its round is agreed, so the peer most likely ends with all others a moment
// later, and in good order.
constexpr absl::Duration kStopGrace = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> Peer::Create(PeerSpec spec, Parts parts) {
  GOSSAMER_RETURN_IF_ERROR(CheckPeerSpec(spec, *parts.step, *parts.codec));
  const VotingRole role = parts.game->voting();
  const bool has_role = role.student != nullptr || role.teachers != nullptr;
  if (has_role != (spec.averaging == Averaging::kVotes)) {
    return absl::InvalidArgumentError(
        has_role ? "this game learns from votes, and its algorithm has none"
                 : "this algorithm learns from votes, and its game has none");
  }
  return std::unique_ptr<Peer>(new Peer(std::move(spec), std::move(parts)));
}

NeighborhoodOptions Peer::OptionsOf(const PeerSpec& spec, const Parts& parts) {
  return {.self = spec.self,
          .run_id = spec.run_id,
          .epoch = spec.epoch,
          // An edge keeps the window that it is made with, while the overlap of
          // later views may rise: with `auto` it has room for the largest
          // (PROTOCOL.md 2).
          .window = spec.overlap_steps == kAutoOverlap
                        ? kMaxOverlap
                        : std::max(1, spec.overlap_steps),
          .layout = parts.game->layout().fingerprint(),
          .deadline = spec.deadline,
          .summed = CommonState(parts.step->hooks()).extent(),
          .limits = spec.limits};
}

Peer::Peer(PeerSpec spec, Parts parts)
    : spec_(std::move(spec)),
      parts_(std::move(parts)),
      decisions_(parts_.decisions != nullptr ? *parts_.decisions : unkept_),
      waiter_(parts_.loop),
      state_(spec_, parts_.game, parts_.step, parts_.gradients.get()),
      health_(spec_, &state_),
      reporter_(parts_.loop, parts_.transport, parts_.membership, &state_,
                parts_.metrics, parts_.sketch),
      neighborhood_(OptionsOf(spec_, parts_), parts_.loop, parts_.transport,
                    parts_.game->device_parameters()),
      prober_(parts_.loop,
              [this](PeerId peer, Frame frame) {
                return parts_.transport->Send(peer, Channel::kProbe,
                                              std::move(frame));
              }),
      sharing_(spec_,
               {.loop = parts_.loop,
                .compute = parts_.compute,
                .transport = parts_.transport,
                .membership = parts_.membership,
                .waiter = &waiter_,
                .state = &state_,
                .health = &health_,
                .reporter = &reporter_,
                .in_fleet = [this] { return views_.in_fleet(); },
                .has_edge =
                    [this](PeerId peer) { return neighborhood_.Has(peer); }}),
      resume_(spec_.self, {.loop = parts_.loop,
                           .transport = parts_.transport,
                           .prober = &prober_,
                           .membership = parts_.membership,
                           .make_schedule = parts_.make_schedule}),
      survey_runner_(parts_.loop, parts_.transport, parts_.membership, &prober_,
                     [this](PeerId peer) {
                       return spec_.centralized() || neighborhood_.Has(peer) ||
                              sharing_.serves(peer);
                     }),
      watch_(spec_, parts_.loop, &prober_, parts_.membership, &reporter_,
             {.watched = [this] { return neighborhood_.Watched(); },
              .on_tick =
                  [this] {
                    reporter_.ReportConnections(/*last=*/false);
                    sharing_.Tick();
                    // An answer that found a peer's queue full goes out though
                    // nothing else happens here: that peer may be waiting for
                    // it.
                    neighborhood_.FlushAll();
                  }}),
      edges_(spec_,
             {.transport = parts_.transport,
              .neighborhood = &neighborhood_,
              .decisions = &decisions_,
              .codec = parts_.codec,
              .edges_sum = CommonState(parts_.step->hooks()).extent().size > 0,
              .lifecycle = &lifecycle_,
              .state = &state_,
              .reporter = &reporter_,
              .make_schedule = parts_.make_schedule}),
      views_(spec_, {.membership = parts_.membership,
                     .decisions = &decisions_,
                     .codec = parts_.codec.get(),
                     .neighborhood = &neighborhood_,
                     .state = &state_,
                     .reporter = &reporter_,
                     .make_schedule = parts_.make_schedule,
                     .drop_members =
                         [this](const View& view) { edges_.DropMembers(view); },
                     .connect =
                         [this](bool first, const SavedEdges& saved) {
                           return trainer_->OnView(first, saved);
                         }}),
      checkpointer_(spec_, parts_.disk ? parts_.disk : parts_.compute,
                    parts_.checkpoints, &neighborhood_, &state_, &reporter_),
      evaluation_(spec_, parts_.compute, parts_.scores,
                  parts_.game->evaluator(), &state_, &reporter_),
      runner_(spec_, parts_.loop, parts_.compute, parts_.step, &state_,
              &health_, &reporter_),
      stop_(spec_, parts_.loop, &waiter_, parts_.membership, &decisions_,
            &lifecycle_, &state_, [this] { return trainer_->Abandoned(); }),
      trainer_(MakeTrainer()),
      joiner_(spec_, {.loop = parts_.loop,
                      .waiter = &waiter_,
                      .membership = parts_.membership,
                      .decisions = &decisions_,
                      .lifecycle = &lifecycle_,
                      .views = &views_,
                      .state = &state_,
                      .health = &health_,
                      .checkpointer = &checkpointer_,
                      .sharing = &sharing_,
                      .resume = &resume_,
                      .reporter = &reporter_,
                      .give_up_edges = [this] { ResetIncarnation(); }}),
      drain_(spec_, {.loop = parts_.loop,
                     .waiter = &waiter_,
                     .decisions = &decisions_,
                     .neighborhood = &neighborhood_,
                     .lifecycle = &lifecycle_,
                     .state = &state_,
                     .trainer = trainer_.get(),
                     .reporter = &reporter_}),
      rounds_(spec_, {.loop = parts_.loop,
                      .waiter = &waiter_,
                      .membership = parts_.membership,
                      .decisions = &decisions_,
                      .neighborhood = &neighborhood_,
                      .lifecycle = &lifecycle_,
                      .state = &state_,
                      .health = &health_,
                      .views = &views_,
                      .stop = &stop_,
                      .trainer = trainer_.get(),
                      .joiner = &joiner_,
                      .evaluation = &evaluation_,
                      .checkpointer = &checkpointer_,
                      .drain = &drain_,
                      .reporter = &reporter_}) {
  // No callback runs before this body: the loop has not been entered, so parts
  // that are constructed later may be captured by earlier ones.
  neighborhood_.SetDecisions(&decisions_);
  ListenToNeighborhood();
  prober_.SetRoundOf(
      [this](PeerId asker, uint64_t generation, uint64_t epoch) -> uint64_t {
        const View& view = parts_.membership->view();
        const bool same = view.generation == generation && view.epoch == epoch;
        return lifecycle_.state() == Lifecycle::State::kTraining && same &&
                       view.RankOf(asker)
                   ? state_.round()
                   : 0;
      });
  parts_.membership->Observe(this, [this] {
    // The trainer notes the answer first: the fleet's rounds in it are as old
    // as this moment, and the next round is bounded by them (PROTOCOL.md 11).
    trainer_->OnAnswer();
    OnMembership();
    waiter_.Notify();
  });
}

// The trainers share nothing but the interface: one exchanges over edges, the
// other reduces over all members, and a run never changes from one to the
// other.
std::unique_ptr<Trainer> Peer::MakeTrainer() {
  if (spec_.averaging == Averaging::kVotes) {
    return std::make_unique<VoteTrainer>(
        spec_, VoteTrainer::Parts{.loop = parts_.loop,
                                  .waiter = &waiter_,
                                  .transport = parts_.transport,
                                  .decisions = &decisions_,
                                  .views = &views_,
                                  .lifecycle = &lifecycle_,
                                  .state = &state_,
                                  .runner = &runner_,
                                  .stop = &stop_,
                                  .reporter = &reporter_,
                                  .role = parts_.game->voting(),
                                  .voting = parts_.voting});
  }
  if (spec_.centralized()) {
    return std::make_unique<CentralizedTrainer>(
        spec_, CentralizedTrainer::Parts{.loop = parts_.loop,
                                         .waiter = &waiter_,
                                         .transport = parts_.transport,
                                         .decisions = &decisions_,
                                         .views = &views_,
                                         .lifecycle = &lifecycle_,
                                         .state = &state_,
                                         .health = &health_,
                                         .runner = &runner_,
                                         .stop = &stop_,
                                         .reporter = &reporter_,
                                         .game = parts_.game,
                                         .step = parts_.step,
                                         .gradients = parts_.gradients.get(),
                                         .nccl_sum = parts_.nccl_sum});
  }
  return std::make_unique<GossipTrainer>(
      spec_,
      GossipTrainer::Parts{.loop = parts_.loop,
                           .waiter = &waiter_,
                           .membership = parts_.membership,
                           .decisions = &decisions_,
                           .neighborhood = &neighborhood_,
                           .views = &views_,
                           .edges = &edges_,
                           .watch = &watch_,
                           .state = &state_,
                           .health = &health_,
                           .runner = &runner_,
                           .stop = &stop_,
                           .reporter = &reporter_,
                           .step = parts_.step,
                           // The parameters have an owner again: a joiner that
                           // asked during the step gets a state of this moment.
                           .after_step = [this] { sharing_.OfferIfWanted(); }});
}

void Peer::ListenToNeighborhood() {
  neighborhood_.SetOnChange([this] { waiter_.Notify(); });
  neighborhood_.SetOnEvent(
      [this](EventKind kind, const std::string& detail, uint64_t times) {
        reporter_.Report(kind, detail, times);
      });
  neighborhood_.SetOnFrame(Channel::kProbe, [this](PeerId peer, Frame frame) {
    prober_.OnFrame(peer, frame);
  });
  neighborhood_.SetOnFrame(Channel::kState, [this](PeerId peer, Frame frame) {
    sharing_.OnFrame(peer, frame);
  });
  neighborhood_.SetOnFrame(Channel::kCollective, CollectiveFrames());
  neighborhood_.SetOnUp([this](PeerId peer) { trainer_->OnUp(peer); });
  neighborhood_.SetOnHeard([this](PeerId peer) { watch_.Heard(peer); });
}

// A member of another version or configuration would have each of its frames
// refused, which are many in every step: the reports are throttled.
Neighborhood::FrameHandler Peer::CollectiveFrames() {
  return [this, refused = Throttle(Throttle::kApart)](PeerId peer,
                                                      Frame frame) mutable {
    const absl::Status status = trainer_->OnFrame(peer, frame);
    if (status.ok()) return;
    const uint64_t news = refused.Due(parts_.loop->Now());
    if (news == 0) return;
    reporter_.Report("collective_refused", std::string(status.message()), news);
  };
}

Peer::~Peer() {
  CancelLeave();
  parts_.membership->RemoveObserver(this);
}

Task<absl::Status> Peer::Run() {
  Task<absl::Status> rounds = rounds_.Run();
  const absl::Status status = co_await rounds.result();
  // After an error the timer stays until the peer is destroyed.
  if (lifecycle_.state() == Lifecycle::State::kEnded) CancelLeave();
  co_return status;
}

void Peer::OnMembership() {
  survey_runner_.Update();
  // A centralized fleet has neither edges nor joiners, and a replay ends where
  // members come or go.
  if (!views_.in_fleet() || spec_.centralized() || decisions_.replays()) return;
  sharing_.ServeJoiners();
  // The members have dropped their ends already.  Without edges the round under
  // way waits for nobody and ends, and the round loop registers again at its
  // boundary.
  if (parts_.membership->outside()) return DropEdges();
  edges_.OnView(*parts_.membership);
}

void Peer::DropEdges() {
  // Peers() is a copy: Drop() changes the edges that it was made from.
  for (const PeerId peer : neighborhood_.Peers()) neighborhood_.Drop(peer);
}

void Peer::ResetIncarnation() {
  neighborhood_.BeginIncarnation();
  trainer_->Reset();
  views_.Reset();
  edges_.Reset();
  watch_.Reset();
}

void Peer::Leave(absl::Time limit) {
  // A second request does not put off the limit of the first one.
  if (lifecycle_.out_of_time() || limit >= leave_by_) return;
  leave_by_ = limit;
  CancelLeave();
  if (spec_.centralized()) {
    parts_.membership->RequestStop();  // the others cannot go on without it
  } else {
    parts_.membership->RequestLeave();
  }
  // A stop that nobody has committed may never be: the service may be gone.
  leave_timer_ = parts_.loop->RunAt(limit, [this, limit] {
    leave_timer_ = {};
    if (!parts_.membership->stop().committed) return LeaveLate();
    // The stop is sure to come: all members have acknowledged its round.
    leave_timer_ = parts_.loop->RunAt(limit + kStopGrace, [this] {
      leave_timer_ = {};
      LeaveLate();
    });
  });
}

// Exchanges under way are given up: nobody is waited for any longer.
void Peer::LeaveLate() {
  if (!lifecycle_.Apply(Lifecycle::Event::kTimeUp).ok()) return;
  reporter_.Report(
      "left_late",
      "the fleet did not let this peer go in time; it goes without an answer "
      "to what is under way");
  DropEdges();
  waiter_.Notify();
}

void Peer::CancelLeave() {
  if (leave_timer_ != EventLoop::TimerId{}) parts_.loop->Cancel(leave_timer_);
  leave_timer_ = {};
}

}  // namespace gossamer
