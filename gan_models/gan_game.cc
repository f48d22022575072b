#include "gan_models/gan_game.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/kernels/host_copy.h"
#include "gan_models/compute.h"

namespace gossamer {
namespace {

std::vector<Segment> Concatenate(const Network& a, const Network& b) {
  std::vector<Segment> all = a.tensors().parameters();
  const std::vector<Segment>& more = b.tensors().parameters();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

GanGame::GanGame(std::unique_ptr<Network> generator,
                 std::unique_ptr<Network> discriminator,
                 std::shared_ptr<const Dataset> data, const Options& options,
                 int latent, uint64_t seed,
                 std::unique_ptr<Evaluator> evaluator, const TorchQueue& torch)
    : generator_(std::move(generator)),
      discriminator_(std::move(discriminator)),
      torch_(torch),
      threads_(options.threads),
      layout_(Concatenate(*generator_, *discriminator_)),
      parameters_(queue(), layout_.size(), "the parameters"),
      gradients_(queue(), layout_.size(), "the gradients"),
      statistics_(queue(), generator_->tensors().statistic_count() +
                               discriminator_->tensors().statistic_count()),
      before_(queue(), statistics_.size()),
      losses_(queue(), 2),
      outside_(queue(), 1),
      step_(*generator_, *discriminator_,
            {data->example_shape().begin(), data->example_shape().end()},
            latent,
            {.generator_gradients = GradientsOf(Player::kGenerator),
             .discriminator_gradients = GradientsOf(Player::kDiscriminator),
             .losses = losses_},
            options.step, torch_),
      feed_(queue(), std::move(data),
            {.batch = options.step.batch,
             .latent = latent,
             .mixtures = step_.needs_mixtures(),
             .labels = generator_->conditional()}),
      runner_(queue(), options.graphs),
      evaluator_(std::move(evaluator)) {
  // Values are drawn on the host, and before the tensors become views of them.
  std::vector<float> drawn(layout_.size()), counted(statistics_.size());
  Network* const networks[] = {generator_.get(), discriminator_.get()};
  const Player players[] = {Player::kGenerator, Player::kDiscriminator};
  size_t statistic = 0;
  for (size_t i = 0; i < 2; ++i) {
    TensorTable& table = networks[i]->tensors();
    const Extent extent = layout_.extent(players[i]);
    const size_t own = table.statistic_count();
    table.Initialize(seed,
                     std::span(drawn).subspan(extent.offset, extent.size));
    table.InitializeStatistics(std::span(counted).subspan(statistic, own));
    table.Bind(parameters_.span().subspan(extent.offset, extent.size),
               GradientsOf(players[i]),
               statistics_.span().subspan(statistic, own), torch_);
    statistic += own;
  }
  parameters_.CopyFrom(drawn);
  statistics_.CopyFrom(counted);
}

GanGame::~GanGame() { queue().Wait().IgnoreError(); }

DeviceSpan<float> GanGame::GradientsOf(Player player) {
  const Extent extent = layout_.extent(player);
  return gradients_.span().subspan(extent.offset, extent.size);
}

DeviceSpan<const float> GanGame::Computed(Players players) const {
  if (players == Players::kBoth) return gradients_;
  const Extent extent = layout_.extent(Player::kDiscriminator);
  return gradients_.span().subspan(extent.offset, extent.size);
}

absl::StatusOr<Losses> GanGame::Gradient(Players players, RngKey key) {
  // A game may be called from another thread each time.
  UseThreads(threads_);
  if (statistics_.size() > 0) queue().Copy(statistics_, before_.span());
  absl::StatusOr<Outcome> outcome = Step(players, key);
  absl::Status status = outcome.status();
  if (status.ok()) status = CheckFinite(players, *outcome);
  if (status.ok()) return outcome->losses;
  if (statistics_.size() > 0) queue().Copy(before_, statistics_.span());
  // A step of one player leaves the other's extent, and all-reduces take all.
  gradients_.Clear();
  return status;
}

absl::StatusOr<GanGame::Outcome> GanGame::Step(Players players, RngKey key) {
  const GanBatch& batch = feed_.Take(key);
  const auto work = [this, players, &batch] { step_.Run(players, batch); };
  // Shapes are those of the game, so who steps is all that differs.
  GOSSAMER_RETURN_IF_ERROR(runner_.Run(
      static_cast<uint64_t>(players), [&] { return torch_.Enqueue(work); },
      [&] { return torch_.Capture(work); }));
  if (queue().on_host()) {
    const std::span<const float> losses = HostSpan(losses_.span());
    return Outcome{{losses[0], losses[1]}};
  }
  outside_.Clear();
  queue().Run(&DeviceKernels::all_within, std::numeric_limits<float>::max(),
              Computed(players), outside_.span().data);
  const Readback<float> losses(queue(), losses_);
  const Readback<uint32_t> outside(queue(), outside_);
  // The next batch is drawn while the device computes.
  if (prefetch_key_) {
    feed_.Prefetch(*std::exchange(prefetch_key_, std::nullopt));
  }
  GOSSAMER_RETURN_IF_ERROR(queue().Wait());
  GOSSAMER_RETURN_IF_ERROR(torch_.TakeLateError());
  return Outcome{{losses[0], losses[1]}, outside[0] == 0};
}

absl::Status GanGame::CheckFinite(Players players,
                                  const Outcome& outcome) const {
  const bool both = players == Players::kBoth;
  const Losses& losses = outcome.losses;
  // Gradients first: the first tensor that is not finite says more than a loss
  // does.  A device has looked already, and its values come only if one is not.
  if (queue().on_host() || !outcome.finite) {
    const size_t begin =
        both ? 0 : layout_.extent(Player::kDiscriminator).offset;
    const HostCopy<float> copy(queue(), Computed(players));
    GOSSAMER_RETURN_IF_ERROR(queue().status());
    const std::span<const float> gradients = copy.span();
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!std::isfinite(gradients[i])) {
        return absl::DataLossError(
            absl::StrCat("the gradient of ", layout_.At(begin + i).name,
                         " is not finite (losses: ", losses[0], " generator, ",
                         losses[1], " discriminator)"));
      }
    }
  }
  if (!std::isfinite(losses[1])) {
    return absl::DataLossError(
        absl::StrCat("the discriminator's loss is ", losses[1]));
  }
  if (both && !std::isfinite(losses[0])) {
    return absl::DataLossError(
        absl::StrCat("the generator's loss is ", losses[0]));
  }
  return absl::OkStatus();
}

void GanGame::VisitState(StateVisitor& visitor) {
  // Of a device the visitor sees one copy of all, which goes back as it leaves
  // it.
  std::vector<float> copy;
  std::span<float> all;
  if (queue().on_host()) {
    all = HostSpan(statistics_.span());
  } else {
    copy = statistics_.ToHost();
    all = copy;
  }
  for (const Network* network : {generator_.get(), discriminator_.get()}) {
    const TensorTable& table = network->tensors();
    for (const Segment& s : table.statistics()) {
      // By layer and under its name: a checkpoint that is read by another model
      // then names what does not fit.
      visitor.Floats(s.name, all.subspan(s.extent.offset, s.extent.size));
    }
    all = all.subspan(table.statistic_count());
  }
  if (!queue().on_host()) statistics_.CopyFrom(copy);
}

}  // namespace gossamer
