// A GAN as a game: two networks, a loss and a peer's data behind one flat
// parameter vector.
//
// Knows nothing of optimizers, peers or files.

#ifndef GOSSAMER_GAN_MODELS_GAN_GAME_H_
#define GOSSAMER_GAN_MODELS_GAN_GAME_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/game/game.h"
#include "gan_models/data/dataset.h"
#include "gan_models/losses.h"
#include "gan_models/networks/network.h"

namespace gossamer {

// The game of one peer over libtorch.  It owns the flat vectors of which the
// networks' tensors are views, and computes both players' gradients at one
// point.
class GanGame : public Game {
 public:
  struct Options {
    Loss loss = Loss::kWassersteinGp;
    double gradient_penalty = 10;  // its weight; with kWassersteinGp only
    int batch = 16;
    bool one_backward = true;
    int threads = 1;
  };
  // Draws the first parameters from `seed`.  `evaluator` may be null.
  GanGame(std::unique_ptr<Network> generator,
          std::unique_ptr<Network> discriminator,
          std::shared_ptr<const Dataset> data, const Options& options,
          int latent, uint64_t seed, std::unique_ptr<Evaluator> evaluator);

  const ParameterLayout& layout() const override { return layout_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<const float> gradients() const override { return gradients_; }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override;
  void VisitState(StateVisitor& visitor) override;
  Evaluator* evaluator() override { return evaluator_.get(); }

 private:
  absl::StatusOr<Losses> Step(Players players, RngKey key);
  Losses DiscriminatorStep(const at::Tensor& real, const at::Tensor& fake,
                           RngKey key);
  at::Tensor RealBatch(RngKey key);
  at::Tensor Latents(RngKey key);
  absl::Status CheckFinite(Players players, const Losses& losses) const;
  std::span<float> GradientsOf(Player player);

  const std::unique_ptr<Network> generator_, discriminator_;
  const std::shared_ptr<const Dataset> data_;
  const Options options_;
  const int latent_;
  // One backward pass serves both players: the gradient that flows into the
  // fake examples is minus the generator's.  Needs a generator loss that is
  // minus the discriminator's on them, and scores that depend on one example
  // each.
  const bool one_backward_;
  ParameterLayout layout_;
  std::vector<float> parameters_, gradients_, statistics_;
  std::vector<float> real_, latents_;  // a batch's storage
  const std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_GAN_GAME_H_
