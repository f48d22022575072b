// The scores that the settings of a configuration lead to, without a network: a
// ring of peers in one process that mix exactly, OAdam, and a moving average of
// the generator.  Prints the score and leaves sample grids; used to choose the
// quickstart's settings.
//
//   gan_quality_benchmark --data data/emoji-32 --classes face --out /tmp/grids

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/optim/optimizer.h"
#include "gan_models/make_game.h"
#include "runtime/base/command_line.h"

namespace gossamer {
namespace {

struct Settings {
  GanSpec gan;
  int peers = 4;
  int rounds = 1200;
  int every = 100;
  int decay_from = 0;
  double generator_rate = 2.5e-4, discriminator_rate = 1e-3, ema = 0.995;
  uint64_t seed = 1;
  std::string out;
};

struct Peer {
  std::unique_ptr<Game> game;
  std::unique_ptr<Optimizer> generator, discriminator;
};

// Mixes x_i <- (x_{i-1} + x_i + x_{i+1}) / 3.
void MixOnRing(std::vector<Peer>& peers) {
  const size_t n = peers.size();
  if (n == 1) return;
  std::vector<std::vector<float>> before;
  for (Peer& p : peers) {
    const auto x = p.game->parameters();
    before.emplace_back(x.begin(), x.end());
  }
  for (size_t i = 0; i < n; ++i) {
    const auto& left = before[(i + n - 1) % n];
    const auto& right = before[(i + 1) % n];
    const auto x = peers[i].game->parameters();
    for (size_t j = 0; j < x.size(); ++j) {
      x[j] = n == 2 ? (before[0][j] + before[1][j]) / 2
                    : (left[j] + before[i][j] + right[j]) / 3;
    }
  }
}

double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

int Play(const Settings& s) {
  std::vector<Peer> peers;
  for (int i = 0; i < s.peers; ++i) {
    auto game = MakeGan(s.gan, i, s.peers, s.seed, /*threads=*/1);
    if (!game.ok()) {
      std::fprintf(stderr, "%s\n", game.status().ToString().c_str());
      return 1;
    }
    const ParameterLayout& layout = (*game)->layout();
    auto generator = Optimizer::Create({.learning_rate = s.generator_rate},
                                       layout.extent(Player::kGenerator).size);
    auto discriminator =
        Optimizer::Create({.learning_rate = s.discriminator_rate},
                          layout.extent(Player::kDiscriminator).size);
    if (!generator.ok() || !discriminator.ok()) return 1;
    peers.push_back(
        {std::move(*game), std::move(*generator), std::move(*discriminator)});
  }
  const ParameterLayout& layout = peers[0].game->layout();
  const size_t split = layout.extent(Player::kGenerator).size;
  const auto first = peers[0].game->parameters().first(split);
  std::vector<float> average(first.begin(), first.end());
  double training = 0;
  for (int round = 1; round <= s.rounds; ++round) {
    const double begin = CpuSeconds();
    const double scale =
        s.decay_from == 0 || round < s.decay_from
            ? 1
            : double(s.rounds - round + 1) / (s.rounds - s.decay_from + 1);
    MixOnRing(peers);
    Losses losses;
    for (size_t i = 0; i < peers.size(); ++i) {
      const auto step = peers[i].game->Gradient(
          Players::kBoth, RngKey(s.seed).Fold(i).Fold(round));
      if (!step.ok()) {
        std::fprintf(stderr, "%s\n", step.status().ToString().c_str());
        return 1;
      }
      losses = *step;
      const auto x = peers[i].game->parameters();
      const auto g = peers[i].game->gradients();
      peers[i].generator->Step(x.first(split), g.first(split), scale);
      peers[i].discriminator->Step(x.subspan(split), g.subspan(split), scale);
    }
    const double keep = std::min(s.ema, double(round) / (round + 10));
    for (size_t j = 0; j < split; ++j) {
      average[j] = static_cast<float>(
          keep * average[j] + (1 - keep) * peers[0].game->parameters()[j]);
    }
    training += CpuSeconds() - begin;
    if (round % s.every != 0 && round != s.rounds) continue;
    Evaluator& look = *peers[0].game->evaluator();
    const auto score = look.Score(average, RngKey(7));
    std::printf(
        "round %d  %s %.5f  raw %.5f  (%s)  losses %.3f %.3f  %.1f CPU s\n",
        round, std::string(look.score_name()).c_str(), score.value_or(-1),
        look.Score(peers[0].game->parameters().first(split), RngKey(7))
            .value_or(-1),
        look.score_basis().c_str(), losses[0], losses[1],
        training);
    std::fflush(stdout);
    if (!s.out.empty()) {
      const absl::Status written =
          look.WriteSamples(average, RngKey(8),
                            s.out + "/round-" + std::to_string(round) + ".png");
      if (!written.ok()) std::printf("%s\n", written.ToString().c_str());
    }
  }
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::Settings s;
  gossamer::Command program({.name = "gan_quality_benchmark",
                             .about = "Trains a ring of peers in one process.",
                             .run = [&] { return gossamer::Play(s); }});
  const auto add = [&program](const std::string& name,
                              gossamer::OptionTarget target) {
    program.AddOption(name, target, "", {.show_default = true});
  };
  add("--model", &s.gan.model);
  add("--width", &s.gan.width);
  add("--latent", &s.gan.latent);
  add("--loss", &s.gan.loss);
  add("--gradient-penalty", &s.gan.gradient_penalty);
  add("--batch", &s.gan.batch);
  add("--data-name", &s.gan.data.name);
  add("--data", &s.gan.data.path);
  add("--flip", &s.gan.data.flip);
  add("--peers", &s.peers);
  add("--rounds", &s.rounds);
  add("--every", &s.every);
  add("--decay-from", &s.decay_from);
  add("--generator-rate", &s.generator_rate);
  add("--discriminator-rate", &s.discriminator_rate);
  add("--ema", &s.ema);
  add("--seed", &s.seed);
  program.AddOption("--classes", &s.gan.data.classes, "only these classes");
  program.AddOption("--out", &s.out, "folder of the grids");
  return program.Run(argc, argv);
}
