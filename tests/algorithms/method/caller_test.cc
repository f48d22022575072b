// The method of a program's own steps: mixing is that of any other step, given
// the same increments, and only programs that join may have it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/game/quadratic_game.h"
#include "algorithms/game/wrapped_game.h"
#include "algorithms/method/registry.h"
#include "runtime/config/run_config.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace caller_test {

using ::testing::HasSubstr;

constexpr int kPeers = 4;
constexpr double kRate = 0.01;

// A game whose gradient is a program's whole step of gradient descent.
class SteppingGame final : public WrappedGame {
 public:
  explicit SteppingGame(std::unique_ptr<Game> game)
      : WrappedGame(std::move(game)) {}
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    absl::StatusOr<Losses> losses = WrappedGame::Gradient(players, key);
    const auto x = HostSpan(device_parameters());
    const auto g = HostSpan(device_gradients());
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] += -static_cast<float>(kRate) * g[i];
    }
    return losses;
  }
};

SimFleetOptions Fleet(bool callers, std::string codec, int overlap) {
  SimFleetOptions o;
  o.peers = kPeers;
  o.codec = std::move(codec);
  o.peer.rounds = 40;
  o.peer.overlap_steps = overlap;
  o.schedule.graph = "ring";
  o.step.generator = {.name = "sgd", .learning_rate = kRate};
  if (callers) {
    o.step.generator = {.name = "caller", .make = FindMethod("caller")->rule};
  }
  o.step.discriminator = o.step.generator;
  o.game = [callers](int rank) -> std::unique_ptr<Game> {
    std::unique_ptr<Game> game = *QuadraticGame::Create(
        {.dimension = 30, .noise = 0.5, .heterogeneity = 1}, rank, kPeers, 7);
    if (!callers) return game;
    return std::make_unique<SteppingGame>(std::move(game));
  };
  return o;
}

std::vector<float> End(SimFleetOptions options) {
  SimFleet fleet(std::move(options));
  fleet.Start();
  EXPECT_TRUE(fleet.Run());
  std::vector<float> all;
  for (int r = 0; r < kPeers; ++r) {
    const auto x = fleet.game(r).parameters();
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

TEST(CallerTest, MixesAsAnyOtherStepOfTheSameIncrements) {
  for (const char* codec : {"dense-f32", "innov-int4"}) {
    for (const int overlap : {0, 1, 3}) {
      EXPECT_EQ(End(Fleet(true, codec, overlap)),
                End(Fleet(false, codec, overlap)))
          << codec << ", overlap " << overlap;
    }
  }
}

TEST(CallerTest, BelongsToGameCaller) {
  const auto error = [](const char* text) {
    return std::string(ParseRunConfig(text, "run").status().message());
  };
  const auto run = ParseRunConfig("game { caller {} }", "run");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->algorithm(), "caller");
  EXPECT_EQ(run->step().optimizer(), "caller");
  EXPECT_THAT(error("algorithm: 'dposg' game { caller {} }"),
              HasSubstr("leave it out, or set algorithm=caller"));
  EXPECT_TRUE(
      ParseRunConfig("algorithm: 'caller'", "run")->game().has_caller());
  EXPECT_THAT(error("algorithm: 'caller' game { gan {} }"),
              HasSubstr("write game { caller {} }"));
  EXPECT_THAT(error("game { caller {} } step { n_critic: 5 }"),
              HasSubstr("step.n_critic is 5"));
  EXPECT_THAT(error("game { caller {} } step { gradient_clip: 1 }"),
              HasSubstr("step.gradient_clip is 1"));
}

}  // namespace caller_test
}  // namespace gossamer
