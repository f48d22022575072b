#include "runtime/library/caller.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/kernels/kernels.h"
#include "runtime/config/compose.h"

namespace gossamer {
namespace {

// The time in which a program has to give or take its state.  The loop of the
// peer stands still meanwhile and sends no heartbeats, so this is less than a
// lease.
constexpr absl::Duration kStateLimit = absl::Seconds(3);

}  // namespace

// The game whose gradient is the program's turn: the step has been made when it
// comes back, and the rule of method caller adds nothing.
class Caller::CallersGame final : public Game {
 public:
  CallersGame(Caller* caller, std::function<CallerProgress()> progress)
      : caller_(caller), progress_(std::move(progress)) {}

  const ParameterLayout& layout() const override { return caller_->layout_; }
  DeviceSpan<float> device_parameters() override {
    return caller_->parameters_;
  }
  // The game has no gradients and the rule reads none: a vector for them would
  // be as large as the parameters.
  DeviceSpan<const float> device_gradients() const override {
    return caller_->parameters_;
  }
  absl::StatusOr<Losses> Gradient(Players, RngKey) override {
    return caller_->Step(progress_());
  }
  void VisitState(StateVisitor& visitor) override {
    caller_->VisitState(visitor);
  }

 private:
  Caller* const caller_;
  const std::function<CallerProgress()> progress_;
};

Caller::Caller(ParameterLayout layout)
    : layout_(std::move(layout)), own_(layout_.size()), parameters_(own_) {}

void Caller::UseMemory(float* parameters) {
  parameters_ = {parameters, layout_.size()};
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
  if (!HostKernels().all_within(kLargestParameter, parameters_)) {
    const auto bad = std::ranges::find_if(parameters_, [](float value) {
      return !(std::abs(value) <= kLargestParameter);
    });
    const auto index = static_cast<size_t>(bad - parameters_.begin());
    const Segment& segment = layout_.At(index);
    return absl::InvalidArgumentError(absl::StrCat(
        "mix: ", segment.name, " has the value ", *bad, " at index ",
        index - segment.extent.offset,
        "; parameters must be finite and within 1e6. Nothing of this step was "
        "sent: mend the parameters and mix again, or leave"));
  }
  losses_ = losses;
  turn_ = Turn::kRuntimes;
  changed_.SignalAll();
  return absl::OkStatus();
}

Caller::Turn Caller::Await(absl::Duration limit) {
  const auto answered = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return turn_ != Turn::kRuntimes || wish_ != Wish::kNone ||
           !state_failure_.ok();
  };
  mu_.Lock();
  // A program that leaves and waits has ended its step.
  if (leaving_ && turn_ == Turn::kCallers) {
    turn_ = Turn::kRuntimes;
    changed_.SignalAll();
  }
  while (changed_.AwaitFor(&mu_, limit, answered) && wish_ != Wish::kNone) {
    const Wish wish = wish_;
    const uint64_t number = wishes_;
    std::vector<std::byte> state;
    if (wish == Wish::kLoad) state = saved_;
    mu_.Unlock();
    absl::Status answer;
    if (wish == Wish::kSave && state_.save) answer = state_.save(state);
    if (wish == Wish::kLoad && state_.load) answer = state_.load(state);
    mu_.Lock();
    // The runtime waits for an answer, but not for ever.
    if (wish_ != wish || wishes_ != number) continue;
    if (wish == Wish::kSave) saved_ = std::move(state);
    answer_ = std::move(answer);
    wish_ = Wish::kNone;
    changed_.SignalAll();
  }
  const Turn turn = turn_;
  mu_.Unlock();
  return turn;
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
    std::function<CallerProgress()> progress) {
  return std::make_unique<CallersGame>(this, std::move(progress));
}

void Caller::End(const absl::Status& status) {
  MutexLock lock(&mu_);
  turn_ = Turn::kOver;
  ended_ = status;
  changed_.SignalAll();
}

Losses Caller::Step(const CallerProgress& progress) {
  MutexLock lock(&mu_);
  progress_ = progress;
  if (leaving_ || turn_ == Turn::kOver) return losses_;
  turn_ = Turn::kCallers;
  changed_.SignalAll();
  // The program takes as long as it likes: a peer whose program hangs is one
  // that waits for its neighbours, and the fleet's deadlines are for it.
  while (turn_ == Turn::kCallers) changed_.WaitFor(&mu_, absl::Hours(1));
  return losses_;
}

void Caller::Ask(Wish wish) {
  MutexLock lock(&mu_);
  if (turn_ != Turn::kRuntimes) return;
  answer_ = absl::OkStatus();
  wish_ = wish;
  ++wishes_;
  changed_.SignalAll();
  if (!changed_.AwaitFor(&mu_, kStateLimit,
                         [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                           return wish_ == Wish::kNone;
                         })) {
    wish_ = Wish::kNone;
    answer_ = absl::DeadlineExceededError(absl::StrCat(
        "it took longer than ", absl::FormatDuration(kStateLimit)));
  }
  if (answer_.ok()) return;
  // No state is better than an old one beside new parameters.
  if (wish == Wish::kSave) saved_.clear();
  state_failure_ = absl::InternalError(absl::StrCat(
      "the program's state was not ", wish == Wish::kSave ? "saved" : "loaded",
      ": ", answer_.message(), "; the run goes on, and ",
      wish == Wish::kSave ? "this checkpoint is without it"
                          : "the program has what it had"));
  changed_.SignalAll();
}

void Caller::VisitState(StateVisitor& visitor) {
  if (state_.save) Ask(Wish::kSave);
  std::vector<std::byte> state;
  {
    MutexLock lock(&mu_);
    state = saved_;
  }
  const std::vector<std::byte> before = state;
  visitor.Bytes("caller", state);
  // A visitor that loads shows it by what it has changed.
  if (state == before) return;
  {
    MutexLock lock(&mu_);
    saved_ = state;
  }
  // Empty: the checkpoint was saved without it.
  if (state_.load && !state.empty()) Ask(Wish::kLoad);
}

}  // namespace gossamer
