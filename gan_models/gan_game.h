// A GAN as a game: two networks, a loss and a peer's data behind one flat
// parameter vector.
//
// Knows nothing of optimizers, peers or files.

#ifndef GOSSAMER_GAN_MODELS_GAN_GAME_H_
#define GOSSAMER_GAN_MODELS_GAN_GAME_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/game/game.h"
#include "gan_models/data/dataset.h"
#include "gan_models/gan_step.h"
#include "gan_models/networks/network.h"

namespace gossamer {

// The game of one peer over libtorch.  It owns the flat vectors of which the
// networks' tensors are views, and computes both players' gradients at one
// point.
class GanGame : public Game {
 public:
  struct Options {
    GanStep::Options step;
    int threads = 1;
  };
  // Draws the first parameters from `seed`.  `evaluator` may be null.
  GanGame(std::unique_ptr<Network> generator,
          std::unique_ptr<Network> discriminator,
          std::shared_ptr<const Dataset> data, const Options& options,
          int latent, uint64_t seed, std::unique_ptr<Evaluator> evaluator);

  const ParameterLayout& layout() const override { return layout_; }
  DeviceSpan<float> device_parameters() override { return parameters_; }
  DeviceSpan<const float> device_gradients() const override {
    return gradients_;
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override;
  void VisitState(StateVisitor& visitor) override;
  Evaluator* evaluator() override { return evaluator_.get(); }

 private:
  // Draws a batch into the storage below.
  GanBatch Draw(RngKey key);
  absl::Status CheckFinite(Players players, const Losses& losses) const;
  std::span<float> GradientsOf(Player player);

  const std::unique_ptr<Network> generator_, discriminator_;
  const std::shared_ptr<const Dataset> data_;
  const int threads_;
  ParameterLayout layout_;
  std::vector<float> parameters_, gradients_;
  std::vector<float> statistics_;  // the generator's, then the discriminator's
  std::vector<float> real_, latents_, mixtures_;  // a batch's storage
  std::vector<int64_t> real_labels_, fake_labels_;
  const GanStep step_;
  const std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_GAN_GAME_H_
