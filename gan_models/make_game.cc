#include "gan_models/make_game.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/data/dataset.h"
#include "gan_models/evaluation/gan_evaluator.h"
#include "gan_models/gan_game.h"
#include "gan_models/losses.h"
#include "gan_models/networks/network.h"

namespace gossamer {
namespace {

absl::Status OutOfRange(const char* field, double value, const char* range) {
  return absl::InvalidArgumentError(
      absl::StrCat("game.gan.", field, " is ", value, "; it must be ", range));
}

absl::Status CheckNumbers(const GanSpec& spec, int threads) {
  if (spec.batch < 2 || spec.batch > 4096) {
    return OutOfRange("batch", spec.batch, "2 to 4096");
  }
  if (!(spec.gradient_penalty >= 0) || !std::isfinite(spec.gradient_penalty)) {
    return OutOfRange("gradient_penalty", spec.gradient_penalty, "0 or more");
  }
  if (spec.evaluation_samples < 2 || spec.evaluation_samples > 100000) {
    return absl::InvalidArgumentError(absl::StrCat("evaluation.samples is ",
                                                   spec.evaluation_samples,
                                                   "; it must be 2 to 100000"));
  }
  if (threads < 1 || threads > 1024) {
    return absl::InvalidArgumentError(absl::StrCat(
        "resources.threads is ", threads, "; it must be 1 to 1024"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Game>> MakeGan(const GanSpec& spec, int rank,
                                              int peers, uint64_t seed,
                                              int threads) {
  GOSSAMER_RETURN_IF_ERROR(CheckNumbers(spec, threads));
  GOSSAMER_ASSIGN_OR_RETURN(const Loss loss, ParseLoss(spec.loss));
  const NetworkSpec network = {
      .model = spec.model,
      .width = spec.width,
      .latent = spec.latent,
      // BatchNorm ties the examples of a batch together, and the penalty is
      // about each example by itself (Gulrajani et al., NeurIPS 2017, section
      // 4).
      .discriminator_batch_norm = loss != Loss::kWassersteinGp};
  GOSSAMER_ASSIGN_OR_RETURN(auto generator,
                            Network::Create(Player::kGenerator, network));
  GOSSAMER_ASSIGN_OR_RETURN(auto discriminator,
                            Network::Create(Player::kDiscriminator, network));
  GOSSAMER_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> data,
                            Dataset::Open(spec.data, rank, peers, seed));
  GOSSAMER_ASSIGN_OR_RETURN(
      auto evaluator,
      GanEvaluator::Create(network, data, spec.evaluation_samples, threads));
  return std::make_unique<GanGame>(
      std::move(generator), std::move(discriminator), std::move(data),
      GanGame::Options{.loss = loss,
                       .gradient_penalty = spec.gradient_penalty,
                       .batch = spec.batch,
                       .one_backward = spec.one_backward,
                       .threads = threads},
      spec.latent, seed, std::move(evaluator));
}

}  // namespace gossamer
