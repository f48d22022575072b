#include "tests/gan_models/gan_gradients.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/compute.h"
#include "gan_models/gan_step.h"
#include "runtime/base/safetensors.h"

namespace gossamer {
namespace {

constexpr char kLatents[] = "latents", kReal[] = "real";
constexpr char kRealLabels[] = "labels.real", kFakeLabels[] = "labels.fake";
constexpr char kMixtures[] = "mixtures";

size_t Count(const std::vector<int64_t>& shape) {
  return std::reduce(shape.begin(), shape.end(), size_t{1},
                     std::multiplies<size_t>());
}

// Both networks with the vectors that they are bound to.
struct BothPlayers {
  std::unique_ptr<Network> network[2];
  std::vector<float> parameters[2], gradients[2], statistics[2];
};

absl::Status MakePlayers(const NetworkSpec& spec, BothPlayers& players) {
  for (int p = 0; p < 2; ++p) {
    GOSSAMER_ASSIGN_OR_RETURN(
        players.network[p],
        Network::Create(p == 0 ? Player::kGenerator : Player::kDiscriminator,
                        spec));
    TensorTable& table = players.network[p]->tensors();
    players.parameters[p].resize(table.parameter_count());
    players.gradients[p].resize(table.parameter_count());
    players.statistics[p].resize(table.statistic_count());
    table.InitializeStatistics(players.statistics[p]);
    table.Bind(players.parameters[p], players.gradients[p],
               players.statistics[p]);
  }
  return absl::OkStatus();
}

void Add(const std::string& prefix, const std::vector<Segment>& segments,
         std::span<const float> vector, SafetensorsView& view) {
  for (const Segment& s : segments) {
    view.floats.push_back({prefix + s.name, s.shape,
                           vector.subspan(s.extent.offset, s.extent.size)});
  }
}

absl::StatusOr<std::vector<float>> Take(const Safetensors& file,
                                        const std::string& name,
                                        const std::vector<int64_t>& shape) {
  const auto found = file.floats.find(name);
  if (found == file.floats.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no tensor ", name));
  }
  if (found->second.shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", name, " has ", found->second.values.size(),
        " values in a shape that is not the network's, of ", Count(shape)));
  }
  return found->second.values;
}

// Copies tensors into their vector; those that may be missing stay.
absl::Status Load(const Safetensors& file, const std::vector<Segment>& segments,
                  bool may_miss, std::span<float> vector) {
  for (const Segment& s : segments) {
    if (!may_miss || file.floats.contains(s.name)) {
      GOSSAMER_ASSIGN_OR_RETURN(const std::vector<float> values,
                                Take(file, s.name, s.shape));
      std::ranges::copy(values, vector.begin() + s.extent.offset);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Number(const Safetensors& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  int value = 0;
  if (found == file.metadata.end() ||
      !absl::SimpleAtoi(found->second, &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the metadata have no number ", key));
  }
  return value;
}

absl::StatusOr<GradientsInput> SpecOf(const Safetensors& file) {
  GradientsInput spec;
  const auto model = file.metadata.find("model");
  const auto loss = file.metadata.find("loss");
  if (model == file.metadata.end() || loss == file.metadata.end()) {
    return absl::InvalidArgumentError("the metadata lack model or loss");
  }
  spec.network.model = model->second;
  spec.loss = loss->second;
  spec.network.discriminator_batch_norm = spec.loss != "wgan-gp";
  GOSSAMER_ASSIGN_OR_RETURN(spec.network.width, Number(file, "width"));
  GOSSAMER_ASSIGN_OR_RETURN(spec.network.latent, Number(file, "latent"));
  GOSSAMER_ASSIGN_OR_RETURN(spec.network.resolution,
                            Number(file, "resolution"));
  GOSSAMER_ASSIGN_OR_RETURN(spec.network.classes, Number(file, "classes"));
  GOSSAMER_ASSIGN_OR_RETURN(spec.batch, Number(file, "batch"));
  return spec;
}

absl::StatusOr<std::vector<int64_t>> TakeLabels(const Safetensors& file,
                                                const std::string& name,
                                                const GradientsInput& spec) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<float> values,
                            Take(file, name, {spec.batch}));
  std::vector<int64_t> labels;
  for (float v : values) {
    if (!(v >= 0 && v < static_cast<float>(spec.network.classes))) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", name, " has a label ", v, " of ",
                       spec.network.classes, " classes"));
    }
    labels.push_back(static_cast<int64_t>(v));
  }
  return labels;
}

std::vector<int64_t> BatchShape(const GradientsInput& spec) {
  std::vector<int64_t> shape = ExampleShape(spec.network);
  shape.insert(shape.begin(), spec.batch);
  return shape;
}

struct Inputs {
  std::vector<float> latents, real, mixtures;
  std::vector<int64_t> real_labels, fake_labels;
};

absl::StatusOr<Inputs> TakeInputs(const Safetensors& file,
                                  const GradientsInput& spec, bool conditional,
                                  bool mixtures) {
  Inputs in;
  GOSSAMER_ASSIGN_OR_RETURN(
      in.latents, Take(file, kLatents, {spec.batch, spec.network.latent}));
  GOSSAMER_ASSIGN_OR_RETURN(in.real, Take(file, kReal, BatchShape(spec)));
  if (conditional) {
    GOSSAMER_ASSIGN_OR_RETURN(in.real_labels,
                              TakeLabels(file, kRealLabels, spec));
    GOSSAMER_ASSIGN_OR_RETURN(in.fake_labels,
                              TakeLabels(file, kFakeLabels, spec));
  }
  if (mixtures) {
    GOSSAMER_ASSIGN_OR_RETURN(in.mixtures, Take(file, kMixtures, {spec.batch}));
  }
  return in;
}

}  // namespace

absl::Status WriteGradientsInput(const GradientsInput& spec,
                                 const std::string& path) {
  const RngKey key(spec.seed);
  BothPlayers players;
  GOSSAMER_RETURN_IF_ERROR(MakePlayers(spec.network, players));
  SafetensorsView view;
  for (int p = 0; p < 2; ++p) {
    std::vector<float>& parameters = players.parameters[p];
    TensorTable& table = players.network[p]->tensors();
    table.Initialize(spec.seed, parameters);
    constexpr double kAway = 0.1;
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i] +=
          static_cast<float>(kAway * key.Fold("away").Fold(p).Gaussian(i));
    }
    Add("", table.parameters(), parameters, view);
    Add("", table.statistics(), players.statistics[p], view);
  }
  const auto batch = static_cast<size_t>(spec.batch);
  std::vector<float> latents(batch * spec.network.latent);
  key.Fold(kLatents).FillGaussian(latents);
  std::vector<float> real(Count(BatchShape(spec)));
  for (size_t i = 0; i < real.size(); ++i) {
    real[i] = static_cast<float>(2 * key.Fold(kReal).Uniform(i) - 1);
  }
  std::vector<float> of_real(batch), of_fake(batch), mixtures(batch);
  const auto classes = static_cast<uint64_t>(spec.network.classes);
  for (size_t i = 0; i < batch; ++i) {
    of_real[i] = static_cast<float>(key.Fold(kRealLabels).Below(classes, i));
    of_fake[i] = static_cast<float>(key.Fold(kFakeLabels).Below(classes, i));
    mixtures[i] = static_cast<float>(key.Fold(kMixtures).Uniform(i));
  }
  const std::vector<int64_t> each = {spec.batch};
  view.floats.push_back({kLatents, {spec.batch, spec.network.latent}, latents});
  view.floats.push_back({kReal, BatchShape(spec), real});
  view.floats.push_back({kRealLabels, each, of_real});
  view.floats.push_back({kFakeLabels, each, of_fake});
  view.floats.push_back({kMixtures, each, mixtures});
  view.metadata = {{"model", spec.network.model},
                   {"loss", spec.loss},
                   {"width", absl::StrCat(spec.network.width)},
                   {"latent", absl::StrCat(spec.network.latent)},
                   {"resolution", absl::StrCat(spec.network.resolution)},
                   {"classes", absl::StrCat(spec.network.classes)},
                   {"batch", absl::StrCat(spec.batch)}};
  return WriteSafetensors(path, view);
}

absl::Status ComputeGradients(const std::string& in, const std::string& out) {
  GOSSAMER_ASSIGN_OR_RETURN(const Safetensors file, ReadSafetensors(in));
  GOSSAMER_ASSIGN_OR_RETURN(const GradientsInput spec, SpecOf(file));
  GOSSAMER_ASSIGN_OR_RETURN(const Loss loss, ParseLoss(spec.loss));
  BothPlayers players;
  GOSSAMER_RETURN_IF_ERROR(MakePlayers(spec.network, players));
  for (int p = 0; p < 2; ++p) {
    const TensorTable& table = players.network[p]->tensors();
    GOSSAMER_RETURN_IF_ERROR(Load(file, table.parameters(), /*may_miss=*/false,
                                  players.parameters[p]));
    GOSSAMER_RETURN_IF_ERROR(Load(file, table.statistics(), /*may_miss=*/true,
                                  players.statistics[p]));
  }
  Network& generator = *players.network[0];
  std::vector<float> losses(2);
  const GanStep step(generator, *players.network[1], ExampleShape(spec.network),
                     spec.network.latent,
                     {.generator_gradients = players.gradients[0],
                      .discriminator_gradients = players.gradients[1],
                      .losses = losses},
                     {.loss = loss, .batch = spec.batch});
  GOSSAMER_ASSIGN_OR_RETURN(
      Inputs inputs,
      TakeInputs(file, spec, generator.conditional(), step.needs_mixtures()));
  std::vector<float> fake;
  UseThreads(1);
  GOSSAMER_RETURN_IF_ERROR(GuardTorch([&]() -> absl::Status {
    {
      // The same as in the step: nothing of this pass is kept.
      const c10::AutoGradMode record(false);
      const at::Tensor images =
          generator
              .Forward(at::from_blob(inputs.latents.data(),
                                     {spec.batch, spec.network.latent}),
                       at::tensor(inputs.fake_labels), Normalization{})
              .contiguous();
      const float* const values = images.const_data_ptr<float>();
      fake.assign(values, values + images.numel());
    }
    step.Run(Players::kBoth, {.real = inputs.real,
                              .latents = inputs.latents,
                              .real_labels = inputs.real_labels,
                              .fake_labels = inputs.fake_labels,
                              .mixtures = inputs.mixtures});
    return absl::OkStatus();
  }));
  SafetensorsView view;
  view.metadata = file.metadata;
  view.floats.push_back({"loss.generator", {}, std::span(losses).first(1)});
  view.floats.push_back({"loss.discriminator", {}, std::span(losses).last(1)});
  view.floats.push_back({"fake", BatchShape(spec), fake});
  for (int p = 0; p < 2; ++p) {
    const TensorTable& table = players.network[p]->tensors();
    Add("gradient.", table.parameters(), players.gradients[p], view);
    Add("statistic.", table.statistics(), players.statistics[p], view);
  }
  return WriteSafetensors(out, view);
}

}  // namespace gossamer
