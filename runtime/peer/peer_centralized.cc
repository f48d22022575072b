// A round of a centralized fleet: steps along the exact mean of all members'
// gradients, or steps of each by itself and then the mean of their parameters.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "runtime/peer/peer.h"

namespace gossamer {
namespace {

// Whether `a` is the mean of as many equal vectors `b` as there are peers.
bool SameUpToRounding(std::span<const float> a, std::span<const float> b) {
  double difference = 0, squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    squares += static_cast<double>(b[i]) * b[i];
  }
  return difference <= 1e-12 * squares;
}

}  // namespace

uint64_t Peer::Operation() const {
  return spec_.averages_parameters ? round_ : steps_;
}

Task<absl::Status> Peer::CentralizedRound() {
  if (spec_.averages_parameters) {
    Task<absl::Status> mean = AverageParameters();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await mean.result());
    if (stopped_ || left_) co_return absl::OkStatus();
  } else {
    for (int i = 0; i < spec_.steps_per_round; ++i) {
      Task<absl::Status> step = AverageGradients();
      GOSSAMER_CO_RETURN_IF_ERROR(co_await step.result());
      if (stopped_ || left_) co_return absl::OkStatus();
    }
  }
  UpdateAverage();
  co_return absl::OkStatus();
}

// One step of all peers along the mean of their gradients.
Task<absl::Status> Peer::AverageGradients() {
  const absl::Time started = parts_.loop->Now();
  co_await Compute([this] {
    losses_ = parts_.step->Gradient(
        steps_, key_.Fold(static_cast<uint64_t>(rank_)).Fold(steps_));
    if (losses_.ok() && !all_reducer_.Takes(parts_.game->gradients())) {
      losses_ = absl::DataLossError(
          "a value of the gradient is not finite or beyond 2^100: no memory of "
          "mixing.gradient_codec may keep it; lower the learning rate");
    }
    // The others wait for this peer's share, even if there is none.
    all_reducer_.Begin(steps_, losses_.ok() ? parts_.game->gradients()
                                            : std::span<const float>());
    NoteStep(losses_);
  });
  Task<absl::Status> wait = AwaitMean(started, parts_.loop->Now());
  GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
  if (stopped_ || left_) co_return absl::OkStatus();
  const absl::Time received = parts_.loop->Now();
  bool nobody_steps = false;
  co_await Compute([this, &nobody_steps] {
    const std::span<const float> mean = all_reducer_.Mean();
    nobody_steps = CannotStep() && HostKernels().squared_norm(mean) == 0;
    // The same bits everywhere: all skip the step, or none does.
    if (HostKernels().all_finite(mean)) {
      parts_.step->Apply(steps_, round_, mean);
    } else {
      NoteStep(absl::DataLossError("the mean gradient is not finite"));
    }
  });
  if (nobody_steps) co_return NobodySteps();
  all_reducer_.LeadAhead();
  ++steps_;
  metrics_.seconds_computing +=
      absl::ToDoubleSeconds(parts_.loop->Now() - received);
  co_return absl::OkStatus();
}

// The steps of a round at each peer by itself, then the mean of all parameters.
Task<absl::Status> Peer::AverageParameters() {
  const absl::Time started = parts_.loop->Now();
  averaging_ = true;
  co_await Compute([this] {
    LocalSteps();
    all_reducer_.Begin(round_, parts_.game->parameters());
  });
  Task<absl::Status> wait = AwaitMean(started, parts_.loop->Now());
  GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
  if (stopped_ || left_) co_return absl::OkStatus();
  const absl::Time received = parts_.loop->Now();
  bool finite = false, nobody_steps = false;
  co_await Compute([this, &finite, &nobody_steps] {
    const std::span<const float> mean = all_reducer_.Mean();
    const std::span<float> x = parts_.game->parameters();
    finite = HostKernels().all_finite(mean);
    if (!finite) return;
    nobody_steps = CannotStep() && SameUpToRounding(mean, x);
    std::ranges::copy(mean, x.begin());
  });
  if (!finite) {
    co_return absl::DataLossError(absl::StrCat(
        "round ", round_,
        ": the mean of all peers' parameters is not finite; lower the learning "
        "rates and go on from a checkpoint"));
  }
  if (nobody_steps) co_return NobodySteps();
  averaging_ = false;
  metrics_.seconds_computing +=
      absl::ToDoubleSeconds(parts_.loop->Now() - received);
  co_return absl::OkStatus();
}

// Sends this peer's share and waits for the mean, or sets stopped_ or left_ if
// it will not come because the run ends before this round.
Task<absl::Status> Peer::AwaitMean(absl::Time started, absl::Time computed) {
  all_reducer_.Start(Operation());
  const bool reduced = co_await waiter_.Until(
      [this] { return all_reducer_.done() || EndedBehind() || leaves_now_; },
      parts_.loop->Now() + spec_.liveness_limit);
  if (reduced && !all_reducer_.done()) {
    // The others stand before this round: it ends there, too.
    stopped_ = EndedBehind();
    left_ = !stopped_;
    if (stopped_) decisions_.TellStop(round_);
    co_return absl::OkStatus();
  }
  if (!reduced) {
    co_return absl::DeadlineExceededError(absl::StrCat(
        "round ", round_, ": the all-reduce of ",
        spec_.averages_parameters ? "parameters" : "gradients",
        " did not end within ", absl::FormatDuration(spec_.liveness_limit),
        " (mixing.liveness_limit), for want of ", all_reducer_.Awaited(),
        "; a peer is gone, and a centralized algorithm cannot go on without "
        "it"));
  }
  const absl::Time received = parts_.loop->Now();
  const bool choosing = all_reducer_.chosen().empty();
  all_reducer_.Finish(absl::ToDoubleSeconds(received - computed));
  if (choosing && !all_reducer_.chosen().empty()) TellAllReduce();
  metrics_.seconds_computing += absl::ToDoubleSeconds(computed - started);
  metrics_.seconds_waiting += absl::ToDoubleSeconds(received - computed);
  co_return absl::OkStatus();
}

void Peer::TellAllReduce() {
  const std::vector<std::string_view> names = AllReduce::Names();
  const auto chosen = std::ranges::find(names, all_reducer_.chosen());
  decisions_.TellAllReduce(static_cast<size_t>(chosen - names.begin()));
  std::vector<std::string> tried;
  for (const auto& [name, seconds] : all_reducer_.tried()) {
    tried.push_back(absl::StrFormat("%s %.1f ms", name, 1e3 * seconds));
  }
  Tell("all_reduce", absl::StrCat(all_reducer_.chosen(), " from here on; ",
                                  absl::StrJoin(tried, ", ")));
}

}  // namespace gossamer
