// One participant of a run: the round loop that ties game, optimizer, edges,
// membership and checkpoints together.
//
// Everything here happens on one event loop; gradients, evaluation and file
// writing run on the compute engine meanwhile.  Knows nothing of processes,
// sockets or configuration files: the parts come from outside, which is how
// the simulation runs this very code in virtual time.

#ifndef GOSSAMER_RUNTIME_PEER_PEER_H_
#define GOSSAMER_RUNTIME_PEER_PEER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

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
#include "runtime/checkpoint/state_transfer.h"
#include "runtime/membership/failure_detector.h"
#include "runtime/neighborhood/link_prober.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/neighborhood/round_chooser.h"
#include "runtime/peer/all_reducer.h"
#include "runtime/peer/common_state.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/recent.h"
#include "runtime/peer/waiter.h"
#include "runtime/telemetry/metrics.h"
#include "topology/fleet/membership.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

class Peer {
 public:
  // What a peer is made of; all outlive it.
  struct Parts {
    EventLoop* loop = nullptr;
    ComputeEngine* compute = nullptr;
    Transport* transport = nullptr;
    Membership* membership = nullptr;
    Game* game = nullptr;
    LocalStep* step = nullptr;
    std::shared_ptr<const Codec> codec;
    // cp-oadam: of the gradients; null: floats.
    std::unique_ptr<GradientCompressor> gradients = nullptr;
    MetricsSink* metrics = nullptr;
    Decisions* decisions = nullptr;          // null: not kept
    CheckpointStore* checkpoints = nullptr;  // may be null
    // Count-sketch of x for the heartbeat; may be empty.
    std::function<std::vector<double>(std::span<const float>)> sketch;
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
  // goes as it is, as if it had died after its last round.
  void Leave(absl::Time limit);

  // True after Run() if the fleet was stopped before its last round; if this
  // peer left it.
  bool stopped() const { return stopped_; }
  bool left() const { return left_; }
  uint64_t round() const { return round_; }  // the next to emit
  uint64_t steps() const { return steps_; }
  int rank() const { return rank_; }
  // Exponential moving average of the generator, or its parameters without.
  std::span<const float> generator() const;
  const RoundMetrics& last_metrics() const { return metrics_; }
  Neighborhood& neighborhood() { return neighborhood_; }
  // The latest that it goes on by itself if it waits (Waiter::next_look()), and
  // bytes of states that it gives or gets.
  absl::Time next_look() const { return waiter_.next_look(); }
  size_t state_bytes() const {
    return donor_.held() + (collector_ ? collector_->held() : 0);
  }

 private:
  Peer(PeerSpec spec, Parts parts);

  // Views (peer_views.cc).
  Task<absl::Status> Join();
  absl::Status AdoptView(const SavedEdges& saved = {});
  absl::Status ConnectMembers(const SavedEdges& saved);
  absl::Status Connect(const View& view, const MixingSchedule& schedule,
                       const SavedEdges& saved, bool newcomers);
  absl::Status AddEdge(Neighborhood::NewEdge edge, bool replica);
  absl::Status AdoptOverlap(int overlap);
  absl::StatusOr<float> StepSize() const;
  std::vector<RowEntry> RowOf(uint64_t round) const;
  Task<bool> AtStop();
  bool EndedBehind() const;
  uint64_t NextRound();
  uint64_t DecideNextRound();

  // Members that come and go (peer_members.cc).
  void OnMembership();
  void Meet(const View& newest);
  absl::Status GreetOthers();
  void LetGo(const View& newest);
  void WatchNeighbors();
  void LeaveNow();
  void ServeJoiners();
  void MeasureWays();
  void OfferState();
  SendState SendStateFrames();
  Task<absl::Status> GetState();
  bool Leaves() const;
  void BeginLife();
  Task<absl::Status> Rejoin();

  // Whether it is well (peer_health.cc).
  bool CannotStep() const;
  absl::Status NobodySteps() const;
  bool Sick() const;
  Task<absl::Status> Heal();

  // One round (peer.cc; of a centralized fleet peer_centralized.cc).
  Task<absl::Status> Round();
  Task<bool> MeetRow(std::span<const RowEntry> row, ExchangeId id);
  Task<absl::Status> Mix();
  void Accelerate(double omega);
  Task<absl::Status> CompleteDue(uint64_t round);
  Task<absl::Status> Await(std::span<const RowEntry> row, ExchangeId id);
  Task<absl::Status> Repeat(std::function<bool()> possible);
  Task<absl::Status> Step();
  Task<absl::Status> CentralizedRound();
  Task<absl::Status> AverageGradients();
  Task<absl::Status> AverageParameters();
  Task<absl::Status> AwaitMean(absl::Time started, absl::Time computed);
  // The number of the exact mean that is under way, or is next.
  uint64_t Operation() const;
  void TellAllReduce();
  Pending<bool> Compute(std::function<void()> work);
  void LocalSteps();
  void NoteStep(const absl::StatusOr<Losses>& losses);
  void UpdateAverage();
  // No parameter is beyond PeerSpec::largest_parameter, or not finite.
  bool Sound() const;
  bool CheckSound();

  // What others see, and what stays (peer_state.cc, peer_resume.cc).
  void Drain();
  bool MaySettle() const;
  Task<absl::Status> Finish();
  Task<bool> Evaluate();
  void Publish(absl::Time started);
  void SketchNow();
  void BeginCheckpoint();
  void TakeState();
  Task<bool> SaveCheckpoint(bool now);
  CheckpointId OwnId() const;
  void VisitState(StateVisitor& visitor);
  void TellStrangers(bool last);  // the last time: of all not told of yet
  void Tell(EventKind kind, const std::string& detail, uint64_t times = 1);
  Task<absl::StatusOr<SavedEdges>> TakeUp();
  absl::StatusOr<SavedEdges> Restore(Checkpoint& saved);
  void TellDamaged(const absl::StatusOr<std::vector<StoredCheckpoint>>& list);

  // What the compute engine may finish after this has gone holds it weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  const PeerSpec spec_;
  Parts parts_;
  CommonState common_;
  Decisions unkept_;
  Decisions& decisions_;
  const RngKey key_;
  Waiter waiter_;
  std::shared_ptr<const Codec> replicaless_;  // of edges beyond the budget
  Neighborhood neighborhood_;
  AllReducer all_reducer_;

  FailureDetector detector_;
  EventLoop::TimerId watch_timer_{}, leave_timer_{};
  std::vector<PeerId> suspected_;
  Sparing strangers_, unoffered_;
  uint64_t not_offered_ = 0;  // states that somebody asked for
  StateDonor donor_;
  LinkProber prober_;
  uint64_t surveyed_ = 0;  // number of the last task
  // Whom ways were measured to, until nobody measures them any more.
  std::map<PeerId, absl::Time> surveyed_until_;
  std::unique_ptr<StateCollector> collector_;
  std::set<PeerId> served_;  // joiners
  bool stepping_ = false;    // the compute engine owns x
  bool averaging_ = false;   // x has been stepped and is not averaged yet
  // Got from members or from disk, and not in a view yet.
  bool has_state_ = false;
  View met_;  // the newest whose members have been met or let go

  View view_;
  int rank_ = 0;
  std::unique_ptr<MixingSchedule> schedule_;
  int overlap_ = 1;
  float gamma_ = 1;
  std::vector<double> omega_;  // of each phase

  uint64_t round_ = 1;
  uint64_t steps_ = 0;
  bool stopped_ = false;
  bool left_ = false;
  bool leaves_now_ = false;
  bool ends_ = false;  // waits only until its neighbours have all they need
  bool sound_ = true;  // x, as last looked at
  bool asked_in_vain_ = false;    // for a state, while x was not finite
  uint64_t steps_skipped_ = 0;    // one after the other
  uint64_t spoilt_ = 0;           // how often it lost its parameters,
  uint64_t spoilt_in_a_row_ = 0;  // and without many good rounds between
  uint64_t rounds_since_life_ = 0;
  std::map<uint64_t, std::vector<RowEntry>> rows_;  // of rounds not due yet
  RoundChooser round_chooser_;
  absl::Duration round_length_;  // moving average
  Recent busy_, exchanges_;      // seconds, since the view
  std::vector<float> ema_;
  // Chebyshev only: x before the phase, and by how much the one before moved x.
  std::vector<float> before_, moved_;
  // Written by the compute engine, read on the loop after it.
  absl::StatusOr<Losses> losses_ = Losses{};
  absl::Status step_status_;
  RoundMetrics metrics_;
  uint64_t sketch_every_ = 1;
  absl::Time sketched_ = absl::InfinitePast();
  std::vector<double> sketch_;
  uint64_t sketch_round_ = 0;
  std::optional<Checkpoint> checkpoint_;  // taken, edges not yet sealed
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_PEER_H_
