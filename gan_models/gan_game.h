// A GAN as a game: two networks, a loss and a peer's data behind one flat
// parameter vector.
//
// This header knows nothing of optimizers, peers or files.

#ifndef GOSSAMER_GAN_MODELS_GAN_GAME_H_
#define GOSSAMER_GAN_MODELS_GAN_GAME_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/game/game.h"
#include "algorithms/kernels/device_queue.h"
#include "gan_models/batch_feed.h"
#include "gan_models/data/dataset.h"
#include "gan_models/gan_step.h"
#include "gan_models/graph_runner.h"
#include "gan_models/networks/network.h"
#include "gan_models/torch_queue.h"

namespace gossamer {

// The game of one peer over libtorch.  It owns the flat vectors of which the
// networks' tensors are views, and computes both players' gradients at one
// point.
class GanGame : public Game {
 public:
  struct Options {
    GanStep::Options step;
    int threads = 1;
    GraphRunner::Options graphs;
  };
  // Draws the first parameters from `seed`; the vectors lie on the device of
  // `torch`.  `evaluator` may be null.
  GanGame(std::unique_ptr<Network> generator,
          std::unique_ptr<Network> discriminator,
          std::shared_ptr<const Dataset> data, const Options& options,
          int latent, uint64_t seed, std::unique_ptr<Evaluator> evaluator,
          const TorchQueue& torch = TorchQueue::Host());
  // Work that is enqueued refers to its parts.
  ~GanGame() override;

  const ParameterLayout& layout() const override { return layout_; }
  const DeviceQueue& queue() const override { return torch_.queue(); }
  DeviceSpan<float> device_parameters() override { return parameters_; }
  DeviceSpan<const float> device_gradients() const override {
    return gradients_;
  }
  // Blocks until a device has computed.
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override;
  void PrefetchBatch(RngKey key) override { prefetch_key_ = key; }
  void VisitState(StateVisitor& visitor) override;
  Evaluator* evaluator() override { return evaluator_.get(); }
  // Batches that were drawn while the step before was computed.
  uint64_t prefetched() const { return feed_.prefetched(); }

 private:
  // The part of a step's results that the host sees: losses, and whether
  // gradients are finite.
  struct Outcome {
    Losses losses;
    bool finite = true;
  };
  absl::StatusOr<Outcome> Step(Players players, RngKey key);
  absl::Status CheckFinite(Players players, const Outcome& outcome) const;
  // The gradients that a step of these players has computed.
  DeviceSpan<const float> Computed(Players players) const;
  DeviceSpan<float> GradientsOf(Player player);

  const std::unique_ptr<Network> generator_, discriminator_;
  const TorchQueue torch_;
  const int threads_;
  ParameterLayout layout_;
  DeviceVector<float> parameters_, gradients_;
  // The generator's, then the discriminator's; and those before the step, since
  // one that fails leaves them as they were.
  DeviceVector<float> statistics_, before_;
  DeviceVector<float> losses_;
  DeviceVector<uint32_t> outside_;  // 1: a gradient is not finite
  const GanStep step_;
  BatchFeed feed_;
  GraphRunner runner_;
  std::optional<RngKey> prefetch_key_;
  const std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_GAN_GAME_H_
