#include "runtime/library/caller.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/steady_time.h"
#include "runtime/config/compose.h"

namespace gossamer {
namespace {

// Of a round of a program that leaves.
constexpr absl::Duration kLeastTurn = absl::Milliseconds(10);
constexpr absl::Duration kMostTurn = absl::Seconds(1);

}  // namespace

// The game whose gradient is the program's turn: the step has been made when it
// comes back, and the rule of method caller adds nothing.
class Caller::CallersGame final : public Game {
 public:
  CallersGame(Caller* caller, const DeviceQueue& queue,
              std::function<CallerProgress()> progress)
      : caller_(caller), queue_(queue), progress_(std::move(progress)) {}

  const ParameterLayout& layout() const override { return caller_->layout_; }
  const DeviceQueue& queue() const override { return queue_; }
  DeviceSpan<float> device_parameters() override {
    return caller_->parameters_;
  }
  // The game has no gradients and the rule reads none: a vector for them would
  // be as large as the parameters.
  DeviceSpan<const float> device_gradients() const override {
    return caller_->parameters_;
  }
  absl::StatusOr<Losses> Gradient(Players, RngKey) override {
    return caller_->Step(queue_, progress_());
  }
  bool PrepareState() override { return caller_->PrepareState(); }
  void VisitState(StateVisitor& visitor) override {
    caller_->VisitState(visitor);
  }

 private:
  Caller* const caller_;
  const DeviceQueue queue_;
  const std::function<CallerProgress()> progress_;
};

Caller::Caller(ParameterLayout layout)
    : layout_(std::move(layout)), own_(layout_.size()), parameters_(own_) {}

void Caller::UseMemory(DeviceSpan<float> parameters) {
  parameters_ = parameters;
  own_ = {};
}

absl::Status Caller::EndStep(const Losses& losses) {
  MutexLock lock(&mu_);
  if (turn_ == Turn::kRuntimes) {
    return absl::FailedPreconditionError(
        "mix: the round before is not over; wait for it");
  }
  if (turn_ == Turn::kOver) return absl::OkStatus();
  // The parameters are the caller's here, so the runtime waits and not the
  // other way round.
  GOSSAMER_RETURN_IF_ERROR(CheckParameters());
  // The runtime asked during the turn.
  if (save_wanted_) Save();
  if (turn_ == Turn::kOver) return absl::OkStatus();
  losses_ = losses;
  turn_ = Turn::kRuntimes;
  changed_.SignalAll();
  return absl::OkStatus();
}

// The thread that computes waits in Step(), and the loop asks nothing of the
// queue during a step that would be in the way.
absl::Status Caller::CheckParameters() const {
  DeviceVector<uint32_t> outside(queue_, 1);
  queue_.Run(&DeviceKernels::all_within, kLargestParameter, parameters_,
             outside.span().data);
  const std::vector<uint32_t> found = outside.ToHost();
  // The runtime notices a device that has failed, and says why.
  if (!queue_.status().ok() || found[0] == 0) return absl::OkStatus();
  const std::vector<float> values = queue_.ToHost(parameters_);
  const auto bad = std::ranges::find_if(values, [](float value) {
    return !(std::abs(value) <= kLargestParameter);
  });
  const auto index = static_cast<size_t>(bad - values.begin());
  const Segment& segment = layout_.At(index);
  return absl::InvalidArgumentError(absl::StrCat(
      "mix: ", segment.name, " has the value ", *bad, " at index ",
      index - segment.extent.offset,
      "; parameters must be finite and within 1e6. Nothing of this step was "
      "sent: mend the parameters and mix again, or leave"));
}

Caller::Turn Caller::Await(absl::Duration limit) {
  const auto saves = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return save_wanted_ && turn_ == Turn::kRuntimes;
  };
  const auto due = [this, saves]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return turn_ != Turn::kRuntimes || load_wanted_ || saves() ||
           !state_failure_.ok();
  };
  MutexLock lock(&mu_);
  // A program that leaves and waits has ended its step.
  if (leaving_ && turn_ == Turn::kCallers) {
    turn_ = Turn::kRuntimes;
    changed_.SignalAll();
  }
  while (changed_.AwaitFor(&mu_, limit, due) && (load_wanted_ || saves())) {
    if (load_wanted_) {
      Load();
    } else {
      Save();
    }
  }
  // From here on the program's state is another one.
  if (turn_ == Turn::kCallers && state_failure_.ok()) {
    saved_ = false;
    if (!load_wanted_) state_bytes_ = {};
  }
  return turn_;
}

void Caller::Save() {
  const uint64_t turns = turns_;
  std::vector<std::byte> state;
  mu_.Unlock();
  absl::Status status = state_.save(state);
  mu_.Lock();
  // The program goes on from here with a turn or with another state, and is
  // asked for what it has then.
  if (turns_ != turns || load_wanted_) return;
  save_wanted_ = false;
  saved_ = true;
  // No state is better than an old one beside new parameters.
  if (!status.ok()) state = {};
  state_bytes_ = std::move(state);
  if (status.ok()) return;
  state_failure_ = absl::InternalError(
      absl::StrCat("the program's state was not saved: ", status.message(),
                   "; the run goes on, and what is saved now is without it"));
}

void Caller::Load() {
  load_wanted_ = false;
  std::vector<std::byte> state = std::exchange(state_bytes_, {});
  mu_.Unlock();
  absl::Status status;
  if (!state.empty() && state_.load) status = state_.load(state);
  mu_.Lock();
  // The runtime may have restored another one meanwhile.
  if (status.ok() || load_wanted_) return;
  // Until the program makes a step, it is the one that fits the parameters: a
  // program that ends here leaves checkpoints that another can go on from.
  state_bytes_ = std::move(state);
  saved_ = true;
  save_wanted_ = false;
  state_failure_ = absl::InternalError(
      absl::StrCat("the program's state was not loaded: ", status.message(),
                   "; the run goes on, and the program has what it had"));
}

void Caller::Leave() {
  MutexLock lock(&mu_);
  leaving_ = true;
}

absl::Status Caller::TakeStateFailure() {
  MutexLock lock(&mu_);
  return std::exchange(state_failure_, absl::OkStatus());
}

absl::Status Caller::ended() const {
  MutexLock lock(&mu_);
  return ended_;
}

CallerProgress Caller::progress() const {
  MutexLock lock(&mu_);
  return progress_;
}

std::unique_ptr<Game> Caller::MakeGame(
    const DeviceQueue& queue, std::function<CallerProgress()> progress) {
  return std::make_unique<CallersGame>(this, queue, std::move(progress));
}

void Caller::End(const absl::Status& status) {
  DeviceQueue queue = DeviceQueue::Host();
  {
    MutexLock lock(&mu_);
    queue = queue_;
  }
  // As in Step(); a device that has failed has ended the peer by now.
  queue.Wait().IgnoreError();
  MutexLock lock(&mu_);
  turn_ = Turn::kOver;
  ended_ = status;
  changed_.SignalAll();
}

absl::StatusOr<Losses> Caller::Step(const DeviceQueue& queue,
                                    const CallerProgress& progress) {
  // The program looks at the parameters with kernels of its own.
  GOSSAMER_RETURN_IF_ERROR(queue.Wait());
  MutexLock lock(&mu_);
  progress_ = progress;
  if (turn_ == Turn::kOver) return losses_;
  if (leaving_) {
    PassTurn();
    return losses_;
  }
  const absl::Time began = SteadyNow();
  turn_ = Turn::kCallers;
  queue_ = queue;
  ++turns_;
  changed_.SignalAll();
  // The program takes as long as it likes: a peer whose program hangs is one
  // that waits for its neighbours, and the fleet's deadlines are for it.
  while (turn_ == Turn::kCallers) changed_.WaitFor(&mu_, absl::Hours(1));
  turns_took_ += SteadyNow() - began;
  return losses_;
}

// Without a step to wait for, thousands of rounds would pass before the fleet
// has agreed on the one in which this peer leaves; if all leave, to the last
// round of the run.
void Caller::PassTurn() {
  const absl::Duration mean =
      turns_took_ / static_cast<double>(std::max<uint64_t>(turns_, 1));
  changed_.AwaitFor(&mu_, std::clamp(mean, kLeastTurn, kMostTurn),
                    [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                      return turn_ == Turn::kOver;
                    });
}

bool Caller::PrepareState() {
  MutexLock lock(&mu_);
  if (!state_.save || saved_ || turn_ == Turn::kOver) return true;
  if (!std::exchange(save_wanted_, true)) changed_.SignalAll();
  return false;
}

void Caller::VisitState(StateVisitor& visitor) {
  MutexLock lock(&mu_);
  visitor.Bytes("caller", state_bytes_);
  if (!visitor.loads()) return;
  // A checkpoint that was saved without it has none.
  saved_ = false;
  load_wanted_ = true;
  changed_.SignalAll();
}

}  // namespace gossamer
