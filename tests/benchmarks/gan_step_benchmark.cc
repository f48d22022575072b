// What serving both players with one backward pass saves: the time of a
// WGAN-GP step in the one-backward form over that in the two-pass form, taken
// in turns within one run on one thread.
//
//   gan_step_benchmark DATA_FOLDER [steps]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "gan_models/make_game.h"
#include "runtime/base/rng.h"

namespace gossamer {
namespace {

double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double Median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

struct Case {
  const char* model;
  int width, latent, batch;
};

int Compare(const Case& c, const std::string& folder, int steps) {
  std::unique_ptr<Game> games[2];
  for (int form = 0; form < 2; ++form) {
    GanSpec spec;
    spec.model = c.model;
    spec.width = c.width;
    spec.latent = c.latent;
    spec.batch = c.batch;
    spec.one_backward = form == 0;
    spec.data.path = folder;
    spec.data.classes = {"face"};
    auto game = MakeGan(spec, 0, 1, /*seed=*/1, /*threads=*/1);
    if (!game.ok()) {
      std::fprintf(stderr, "%s\n", game.status().ToString().c_str());
      return 1;
    }
    games[form] = std::move(*game);
  }
  std::vector<double> seconds[2], ratios;
  constexpr int kWarmUp = 3;
  for (int step = -kWarmUp; step < steps; ++step) {
    double now[2];
    for (int form = 0; form < 2; ++form) {
      const double begin = CpuSeconds();
      if (!games[form]->Gradient(Players::kBoth, RngKey(step)).ok()) return 1;
      now[form] = CpuSeconds() - begin;
    }
    if (step < 0) continue;
    for (int form = 0; form < 2; ++form) seconds[form].push_back(now[form]);
    ratios.push_back(now[0] / now[1]);
  }
  std::printf(
      "%-15s width %3d batch %2d  one backward %8.2f ms  two passes "
      "%8.2f ms  ratio %.3f\n",
      c.model, c.width, c.batch, 1e3 * Median(seconds[0]),
      1e3 * Median(seconds[1]), Median(ratios));
  return 0;
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
  for (const gossamer::Case& c : cases) {
    if (gossamer::Compare(c, argv[1], std::max(1, steps)) != 0) return 1;
  }
  return 0;
}
