// What compressed gradients cost in quality and in bytes, without a network:
// ranks in one process, the real methods and all-reduces, OAdam at all.
//
//   gradient_quality_benchmark --method dense-f32 --method scalecom:rate=100
//       [--game gaussian] [--seeds 1,2,3] [--peers 4] [--batch 64]
//       [--rounds 2000] [--rate 1e-3]
//
// Of each method: the score at the end (energy distance of the Gaussian
// mixture, distance to the solution of the quadratic game, proxy-fid of
// pictures; smaller is better), its mean and standard deviation over the seeds,
// and the bytes that a rank sends a round of the later half, alone and of the
// whole gradient's;
// and the processor time of the method and its sums, of that of the gradients.

#include <time.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/optim/local_step.h"
#include "gan_models/learned_coder.h"
#include "gan_models/make_game.h"
#include "runtime/base/command_line.h"
#include "runtime/base/status_macros.h"
#include "tests/algorithms/gradient_fleet.h"

namespace gossamer {
namespace {

struct Settings {
  std::vector<std::string> methods;
  std::vector<uint64_t> seeds = {1, 2, 3};
  std::string game = "gaussian";
  std::string data = "data/emoji-32";
  std::string optimizer = "oadam";
  int peers = 4, rounds = 2000, dimension = 4096;
  int batch = 64, width = 64;
  double rate = 1e-3, noise = 1, heterogeneity = 1, ema = 0.99;
};

absl::StatusOr<std::unique_ptr<Game>> MakeGame(const Settings& s, int rank,
                                               uint64_t seed) {
  if (s.game == "quadratic") {
    GOSSAMER_ASSIGN_OR_RETURN(
        std::unique_ptr<Game> game,
        QuadraticGame::Create({.dimension = s.dimension,
                               .noise = s.noise / std::sqrt(s.batch),
                               .heterogeneity = s.heterogeneity},
                              rank, s.peers, seed));
    return game;
  }
  GanSpec gan;
  gan.width = s.width;
  gan.batch = s.batch;
  if (s.game == "gaussian") {
    gan.model = "mlp";
    gan.latent = 16;
    gan.gradient_penalty = 1;
    gan.data.name = "gaussian-mixture";
  } else {
    gan.data = {.path = s.data, .classes = {"face"}, .flip = true};
  }
  return MakeGan(gan, rank, s.peers, seed, /*threads=*/1);
}

struct Result {
  double score = 0;
  double bytes = 0;  // of a rank and round
  double share = 0;  // of the gradient's floats
  double work = 0;   // of the gradients' processor time
};

// Of this thread, which computes all there is.
double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

absl::StatusOr<Result> Train(const Settings& s, const std::string& method,
                             uint64_t seed) {
  std::vector<std::unique_ptr<Game>> games;
  std::vector<std::unique_ptr<LocalStep>> steps;
  LocalStepSpec spec;
  spec.generator = {.name = s.optimizer, .learning_rate = s.rate};
  spec.discriminator = spec.generator;
  spec.decay_from_round = static_cast<uint64_t>(s.rounds) / 2;
  spec.last_round = static_cast<uint64_t>(s.rounds);
  for (int r = 0; r < s.peers; ++r) {
    GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<Game> game, MakeGame(s, r, seed));
    games.push_back(std::move(game));
    GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<LocalStep> step,
                              LocalStep::Create(spec, games.back().get()));
    steps.push_back(std::move(step));
  }
  const ParameterLayout& layout = games[0]->layout();
  GOSSAMER_RETURN_IF_ERROR(GradientCompressor::Create(
                               method, layout, HostKernels(), MakeLearnedCoder)
                               .status());
  GradientFleet fleet(method, layout, s.peers, "", MakeLearnedCoder);
  const auto generator =
      games[0]->parameters().first(layout.extent(Player::kGenerator).size);
  std::vector<float> average(generator.begin(), generator.end());
  double computing = 0, averaging = 0;
  const auto sent = [&] {
    double bytes = 0;
    for (int r = 0; r < s.peers; ++r) {
      bytes += static_cast<double>(fleet.bytes_sent(r)) / s.peers;
    }
    return bytes;
  };
  double sent_before = 0;
  const int later = s.rounds / 2;
  for (int round = 0; round < s.rounds; ++round) {
    if (round == later) sent_before = sent();
    const double start = CpuSeconds();
    const auto step = static_cast<uint64_t>(round);
    GradientFleet::Vectors gradients;
    for (int r = 0; r < s.peers; ++r) {
      GOSSAMER_RETURN_IF_ERROR(
          steps[r]->Gradient(step, RngKey(seed).Fold(r).Fold(step)).status());
      const auto g = games[r]->gradients();
      gradients.emplace_back(g.begin(), g.end());
    }
    const double computed = CpuSeconds();
    const std::vector<float> mean = fleet.Step(gradients);
    computing += computed - start;
    averaging += CpuSeconds() - computed;
    for (auto& local : steps) local->Apply(step, step + 1, mean);
    HostKernels().ema(static_cast<float>(1 - s.ema), generator, average);
  }
  Result result;
  // A moving average would hide where a closed-form game's last point is.
  const bool closed = s.game == "quadratic";
  GOSSAMER_ASSIGN_OR_RETURN(
      result.score,
      games[0]->evaluator()->Score(closed ? generator : average, RngKey(7)));
  result.bytes = (sent() - sent_before) / (s.rounds - later);
  result.work = averaging / computing;
  result.share = result.bytes / (4.0 * static_cast<double>(layout.size()));
  return result;
}

int Main(const Settings& s) {
  std::printf(
      "| method | score | bytes | of 4n | time |\n"
      "| --- | --- | --- | --- | --- |\n");
  for (const std::string& method : s.methods) {
    double sum = 0, squares = 0;
    Result last;
    std::vector<std::string> all;
    for (const uint64_t seed : s.seeds) {
      const auto result = Train(s, method, seed);
      if (!result.ok()) {
        std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
        return 1;
      }
      last = *result;
      sum += last.score;
      squares += last.score * last.score;
      all.push_back(absl::StrCat(last.score));
    }
    const auto n = static_cast<double>(s.seeds.size());
    const double deviation = std::sqrt(std::max(0.0, squares - sum * sum / n) /
                                       std::max(1.0, n - 1));
    std::printf("| `%s` | %.4g ± %.2g (%s) | %.0f | %.4g | %.3g |\n",
                method.c_str(), sum / n, deviation,
                absl::StrJoin(all, ", ").c_str(), last.bytes, last.share,
                last.work);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::Settings s;
  gossamer::Command program(
      {.name = "gradient_quality_benchmark",
       .about = "Trains on compressed gradients in one process.",
       .run = [&] { return gossamer::Main(s); }});
  const auto add = [&program](const std::string& name,
                              gossamer::OptionTarget target) {
    program.AddOption(name, target, "", {.show_default = true});
  };
  program.AddOption("--method", &s.methods, "a mixing.gradient_codec",
                    {.required = true, .one_at_a_time = true});
  program.AddOption("--seeds", &s.seeds, "", {.delimiter = ','});
  program.AddOption(
      "--game", &s.game, "",
      {.show_default = true, .choices = {"gaussian", "quadratic", "emoji"}});
  add("--data", &s.data);
  add("--optimizer", &s.optimizer);
  add("--peers", &s.peers);
  add("--rounds", &s.rounds);
  add("--dimension", &s.dimension);
  add("--batch", &s.batch);
  add("--width", &s.width);
  add("--rate", &s.rate);
  add("--noise", &s.noise);
  add("--heterogeneity", &s.heterogeneity);
  add("--ema", &s.ema);
  return program.Run(argc, argv);
}
