// The border between a program's training loop and the runtime's: one
// parameter vector, and whose turn it is to change it.
//
// The program moves the parameters between Await() and EndStep(); the runtime
// mixes them otherwise.  This header knows nothing of peers, of how a step is
// made, or of the languages that a program may be written in.

#ifndef GOSSAMER_RUNTIME_LIBRARY_CALLER_H_
#define GOSSAMER_RUNTIME_LIBRARY_CALLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/game/game.h"
#include "algorithms/kernels/device_queue.h"
#include "algorithms/kernels/device_span.h"

namespace gossamer {

// How far the peer is; as of the step in hand, or of the last one.
struct CallerProgress {
  uint64_t id = 0;     // of the peer
  uint64_t round = 0;  // from 1
  int members = 0;     // of the fleet in the view of that round
};

// The program's state beside its parameters, as bytes that mean nothing here:
// saved with a checkpoint and given to peers that join.  Both are called on the
// program's own thread, within Await() or EndStep(), and take as long as they
// like.
struct CallerState {
  std::function<absl::Status(std::vector<std::byte>& state)> save = nullptr;
  std::function<absl::Status(std::span<const std::byte> state)> load = nullptr;
};

class Caller {
 public:
  // The side that may change the parameters now, if the run is not over.
  enum class Turn { kRuntimes, kCallers, kOver };

  explicit Caller(ParameterLayout layout);

  const ParameterLayout& layout() const { return layout_; }
  // Of layout().size() values; of the program in its turn and before the first.
  DeviceSpan<float> parameters() { return parameters_; }

  // For the program, one thread at a time:
  //
  // Both before the first Await().  The parameters lie at `parameters` instead,
  // of layout().size() values, which outlive this object.
  void UseMemory(DeviceSpan<float> parameters);
  void SetState(CallerState state) { state_ = std::move(state); }
  // Ends the program's turn; what it has asked of a device is done by then.
  // kFailedPrecondition: it is not its turn;
  // kInvalidArgument names the tensor with a value that is not finite, or
  // beyond 1e6: the turn goes on.
  absl::Status EndStep(const Losses& losses);
  // Waits for a turn of the program, `limit` at most, or for the end.  In a
  // program that leaves it ends the turn in hand.
  Turn Await(absl::Duration limit);
  // Any thread: no turn comes any more, after the one in hand.  The rounds
  // until the end take as long as the turns did, so that few of them pass.
  void Leave();
  // The program's state was not saved or not loaded, since this was asked last.
  absl::Status TakeStateFailure();
  // How the runtime ended; OK before.
  absl::Status ended() const;
  CallerProgress progress() const;

  // For the runtime:
  //
  // The game of one peer, which refers to this object.  `queue` is of the
  // device of the parameters; `progress` is asked at the beginning of each
  // step.
  std::unique_ptr<Game> MakeGame(const DeviceQueue& queue,
                                 std::function<CallerProgress()> progress);
  // There will be no further turn.  A step in hand ends.
  void End(const absl::Status& status);

 private:
  class CallersGame;

  absl::StatusOr<Losses> Step(const DeviceQueue& queue,
                              const CallerProgress& progress);
  absl::Status CheckParameters() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool PrepareState();
  void VisitState(StateVisitor& visitor);
  // Waits for about as long as a turn of the program takes, or for the end.
  void PassTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // On the program's thread, without the lock while the program works.
  void Save() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Load() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ParameterLayout layout_;
  std::vector<float> own_;  // unless the memory is the program's
  DeviceSpan<float> parameters_;
  CallerState state_;

  mutable Mutex mu_;
  CondVar changed_;
  Turn turn_ ABSL_GUARDED_BY(mu_) = Turn::kRuntimes;
  // Of the game that waits for the turn in hand.
  DeviceQueue queue_ ABSL_GUARDED_BY(mu_) = DeviceQueue::Host();
  uint64_t turns_ ABSL_GUARDED_BY(mu_) = 0;         // of the program so far
  absl::Duration turns_took_ ABSL_GUARDED_BY(mu_);  // all of them
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;
  Losses losses_ ABSL_GUARDED_BY(mu_);
  CallerProgress progress_ ABSL_GUARDED_BY(mu_);
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
  // The program is to write its state out; `state_bytes_` has what it wrote
  // since its last turn, or what it could not read before the next one.
  bool save_wanted_ ABSL_GUARDED_BY(mu_) = false;
  bool saved_ ABSL_GUARDED_BY(mu_) = false;
  // The program is to read `state_bytes_`.
  bool load_wanted_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::byte> state_bytes_ ABSL_GUARDED_BY(mu_);
  absl::Status state_failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LIBRARY_CALLER_H_
