// gpu_step: how long the steps of a GAN take on a device, and whether they are
// the steps of the CPU.
//
//   gpu_step --model NAME [--width N] [--resolution N] [--latent N]
//            [--classes N] [--loss NAME] [--batch N] [--precision NAME]
//            [--device cpu|cuda|cuda:N] [--graphs on|off]
//            [--deterministic on|off] [--steps N] [--bits] [--compare] [--edge]
//            [--json FILE]
//
// Examples are noise, so that it needs no data.  --deterministic off lets torch
// take kernels whose sums have no order, as a user of PyTorch does.  --bits
// takes fourteen more steps once all are timed and gives a checksum of their
// gradients, which is the same with graphs and without, and in every process.
// --compare takes fourteen steps first, a small step away from the first
// values, with that checksum, and the same ones on the CPU.  It gives the
// distance of both players' gradients, and the distance that the last bit of
// every parameter makes on the CPU alone, below which none means anything.
//
// The JSON has milliseconds: of the gradients of a step, of a step with OAdam,
// and with --edge of what an edge with innov-int4 does in a round, one after
// the other.  edge_emit is the encoding and the copy of the payload into pinned
// memory of the host, edge_complete the checks of a payload that has arrived,
// the copies of both payloads to the device and the correction.  Sending is no
// part of them.
//
// Exit code 0: done; 1: a step failed, or with --compare a player's gradient is
// further from the CPU's than 1e-2; 2: the arguments are wrong; 3: there is no
// such device.

#include <ATen/Context.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/compress/codec.h"
#include "algorithms/edge/edge_codec_state.h"
#include "algorithms/game/game.h"
#include "algorithms/optim/local_step.h"
#include "gan_models/gan_game.h"
#include "gan_models/losses.h"
#include "gan_models/torch_queue.h"
#include "runtime/device/cuda_library.h"
#include "runtime/device/device_request.h"

namespace gossamer {
namespace {

constexpr int kFailed = 1, kUsage = 2, kNoDevice = 3;
// Rounding does not move a gradient as far: beyond it, a gradient is wrong.
constexpr double kWrong = 1e-2;
// That of runtime/config/compose.h, which needs all of a configuration.
constexpr float kLargestParameter = 1e6f;

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
                                             {"deterministic", "on"},
                                             {"steps", "30"},
                                             {"json", ""}};
  bool bits = false, compare = false, edge = false;

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
  bool On(const std::string& key) const {
    const std::string& value = text.at(key);
    if (value != "on" && value != "off") {
      std::fprintf(stderr, "gpu_step: --%s %s is neither on nor off\n",
                   key.c_str(), value.c_str());
      std::exit(kUsage);
    }
    return value == "on";
  }
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    name = name.starts_with("--") ? name.substr(2) : "";
    if (name == "bits") {
      arguments.bits = true;
    } else if (name == "compare") {
      arguments.compare = true;
    } else if (name == "edge") {
      arguments.edge = true;
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
  const ChosenDevice chosen = OrExit(
      ChooseDevice(request.index, /*ordinal=*/0, OpenCudaLibrary), kNoDevice);
  return OrExit(DeviceQueue::Open(*chosen.library->kernels,
                                  *chosen.library->calls, chosen.device),
                kNoDevice);
}

// torch's work on a queue.  Production has deterministic kernels, and knows no
// others.
TorchQueue OpenTorch(const Arguments& a, const DeviceQueue& queue) {
  TorchQueue opened = OrExit(TorchQueue::Open(queue), kNoDevice);
  if (!a.On("deterministic")) {
    at::Context& context = at::globalContext();
    context.setDeterministicCuDNN(false);
    context.setDeterministicAlgorithms(false, /*warn_only=*/true);
  }
  return opened;
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
      .graphs = {.graphs = a.On("graphs"),
                 // Eager steps must not pass for those of a graph.
                 .on_failure = [](const std::string& why) {
                   std::fprintf(stderr, "gpu_step: no graph: %s\n",
                                why.c_str());
                   std::exit(kFailed);
                 }}};
  return std::make_unique<GanGame>(
      std::move(generator), std::move(discriminator),
      std::make_shared<Noise>(ExampleShape(network), network.classes), options,
      network.latent, /*seed=*/1, /*evaluator=*/nullptr, OpenTorch(a, queue));
}

void WaitFor(const DeviceQueue& queue) {
  if (const absl::Status waited = queue.Wait(); !waited.ok()) {
    OrExit<int>(waited, kFailed);
  }
}

// Takes the step of this number; the batch of the next one is drawn meanwhile.
void TakeStep(Game& game, int step, Players players = Players::kBoth) {
  const RngKey key(7);
  game.PrefetchBatch(key.Fold(step + 1));
  OrExit(game.Gradient(players, key.Fold(step)), kFailed);
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

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Of b, or without a unit if b is zero; infinity if any value is no number.
double Distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  const double off = std::sqrt(norm == 0 ? difference : difference / norm);
  return std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
}

// A small step from the first values, at which neighbouring pixels are equal
// and activations lie at their kinks.
void MoveAway(GanGame& game) {
  constexpr double kAway = 0.1;
  const DeviceQueue& queue = game.queue();
  const RngKey key = RngKey(7).Fold("away");
  std::vector<float> x = queue.ToHost(game.device_parameters());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] += static_cast<float>(kAway * key.Gaussian(i));
  }
  queue.Upload(x, game.device_parameters());
}

// Every value to one of its two neighbours.
void Nudge(std::span<float> x) {
  const float infinity = std::numeric_limits<float>::infinity();
  const RngKey key = RngKey(7).Fold("nudge");
  for (size_t i = 0; i < x.size(); ++i) {
    const bool up = key.Uniform(i) < 0.5;
    x[i] = std::nextafter(x[i], up ? infinity : -infinity);
  }
}

struct Gradients {
  uint32_t bits = 0;  // a checksum of all of them
  // Of each step of both players, where the CPU takes it as well.
  std::map<Player, std::vector<double>> to_cpu, of_rounding;
};

// Steps of both kinds, the last ones of graphs.  `host` and `nudged` take them
// on the CPU, or are both null.
Gradients TakeSteps(GanGame& game, GanGame* host, GanGame* nudged) {
  constexpr int kSteps = 14;
  Gradients gradients;
  std::vector<float> there;
  for (int i = 0; i < kSteps; ++i) {
    const Players players =
        i % 2 == 1 ? Players::kDiscriminator : Players::kBoth;
    for (GanGame* of : {&game, host, nudged}) {
      if (of != nullptr) TakeStep(*of, i, players);
    }
    there = game.queue().ToHost(game.device_gradients(), std::move(there));
    gradients.bits =
        ExtendCrc32c(gradients.bits, std::as_bytes(std::span(there)));
    if (host == nullptr || players != Players::kBoth) continue;
    for (const Player p : {Player::kGenerator, Player::kDiscriminator}) {
      const auto [offset, size] = game.layout().extent(p);
      const auto here = host->gradients().subspan(offset, size);
      gradients.to_cpu[p].push_back(
          Distance(std::span(there).subspan(offset, size), here));
      gradients.of_rounding[p].push_back(
          Distance(nudged->gradients().subspan(offset, size), here));
    }
  }
  return gradients;
}

std::string BitsField(const Gradients& gradients) {
  return absl::StrCat(", \"gradient_bits\": ", gradients.bits);
}

struct Comparison {
  std::string json;     // fields that say what the gradients were
  double furthest = 0;  // of both players' distances from the CPU
};

// With a game that has taken no step yet.
Comparison Compare(const Arguments& a, GanGame& game) {
  const auto host = Make(a, DeviceQueue::Host());
  const auto nudged = Make(a, DeviceQueue::Host());
  for (GanGame* of : {&game, host.get(), nudged.get()}) MoveAway(*of);
  Nudge(nudged->parameters());
  const Gradients gradients = TakeSteps(game, host.get(), nudged.get());
  // An activation at its kink that rounds to the other side moves the gradient
  // of one step, so the distances are medians.
  const auto medians = [](const std::map<Player, std::vector<double>>& of) {
    return std::pair(MedianOf(of.at(Player::kGenerator)),
                     MedianOf(of.at(Player::kDiscriminator)));
  };
  const auto [generator, discriminator] = medians(gradients.to_cpu);
  const auto [of_generator, of_discriminator] = medians(gradients.of_rounding);
  return {.json = absl::StrCat(BitsField(gradients), ", \"distance_to_cpu\": [",
                               generator, ", ", discriminator,
                               "], \"distance_of_rounding\": [", of_generator,
                               ", ", of_discriminator, "]"),
          .furthest = std::max(generator, discriminator)};
}

// The fields of the JSON that say what one edge of a round costs.  The other
// end's payload is this end's own, so x stays as it is; it lies in memory that
// is not pinned, as one that has arrived.
std::string EdgeTimes(int steps, GanGame& game) {
  const DeviceQueue& queue = game.queue();
  const std::shared_ptr<const Codec> codec =
      OrExit(Codec::Create("innov-int4", game.layout(), queue), kFailed);
  EdgeCodecState edge(codec, game.device_parameters(),
                      std::make_shared<SnapshotCache>(), /*edge_hash=*/0);
  edge.set_coefficient(codec->gamma() / 3);
  edge.set_limits({.largest = kLargestParameter});
  const auto id_of = [](int i) {
    return MakeExchangeId(static_cast<uint64_t>(i) + 1);
  };
  EdgeMessage message;
  const std::vector<double> emit = Times(steps, [&](int i) {
    message = edge.OnEmit(id_of(i));
    WaitFor(queue);
  });
  const std::span<const std::byte> bytes = message.bytes.bytes();
  const SharedBytes arrived = SharedBytes::FromVector(
      std::vector<std::byte>(bytes.begin(), bytes.end()));
  const std::vector<double> complete = Times(steps, [&](int i) {
    const EdgeMessage theirs = OrExit(
        edge.Receive(id_of(i), message.format, message.c, arrived), kFailed);
    edge.OnComplete(id_of(i), &message, &theirs);
    WaitFor(queue);
  });
  return absl::StrCat(", \"edge_emit\": ", 1e3 * MedianOf(emit),
                      ", \"edge_complete\": ", 1e3 * MedianOf(complete),
                      ", \"payload_bytes\": ", message.bytes.size());
}

int Main(int argc, char** argv) {
  const Arguments a = Parse(argc, argv);
  const int steps = a.Number("steps");
  const DeviceQueue queue = QueueOf(a["device"]);
  const auto game = Make(a, queue);
  const ParameterLayout& layout = game->layout();
  std::string json = absl::StrCat(
      "{\"model\": \"", a["model"], "\", \"precision\": \"", a["precision"],
      "\", \"graphs\": ", a.On("graphs") ? "true" : "false",
      ", \"deterministic\": ", a.On("deterministic") ? "true" : "false",
      ", \"batch\": ", a.Number("batch"), ", \"parameters\": [",
      layout.extent(Player::kGenerator).size, ", ",
      layout.extent(Player::kDiscriminator).size, "]");
  Comparison compared;
  if (a.compare) compared = Compare(a, *game);
  json += compared.json;
  const std::vector<double> seconds =
      Times(steps, [&](int i) { TakeStep(*game, i); });
  // With the optimizer, which is what a peer does besides its exchanges.
  LocalStepSpec spec;
  spec.generator = {.name = "oadam", .learning_rate = 1e-5};
  spec.discriminator = spec.generator;
  const auto local = OrExit(LocalStep::Create(spec, game.get()), kFailed);
  const RngKey key(7);
  const std::vector<double> updated = Times(steps, [&](int i) {
    local->PrefetchBatch(key.Fold(i + 1));
    OrExit(local->Run(i, 1, key.Fold(i)), kFailed);
    // The optimizer's work is part of the step, and only enqueued so far.
    WaitFor(queue);
  });
  absl::StrAppend(&json, ", \"milliseconds\": ", 1e3 * MedianOf(seconds),
                  ", \"fastest\": ", 1e3 * seconds[0],
                  ", \"with_optimizer\": ", 1e3 * MedianOf(updated));
  // After what is timed, so that they do not disturb it.
  if (a.bits && !a.compare) {
    json += BitsField(TakeSteps(*game, /*host=*/nullptr, /*nudged=*/nullptr));
  }
  if (a.edge) json += EdgeTimes(steps, *game);
  absl::StrAppend(&json, ", \"drawn_ahead\": ", game->prefetched(), "}\n");
  std::printf("%s", json.c_str());
  std::fflush(stdout);
  if (!a["json"].empty()) {
    std::FILE* const file = std::fopen(a["json"].c_str(), "w");
    if (file == nullptr || std::fputs(json.c_str(), file) < 0 ||
        std::fclose(file) != 0) {
      std::fprintf(stderr, "gpu_step: cannot write %s\n", a["json"].c_str());
      return kFailed;
    }
  }
  if (compared.furthest > kWrong) {
    std::fprintf(stderr,
                 "gpu_step: a player's gradient is %.1e from the CPU's; beyond "
                 "%.0e it is wrong\n",
                 compared.furthest, kWrong);
    return kFailed;
  }
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) { return gossamer::Main(argc, argv); }
