#include "gan_models/make_game.h"

#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/compute.h"
#include "gan_models/data/dataset.h"
#include "gan_models/evaluation/gan_evaluator.h"
#include "gan_models/gan_game.h"
#include "gan_models/losses.h"
#include "gan_models/networks/network.h"
#include "gan_models/precision.h"
#include "gan_models/torch_queue.h"

namespace gossamer {
namespace {

void SayThatStepsAreEager(const std::string& why) {
  std::fprintf(stderr, "steps run without a CUDA graph, which is slower: %s\n",
               why.c_str());
}

}  // namespace

bool HasNetworks() { return true; }

absl::StatusOr<std::unique_ptr<Game>> MakeGan(const GanSpec& spec, int rank,
                                              int peers, uint64_t seed,
                                              int threads,
                                              const DeviceQueue& queue) {
  Problems problems = ProblemsOf(spec);
  problems.Range("threads", threads, 1, kMaxThreads);
  GOSSAMER_RETURN_IF_ERROR(problems.ToStatus());
  GOSSAMER_ASSIGN_OR_RETURN(const Loss loss, ParseLoss(spec.loss));
  GOSSAMER_ASSIGN_OR_RETURN(const Precision precision,
                            ParsePrecision(spec.precision));
  GOSSAMER_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> data,
                            Dataset::Open(spec.data, rank, peers, seed));
  const auto classes = static_cast<int>(data->class_names().size());
  if (IsConditional(spec.model) && ClassCount(spec.data) > 0 &&
      classes != ClassCount(spec.data)) {
    return absl::InvalidArgumentError(
        absl::StrCat("game.gan.data.classes has ", ClassCount(spec.data),
                     " entries for ", classes, " classes: name each once"));
  }
  const NetworkSpec network = {
      .model = spec.model,
      .width = spec.width,
      .latent = spec.latent,
      .resolution = spec.resolution,
      .classes = classes,
      // BatchNorm ties the examples of a batch together, and the penalty is
      // about each example by itself (Gulrajani et al., NeurIPS 2017, section
      // 4).
      .discriminator_batch_norm = loss != Loss::kWassersteinGp};
  GOSSAMER_ASSIGN_OR_RETURN(auto generator,
                            Network::Create(Player::kGenerator, network));
  GOSSAMER_ASSIGN_OR_RETURN(auto discriminator,
                            Network::Create(Player::kDiscriminator, network));
  GOSSAMER_ASSIGN_OR_RETURN(
      auto evaluator,
      GanEvaluator::Create(network, data, spec.evaluation_samples, threads));
  GOSSAMER_ASSIGN_OR_RETURN(const TorchQueue torch, TorchQueue::Open(queue));
  return GuardTorch([&]() -> absl::StatusOr<std::unique_ptr<Game>> {
    auto game = std::make_unique<GanGame>(
        std::move(generator), std::move(discriminator), std::move(data),
        GanGame::Options{.step = {.loss = loss,
                                  .gradient_penalty = spec.gradient_penalty,
                                  .batch = spec.batch,
                                  .one_backward = spec.one_backward,
                                  .precision = precision},
                         .threads = threads,
                         .graphs = {.on_failure = SayThatStepsAreEager}},
        spec.latent, seed, std::move(evaluator), torch);
    // Memory that the device lacks is missing here.
    GOSSAMER_RETURN_IF_ERROR(queue.status());
    return game;
  });
}

}  // namespace gossamer
