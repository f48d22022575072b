// gpu_step: how long the steps of a GAN take on a device, and whether they are
// the steps of the CPU.
//
//   gpu_step --model NAME [--width N] [--resolution N] [--latent N]
//            [--classes N] [--loss NAME] [--batch N] [--precision NAME]
//            [--device cpu|cuda|cuda:N] [--graphs on|off] [--steps N]
//            [--compare] [--json FILE]
//
// Examples are noise, so that it needs no data.  --compare takes fourteen steps
// on the CPU as well and gives the distance of both players' gradients; the
// distance that the last bit of every parameter makes on the CPU alone, below
// which none means anything; and a checksum of the last gradients.  Exit code
// 0: done; 1: a step failed; 2: the arguments are wrong; 3: there is no such
// device.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/game/game.h"
#include "algorithms/optim/local_step.h"
#include "gan_models/gan_game.h"
#include "gan_models/losses.h"
#include "runtime/device/cuda_library.h"
#include "runtime/device/device_request.h"

namespace gossamer {
namespace {

constexpr int kFailed = 1, kUsage = 2, kNoDevice = 3;

class Noise : public Dataset {
 public:
  Noise(std::vector<int64_t> shape, int classes) : shape_(std::move(shape)) {
    for (int i = 0; i < classes; ++i) names_.push_back(absl::StrCat(i));
  }
  std::span<const int64_t> example_shape() const override { return shape_; }
  std::span<const std::string> class_names() const override { return names_; }
  void FillBatch(RngKey key, std::span<float> out,
                 std::span<int64_t> labels) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(2 * key.Uniform(i) - 1);
    }
    for (size_t i = 0; i < labels.size(); ++i) {
      labels[i] =
          static_cast<int64_t>(key.Fold("labels").Below(names_.size(), i));
    }
  }
  void FillHeldOut(int64_t, std::span<float>) const override {}
  int64_t held_out_size() const override { return 0; }
  int64_t held_out_label(int64_t) const override { return 0; }

 private:
  const std::vector<int64_t> shape_;
  std::vector<std::string> names_;
};

struct Arguments {
  std::map<std::string, std::string> text = {{"model", "wgan-gp-resnet"},
                                             {"width", "128"},
                                             {"resolution", "32"},
                                             {"latent", "128"},
                                             {"classes", "10"},
                                             {"loss", "wgan-gp"},
                                             {"batch", "64"},
                                             {"precision", "float32"},
                                             {"device", "cuda"},
                                             {"graphs", "on"},
                                             {"steps", "30"},
                                             {"json", ""}};
  bool compare = false;

  const std::string& operator[](const std::string& key) const {
    return text.at(key);
  }
  int Number(const std::string& key) const {
    int value = 0;
    if (!absl::SimpleAtoi(text.at(key), &value) || value < 1) {
      std::fprintf(stderr, "gpu_step: --%s %s is no number above 0\n",
                   key.c_str(), text.at(key).c_str());
      std::exit(kUsage);
    }
    return value;
  }
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    name = name.starts_with("--") ? name.substr(2) : "";
    if (name == "compare") {
      arguments.compare = true;
    } else if (arguments.text.contains(name) && i + 1 < argc) {
      arguments.text[name] = argv[++i];
    } else {
      std::fprintf(stderr, "gpu_step: unknown argument %s\n", argv[i]);
      std::exit(kUsage);
    }
  }
  return arguments;
}

template <typename T>
T OrExit(absl::StatusOr<T> value, int code) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "gpu_step: %s\n",
               std::string(value.status().message()).c_str());
  std::exit(code);
}

DeviceQueue QueueOf(const std::string& device) {
  const DeviceRequest request = OrExit(ParseDeviceRequest(device), kUsage);
  if (request.kind == DeviceRequest::kCpu) return DeviceQueue::Host();
  // Before torch is first asked whether there is CUDA.
  if (const absl::Status opened = OpenTorchCuda(); !opened.ok()) {
    OrExit<int>(opened, kNoDevice);
  }
  const ChosenDevice chosen =
      OrExit(ChooseDevice(request, /*ordinal=*/0, OpenCudaLibrary), kNoDevice);
  return OrExit(DeviceQueue::Open(*chosen.library->kernels,
                                  *chosen.library->calls, chosen.device),
                kNoDevice);
}

std::unique_ptr<GanGame> Make(const Arguments& a, const DeviceQueue& queue) {
  const Loss loss = OrExit(ParseLoss(a["loss"]), kUsage);
  const NetworkSpec network = {
      .model = a["model"],
      .width = a.Number("width"),
      .latent = a.Number("latent"),
      .resolution = a.Number("resolution"),
      .classes = a.Number("classes"),
      .discriminator_batch_norm = loss != Loss::kWassersteinGp};
  auto generator = OrExit(Network::Create(Player::kGenerator, network), kUsage);
  auto discriminator =
      OrExit(Network::Create(Player::kDiscriminator, network), kUsage);
  const GanGame::Options options = {
      .step = {.loss = loss,
               .batch = a.Number("batch"),
               .precision = OrExit(ParsePrecision(a["precision"]), kUsage)},
      .graphs = {.graphs = a["graphs"] == "on",
                 // Eager steps must not pass for those of a graph.
                 .on_failure = [](const std::string& why) {
                   std::fprintf(stderr, "gpu_step: no graph: %s\n",
                                why.c_str());
                   std::exit(kFailed);
                 }}};
  return std::make_unique<GanGame>(
      std::move(generator), std::move(discriminator),
      std::make_shared<Noise>(ExampleShape(network), network.classes), options,
      network.latent, /*seed=*/1, /*evaluator=*/nullptr,
      OrExit(TorchQueue::Open(queue), kNoDevice));
}

// Seconds of each of some steps, the first ones left out: they warm up and are
// captured.
template <typename Step>
std::vector<double> Times(int steps, Step step) {
  constexpr int kWarmUp = 6;
  std::vector<double> seconds;
  for (int i = 0; i < steps + kWarmUp; ++i) {
    const auto began = std::chrono::steady_clock::now();
    step(i);
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - began;
    if (i >= kWarmUp) seconds.push_back(took.count());
  }
  std::ranges::sort(seconds);
  return seconds;
}

// Of b, or without a unit if b is zero.
double Distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(norm == 0 ? difference : difference / norm);
}

// A small step from the first values, at which neighbouring pixels are equal
// and activations lie at their kinks.
void MoveAway(GanGame& game) {
  constexpr double kAway = 0.1;
  const DeviceQueue& queue = game.queue();
  std::vector<float> x = queue.ToHost(game.device_parameters());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] += static_cast<float>(kAway * RngKey(7).Fold("away").Gaussian(i));
  }
  queue.Upload(x, game.device_parameters());
}

// Every value to one of its two neighbours.
void Nudge(std::span<float> x) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < x.size(); ++i) {
    const bool up = RngKey(7).Fold("nudge").Uniform(i) < 0.5;
    x[i] = std::nextafter(x[i], up ? infinity : -infinity);
  }
}

int Main(int argc, char** argv) {
  const Arguments a = Parse(argc, argv);
  const int steps = a.Number("steps");
  const DeviceQueue queue = QueueOf(a["device"]);
  const auto game = Make(a, queue);
  const ParameterLayout& layout = game->layout();
  const RngKey key(7);
  std::string json = absl::StrCat(
      "{\"model\": \"", a["model"], "\", \"precision\": \"", a["precision"],
      "\", \"graphs\": ", a["graphs"] == "on" ? "true" : "false",
      ", \"batch\": ", a.Number("batch"), ", \"parameters\": [",
      layout.extent(Player::kGenerator).size, ", ",
      layout.extent(Player::kDiscriminator).size, "]");
  const auto gradient = [&](Game& of, int step,
                            Players players = Players::kBoth) {
    of.PrefetchBatch(key.Fold(step + 1));
    return OrExit(of.Gradient(players, key.Fold(step)), kFailed);
  };
  if (a.compare) {
    const auto host = Make(a, DeviceQueue::Host());
    const auto nudged = Make(a, DeviceQueue::Host());
    for (GanGame* of : {game.get(), host.get(), nudged.get()}) MoveAway(*of);
    Nudge(nudged->parameters());
    // Steps of both kinds, the last ones of graphs.  An activation at its kink
    // that rounds to the other side moves the gradient of one step, so the
    // distances are medians.
    std::vector<float> there;
    std::map<Player, std::vector<double>> to_cpu, of_rounding;
    for (int i = 0; i < 14; ++i) {
      const Players players =
          i % 2 == 1 ? Players::kDiscriminator : Players::kBoth;
      for (GanGame* of : {game.get(), host.get(), nudged.get()}) {
        gradient(*of, i, players);
      }
      if (players != Players::kBoth) continue;
      there = queue.ToHost(game->device_gradients());
      for (const Player p : {Player::kGenerator, Player::kDiscriminator}) {
        const auto [offset, size] = layout.extent(p);
        const auto here = host->gradients().subspan(offset, size);
        to_cpu[p].push_back(
            Distance(std::span(there).subspan(offset, size), here));
        of_rounding[p].push_back(
            Distance(nudged->gradients().subspan(offset, size), here));
      }
    }
    const auto medians = [](std::map<Player, std::vector<double>>& of) {
      const auto median = [&](Player p) {
        std::ranges::sort(of[p]);
        return of[p][of[p].size() / 2];
      };
      return absl::StrCat("[", median(Player::kGenerator), ", ",
                          median(Player::kDiscriminator), "]");
    };
    absl::StrAppend(&json, ", \"distance_to_cpu\": ", medians(to_cpu),
                    ", \"distance_of_rounding\": ", medians(of_rounding));
    const auto* const bytes = reinterpret_cast<const std::byte*>(there.data());
    absl::StrAppend(&json, ", \"gradient_bits\": ",
                    Crc32c({bytes, sizeof(float) * there.size()}));
  }
  const std::vector<double> seconds =
      Times(steps, [&](int i) { gradient(*game, i); });
  // With the optimizer, which is what a peer does besides its exchanges.
  LocalStepSpec spec;
  spec.generator = {.name = "oadam", .learning_rate = 1e-5};
  spec.discriminator = spec.generator;
  const auto local = OrExit(LocalStep::Create(spec, game.get()), kFailed);
  const std::vector<double> updated = Times(steps, [&](int i) {
    local->PrefetchBatch(key.Fold(i + 1));
    OrExit(local->Run(i, 1, key.Fold(i)), kFailed);
    // The optimizer's work is part of the step, and only enqueued so far.
    if (const absl::Status waited = queue.Wait(); !waited.ok()) {
      OrExit<int>(waited, kFailed);
    }
  });
  const auto n = seconds.size();
  absl::StrAppend(&json, ", \"milliseconds\": ", 1e3 * seconds[n / 2],
                  ", \"fastest\": ", 1e3 * seconds[0],
                  ", \"with_optimizer\": ", 1e3 * updated[n / 2],
                  ", \"drawn_ahead\": ", game->prefetched(), "}\n");
  std::printf("%s", json.c_str());
  if (a["json"].empty()) return 0;
  std::FILE* const file = std::fopen(a["json"].c_str(), "w");
  if (file == nullptr || std::fputs(json.c_str(), file) < 0 ||
      std::fclose(file) != 0) {
    std::fprintf(stderr, "gpu_step: cannot write %s\n", a["json"].c_str());
    return kFailed;
  }
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) { return gossamer::Main(argc, argv); }
