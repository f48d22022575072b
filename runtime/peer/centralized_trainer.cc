#include "runtime/peer/centralized_trainer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {
namespace {

// The time that the end waits for members that are not connected: without this
// peer's part of the last mean another one would end with nothing.  It is
// longer than for gossip, where a peer ends with parameters of its own whether
// or not a last correction comes.
constexpr absl::Duration kMeanDrainLimit = absl::Minutes(2);

// Returns whether `a` is, up to rounding, the mean of vectors that all equal
// `b`: then no peer has moved.  The sums of all-reduce are of floats, whose
// relative error is about 1e-7 an addition; 1e-12 bounds its square.
bool SameUpToRounding(std::span<const float> a, std::span<const float> b) {
  double difference = 0, squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    squares += static_cast<double>(b[i]) * b[i];
  }
  return difference <= 1e-12 * squares;
}

bool AllFinite(const DeviceQueue& queue, DeviceSpan<const float> x) {
  DeviceVector<uint32_t> outside(queue, 1);
  queue.Run(&DeviceKernels::all_within, std::numeric_limits<float>::max(), x,
            outside.span().data);
  return outside.ToHost()[0] == 0;
}

}  // namespace

CentralizedTrainer::CentralizedTrainer(const PeerSpec& spec, Parts parts)
    : spec_(spec),
      parts_(std::move(parts)),
      all_reducer_(parts_.transport, parts_.nccl_sum, parts_.game->queue()) {
  if (parts_.nccl_sum != nullptr) {
    parts_.nccl_sum->SetOnChange([this] { parts_.waiter->Notify(); });
  }
}

absl::Duration CentralizedTrainer::DrainLimit() const {
  return kMeanDrainLimit;
}

// A peer that left within a round has no longer what the others had at its
// beginning.
bool CentralizedTrainer::AtBoundary() const {
  return !all_reducer_.residual_lost() && !averaging_ &&
         parts_.state->steps() % static_cast<uint64_t>(spec_.steps_per_round) ==
             0;
}

absl::Status CentralizedTrainer::OnView(bool first,
                                        const SavedEdges& /*saved*/) {
  for (const Member& m : parts_.views->view().members) {
    // A schedule may have any two ranks exchange, and `auto` tries them all.
    if (m.id != spec_.self) parts_.transport->Connect(m.id, m.address);
  }
  // A replay takes the schedule that was chosen by time: another order of
  // additions would change bits.
  if (const auto index = parts_.decisions->all_reduce()) {
    all_reducer_.Prefer(*index);
  }
  if (const auto end = parts_.decisions->nccl_end()) {
    all_reducer_.EndNccl(*end);
  }
  GOSSAMER_RETURN_IF_ERROR(all_reducer_.SetMembers(
      spec_.all_reduce, parts_.views->rank(), parts_.views->view(), Operation(),
      parts_.state->layout(), parts_.gradients));
  if (first) by_nccl_ = all_reducer_.ByNccl(Operation());
  return absl::OkStatus();
}

bool CentralizedTrainer::ByNccl() {
  if (by_nccl_ && !all_reducer_.ByNccl(Operation())) {
    // The operation is the same at all members.  A replay leaves NCCL there,
    // too: its sums have other bits.
    by_nccl_ = false;
    parts_.decisions->NoteNcclEnd(Operation());
  }
  return by_nccl_;
}

Task<absl::Status> CentralizedTrainer::Round() {
  const int means = averages_parameters() ? 1 : spec_.steps_per_round;
  for (int i = 0; i < means; ++i) {
    Task<absl::Status> mean =
        averages_parameters() ? AverageParameters() : AverageGradients();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await mean.result());
    if (parts_.lifecycle->over()) co_return absl::OkStatus();
  }
  parts_.state->UpdateAverage();
  co_return absl::OkStatus();
}

void CentralizedTrainer::BeginGradient(bool by_nccl) {
  const uint64_t step = parts_.state->steps();
  const int rank = parts_.views->rank();
  parts_.step->PrefetchBatch(parts_.runner->KeyOf(rank, 1));
  absl::StatusOr<Losses> losses =
      parts_.step->Gradient(step, parts_.runner->KeyOf(rank));
  // The others wait for this peer's share, even if there is none.  A gradient
  // that the compressor would keep in its memory is looked at first: what is
  // not finite would never leave it.
  const bool takes = all_reducer_.Begin(
      step,
      losses.ok() ? parts_.game->device_gradients() : DeviceSpan<const float>(),
      by_nccl);
  if (!takes) {
    losses = absl::DataLossError(
        "a value of the gradient is not finite or beyond 2^100: no memory of "
        "mixing.gradient_codec may keep it; lower the learning rate");
  }
  parts_.runner->NoteStep(losses);
}

// The mean has the same bits everywhere, so all skip the step, or none does.
bool CentralizedTrainer::ApplyMean() {
  const DeviceSpan<const float> mean = all_reducer_.Mean();
  const DeviceQueue& queue = parts_.game->queue();
  // Every peer that has failed contributes zeros, so a mean of exact zeros says
  // that none had a gradient.  One peer's failure alone ends nothing.
  const bool nobody = parts_.health->CannotStep() &&
                      HostKernels().squared_norm(queue.ToHost(mean)) == 0;
  if (AllFinite(queue, mean)) {
    // The mean is the same at all peers, and so is what they do with it.
    parts_.step->Apply(parts_.state->steps(), parts_.state->round(), mean);
  } else {
    parts_.runner->NoteStep(
        absl::DataLossError("the mean gradient is not finite"));
  }
  return !nobody;
}

absl::StatusOr<bool> CentralizedTrainer::TakeMean() {
  const DeviceSpan<const float> mean = all_reducer_.Mean();
  const DeviceQueue& queue = parts_.game->queue();
  if (!AllFinite(queue, mean)) {
    return absl::DataLossError(absl::StrCat(
        "round ", parts_.state->round(),
        ": the mean of all peers' parameters is not finite; lower the learning "
        "rates and go on from a checkpoint"));
  }
  const DeviceSpan<float> x = parts_.state->parameters();
  // The comparison is made before x is overwritten.
  const bool nobody = parts_.health->CannotStep() &&
                      SameUpToRounding(queue.ToHost(mean), queue.ToHost(x));
  queue.Copy(mean, x);
  return !nobody;
}

Task<absl::Status> CentralizedTrainer::AverageGradients() {
  const absl::Time started = parts_.loop->Now();
  const bool by_nccl = ByNccl();
  co_await parts_.runner->Run([this, by_nccl] { BeginGradient(by_nccl); });
  Task<absl::Status> wait = AwaitMean(started);
  GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
  if (parts_.lifecycle->over()) co_return absl::OkStatus();
  const absl::Time received = parts_.loop->Now();
  bool steps = true;
  co_await parts_.runner->Run([this, &steps] { steps = ApplyMean(); });
  if (!steps) co_return NobodySteps();
  // The next operation's leader sends its message while the others still apply
  // the mean: a round trip less.
  all_reducer_.SendNextLeaderMessage();
  parts_.state->set_steps(parts_.state->steps() + 1);
  parts_.reporter->metrics().seconds_computing +=
      absl::ToDoubleSeconds(parts_.loop->Now() - received);
  co_return absl::OkStatus();
}

Task<absl::Status> CentralizedTrainer::AverageParameters() {
  const absl::Time started = parts_.loop->Now();
  // Until the mean has come x is this peer's alone: no checkpoint may have it
  // (AtBoundary).
  averaging_ = true;
  const bool by_nccl = ByNccl();
  co_await parts_.runner->Run([this, by_nccl] {
    parts_.runner->LocalSteps(parts_.views->rank());
    all_reducer_.Begin(Operation(), parts_.state->parameters(), by_nccl);
  });
  Task<absl::Status> wait = AwaitMean(started);
  GOSSAMER_CO_RETURN_IF_ERROR(co_await wait.result());
  if (parts_.lifecycle->over()) co_return absl::OkStatus();
  const absl::Time received = parts_.loop->Now();
  absl::StatusOr<bool> steps = true;
  co_await parts_.runner->Run([this, &steps] { steps = TakeMean(); });
  if (!steps.ok()) co_return steps.status();
  if (!*steps) co_return NobodySteps();
  averaging_ = false;
  parts_.reporter->metrics().seconds_computing +=
      absl::ToDoubleSeconds(parts_.loop->Now() - received);
  co_return absl::OkStatus();
}

Task<absl::Status> CentralizedTrainer::AwaitMean(absl::Time started) {
  const absl::Time computed = parts_.loop->Now();
  // Start() sends, and the transport belongs to the loop; Begin(), which only
  // computes, ran on the compute engine.
  all_reducer_.Start(Operation());
  bool reduced = co_await MeanOrEnd();
  if (reduced && all_reducer_.nccl_failed()) {
    ByNccl();
    co_await parts_.runner->Run([this] { all_reducer_.Encode(); });
    all_reducer_.Restart();
    reduced = co_await MeanOrEnd();
  }
  // The mean comes before the stop: one that is complete is applied by all.
  if (reduced && !all_reducer_.done()) co_return EndRounds();
  if (!reduced) co_return NotReduced();
  const absl::Time received = parts_.loop->Now();
  FinishReduce(absl::ToDoubleSeconds(received - computed));
  RoundMetrics& metrics = parts_.reporter->metrics();
  metrics.seconds_computing += absl::ToDoubleSeconds(computed - started);
  metrics.seconds_waiting += absl::ToDoubleSeconds(received - computed);
  co_return absl::OkStatus();
}

Pending<bool> CentralizedTrainer::MeanOrEnd() {
  return parts_.waiter->Until(
      [this] {
        return all_reducer_.done() || all_reducer_.nccl_failed() ||
               parts_.stop->EndedBehind() || parts_.lifecycle->out_of_time();
      },
      parts_.loop->Now() + spec_.liveness_limit);
}

// The others stand before this round, or this peer's time is over: its rounds
// end within this one.
absl::Status CentralizedTrainer::EndRounds() {
  if (!parts_.stop->EndedBehind()) {
    return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kLeft);
  }
  // The log says it, so that a replay stops there, too.
  parts_.decisions->NoteStop(parts_.state->round());
  return parts_.lifecycle->EndRounds(Lifecycle::Outcome::kStopped);
}

void CentralizedTrainer::FinishReduce(double seconds) {
  // The choice is made within Finish() of the trial's last operation.
  const bool choosing = all_reducer_.chosen().empty();
  all_reducer_.Finish(seconds);
  if (!choosing || all_reducer_.chosen().empty()) return;
  const std::vector<std::string_view> names = AllReduce::Names();
  const auto chosen = std::ranges::find(names, all_reducer_.chosen());
  parts_.decisions->NoteAllReduce(static_cast<size_t>(chosen - names.begin()));
  std::vector<std::string> tried;
  for (const auto& [name, took] : all_reducer_.tried()) {
    tried.push_back(absl::StrFormat("%s %.1f ms", name, 1e3 * took));
  }
  parts_.reporter->Report("all_reduce",
                          absl::StrCat(all_reducer_.chosen(), " from here on; ",
                                       absl::StrJoin(tried, ", ")));
}

// All peers have one x.
absl::Status CentralizedTrainer::NobodySteps() const {
  return absl::DataLossError(absl::StrFormat(
      "round %d: no peer has had a gradient for %d steps of this one; look at "
      "the step_skipped events, lower the learning rates and go on from a "
      "checkpoint",
      parts_.state->round(), parts_.health->skipped()));
}

absl::Status CentralizedTrainer::NotReduced() const {
  return absl::DeadlineExceededError(absl::StrCat(
      "round ", parts_.state->round(), ": the all-reduce of ",
      averages_parameters() ? "parameters" : "gradients",
      " did not end within ", absl::FormatDuration(spec_.liveness_limit),
      " (mixing.liveness_limit), for want of ", all_reducer_.Awaited(),
      "; a peer is gone, and a centralized algorithm cannot go on without "
      "it"));
}

}  // namespace gossamer
