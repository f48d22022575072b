// The time that one backward pass for both players saves: the time of a WGAN-GP
// step in that form over three others, taken in turns within one run on one
// thread.
//
// The form "usual" is that of the code published with WGAN-GP (Gulrajani et
// al., 2017): each player's loss and backward pass generate fake examples of
// their own. "shared" is that of the usual DCGAN scripts: both players take the
// same fake examples, and the generator's pass goes through both networks.
// "frozen" is this project's own form in two passes, for losses that need it:
// the shared one, without the discriminator's gradients in the generator's
// pass.
//
// All forms give the same gradients up to rounding, which the program checks.
//
//   gan_step_benchmark DATA_FOLDER [steps]

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "gan_models/data/dataset.h"
#include "gan_models/losses.h"
#include "gan_models/make_game.h"
#include "gan_models/networks/network.h"
#include "tests/benchmarks/timing.h"

namespace gossamer {
namespace {

constexpr double kMomentum = 0.1;

double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

struct Case {
  const char* model;
  int width, latent, batch;
};

GanSpec SpecOf(const Case& c, const std::string& folder, bool one_backward) {
  GanSpec spec;
  spec.model = c.model;
  spec.width = c.width;
  spec.latent = c.latent;
  spec.batch = c.batch;
  spec.one_backward = one_backward;
  spec.data.path = folder;
  spec.data.classes = {"face"};
  return spec;
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

size_t ExampleSize(const Dataset& data) {
  size_t size = 1;
  for (int64_t d : data.example_shape()) size *= static_cast<size_t>(d);
  return size;
}

// Both usual forms, with the networks, losses and draws of GanGame.
class UsualStep {
 public:
  UsualStep(const GanSpec& spec, std::span<const float> parameters)
      : spec_(spec),
        data_(OrDie(Dataset::Open(spec.data, 0, 1, /*seed=*/1))),
        parameters_(parameters.begin(), parameters.end()),
        gradients_(parameters_.size()) {
    const NetworkSpec network = {.model = spec.model,
                                 .width = spec.width,
                                 .latent = spec.latent,
                                 .discriminator_batch_norm = false};
    generator_ = OrDie(Network::Create(Player::kGenerator, network));
    discriminator_ = OrDie(Network::Create(Player::kDiscriminator, network));
    const size_t n = generator_->tensors().parameter_count();
    statistics_.resize(generator_->tensors().statistic_count());
    const std::span<float> x(parameters_), g(gradients_);
    generator_->tensors().Bind(x.first(n), g.first(n), statistics_);
    discriminator_->tensors().Bind(x.subspan(n), g.subspan(n), {});
  }

  std::span<const float> gradients() const { return gradients_; }

  void Run(RngKey key, bool shared) {
    const auto score = [this](const at::Tensor& x) {
      return discriminator_->Forward(x, {}, Normalization{});
    };
    std::vector<float> images(spec_.batch * ExampleSize(*data_));
    std::vector<float> latents(spec_.batch * spec_.latent), alpha(spec_.batch);
    data_->FillBatch(key.Fold("data"), images, {});
    key.Fold("latent").FillGaussian(latents);
    for (size_t i = 0; i < alpha.size(); ++i) {
      alpha[i] = static_cast<float>(key.Fold("penalty").Uniform(i));
    }
    std::vector<int64_t> shape = {spec_.batch};
    for (int64_t d : data_->example_shape()) shape.push_back(d);
    const at::Tensor real = at::from_blob(images.data(), shape)
                                .contiguous(at::MemoryFormat::ChannelsLast);
    const auto generate = [&](double momentum) {
      return generator_->Forward(
          at::from_blob(latents.data(), {spec_.batch, spec_.latent}), {},
          {.momentum = momentum});
    };
    at::Tensor fake, constant;
    if (shared) {
      fake = generate(kMomentum);
      constant = fake.detach();
    } else {
      const c10::AutoGradMode record(false);
      constant = generate(0);
    }
    std::ranges::fill(gradients_, 0.0f);
    const at::Tensor loss =
        DiscriminatorLoss(Loss::kWassersteinGp, score(real), score(constant)) +
        spec_.gradient_penalty *
            GradientPenalty(score, real, constant,
                            at::from_blob(alpha.data(), {spec_.batch}));
    loss.backward();
    const size_t n = generator_->tensors().parameter_count();
    const std::vector<float> of_discriminator(gradients_.begin() + n,
                                              gradients_.end());
    if (!shared) fake = generate(kMomentum);
    GeneratorLoss(Loss::kWassersteinGp, score(fake)).backward();
    // The second pass has added its own gradients, which such scripts set to
    // zero before use.
    std::ranges::copy(of_discriminator, gradients_.begin() + n);
  }

 private:
  const GanSpec spec_;
  const std::shared_ptr<const Dataset> data_;
  std::unique_ptr<Network> generator_, discriminator_;
  std::vector<float> parameters_, gradients_, statistics_;
};

double RelativeDifference(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

template <typename Run>
double Time(Run run) {
  const double begin = CpuSeconds();
  run();
  return CpuSeconds() - begin;
}

void Compare(const Case& c, const std::string& folder, int steps) {
  const GanSpec spec = SpecOf(c, folder, true);
  const auto one = OrDie(MakeGan(spec, 0, 1, /*seed=*/1, /*threads=*/1));
  const auto frozen =
      OrDie(MakeGan(SpecOf(c, folder, false), 0, 1, /*seed=*/1, /*threads=*/1));
  UsualStep usual(spec, one->parameters());
  const auto gradient = [](Game& game, RngKey key) {
    if (!game.Gradient(Players::kBoth, key).ok()) std::exit(1);
  };
  std::vector<double> seconds[4], ratios[4];
  double difference = 0;
  constexpr int kWarmUp = 3;
  for (int step = -kWarmUp; step < steps; ++step) {
    const RngKey key(static_cast<uint64_t>(step + kWarmUp));
    const double now[] = {Time([&] { gradient(*one, key); }),
                          Time([&] { usual.Run(key, false); }),
                          Time([&] { usual.Run(key, true); }),
                          Time([&] { gradient(*frozen, key); })};
    difference = std::max(
        {difference, RelativeDifference(one->gradients(), usual.gradients()),
         RelativeDifference(frozen->gradients(), usual.gradients())});
    if (step < 0) continue;
    for (int form = 0; form < 4; ++form) {
      seconds[form].push_back(now[form]);
      ratios[form].push_back(now[0] / now[form]);
    }
  }
  if (!(difference < 1e-3)) {
    std::fprintf(stderr, "the gradients differ by %.2g\n", difference);
    std::exit(1);
  }
  std::printf("%-16s %4d %5d", c.model, c.width, c.batch);
  for (const auto& form : seconds) std::printf(" %8.2f", 1e3 * Median(form));
  for (int form = 1; form < 4; ++form)
    std::printf(" %8.3f", Median(ratios[form]));
  std::printf("\n");
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s EMOJI_FOLDER [steps]\n", argv[0]);
    return 2;
  }
  const int steps = argc > 2 ? std::atoi(argv[2]) : 30;
  const gossamer::Case cases[] = {{"up", 16, 64, 16},
                                  {"dcgan", 64, 128, 32},
                                  {"wgan-gp-resnet", 32, 128, 16}};
  std::printf("%-16s %4s %5s %8s %8s %8s %8s %8s %8s %8s\n", "CPU ms of a step",
              "width", "batch", "one", "usual", "shared", "frozen", "/usual",
              "/shared", "/frozen");
  for (const gossamer::Case& c : cases) {
    gossamer::Compare(c, argv[1], std::max(1, steps));
  }
  return 0;
}
