// One participant of a run: makes its parts, ties them together and hands out
// what others need of them.
//
// Everything here happens on one event loop; gradients, evaluation and file
// writing run on the compute engine meanwhile.  A peer knows nothing of
// processes, sockets or configuration files: what it is made of comes from
// outside, which is how the simulation runs this very code in virtual time.

#ifndef GOSSAMER_RUNTIME_PEER_PEER_H_
#define GOSSAMER_RUNTIME_PEER_PEER_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/game/game.h"
#include "algorithms/optim/local_step.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/neighborhood/link_prober.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/peer/adopted_view.h"
#include "runtime/peer/checkpointer.h"
#include "runtime/peer/drain.h"
#include "runtime/peer/evaluation.h"
#include "runtime/peer/health.h"
#include "runtime/peer/joiner.h"
#include "runtime/peer/lifecycle.h"
#include "runtime/peer/member_edges.h"
#include "runtime/peer/neighbor_watch.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/resume_without_service.h"
#include "runtime/peer/round_loop.h"
#include "runtime/peer/state_sharing.h"
#include "runtime/peer/step_runner.h"
#include "runtime/peer/stop_rule.h"
#include "runtime/peer/survey_runner.h"
#include "runtime/peer/trainer.h"
#include "runtime/peer/training_state.h"
#include "runtime/peer/vote_trainer.h"
#include "runtime/peer/waiter.h"
#include "runtime/telemetry/metrics.h"
#include "runtime/transport/nccl/nccl_sum.h"
#include "topology/fleet/membership.h"

namespace gossamer {

class Peer {
 public:
  // All outlive the peer.
  struct Parts {
    EventLoop* loop = nullptr;
    ComputeEngine* compute = nullptr;
    ComputeEngine* disk = nullptr;  // for checkpoints; null: `compute`
    // For scores and pictures; null: `compute`, and rounds wait for them.
    ComputeEngine* scores = nullptr;
    Transport* transport = nullptr;
    Membership* membership = nullptr;
    Game* game = nullptr;
    LocalStep* step = nullptr;
    std::shared_ptr<const Codec> codec;
    // cp-oadam: of the gradients; null: floats.
    std::unique_ptr<GradientCompressor> gradients = nullptr;
    NcclSum* nccl_sum = nullptr;  // of a centralized method; null: none
    VotingParts voting = {};      // of Averaging::kVotes
    MetricsSink* metrics = nullptr;
    Decisions* decisions = nullptr;          // null: not kept
    CheckpointStore* checkpoints = nullptr;  // may be null
    Reporter::Sketch sketch;  // of x for the heartbeat; may be empty
    ScheduleMaker make_schedule = nullptr;  // null: each peer its own
  };

  // kInvalidArgument if the parts do not fit together.
  static absl::StatusOr<std::unique_ptr<Peer>> Create(PeerSpec spec,
                                                      Parts parts);
  ~Peer();

  // Trains until the last round, or the round at which the fleet stops; then
  // waits until its neighbours have all they need, and saves a checkpoint.
  // Errors: kDeadlineExceeded after the liveness limit, kFailedPrecondition if
  // the view or the checkpoint does not fit, errors of the checkpoint store
  // only if resuming fails.
  Task<absl::Status> Run();

  // Asks to leave in good order; of a centralized fleet, that all stop.  At
  // `limit`, or a second later if the fleet has agreed on a stop, this peer
  // goes as it is, as if it had died after its last round.  An earlier limit
  // takes the place of the one before.
  void Leave(absl::Time limit);

  // True after Run() if the fleet was stopped before its last round; if this
  // peer left it.
  bool stopped() const { return lifecycle_.stopped(); }
  bool left() const { return lifecycle_.left(); }
  uint64_t round() const { return state_.round(); }  // the next to emit
  uint64_t steps() const { return state_.steps(); }
  const View& view() const { return views_.view(); }  // that it trains by
  int rank() const { return views_.rank(); }
  int members() const { return static_cast<int>(views_.view().members.size()); }
  // Exponential moving average of the generator, or its parameters without.
  // Of a game on the host.
  std::span<const float> generator() const {
    return HostSpan(state_.generator());
  }
  const RoundMetrics& last_metrics() const { return reporter_.metrics(); }
  Neighborhood& neighborhood() { return neighborhood_; }
  // The latest that it goes on by itself if it waits (Waiter::next_poll()), and
  // bytes of states that it gives or gets.
  absl::Time next_poll() const { return waiter_.next_poll(); }
  size_t state_bytes() const { return sharing_.held(); }

 private:
  Peer(PeerSpec spec, Parts parts);

  static NeighborhoodOptions OptionsOf(const PeerSpec& spec,
                                       const Parts& parts);
  std::unique_ptr<Trainer> MakeTrainer();
  void ListenToNeighborhood();
  Neighborhood::FrameHandler CollectiveFrames();

  void OnMembership();
  void DropEdges();
  void ResetIncarnation();
  void LeaveLate();
  void CancelLeave();

  const PeerSpec spec_;
  Parts parts_;
  Decisions unkept_;
  Decisions& decisions_;
  Waiter waiter_;
  Lifecycle lifecycle_;
  TrainingState state_;
  Health health_;
  Reporter reporter_;
  Neighborhood neighborhood_;
  LinkProber prober_;
  StateSharing sharing_;
  ResumeWithoutService resume_;
  SurveyRunner survey_runner_;
  NeighborWatch watch_;
  MemberEdges edges_;
  AdoptedView views_;
  Checkpointer checkpointer_;
  Evaluation evaluation_;
  StepRunner runner_;
  StopRule stop_;
  const std::unique_ptr<Trainer> trainer_;
  Joiner joiner_;
  Drain drain_;
  RoundLoop rounds_;
  EventLoop::TimerId leave_timer_{};
  absl::Time leave_by_ = absl::InfiniteFuture();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_PEER_H_
