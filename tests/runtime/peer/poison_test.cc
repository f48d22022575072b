// The effect of lying members on the others, with clipped mixing and without:
// `peer_test --gtest_filter='*Poison*'` prints the rows of GUARANTEES.md.
//
// A liar sets its parameters before each of its steps; its neighbours get
// these, changed by mixing since.  The attacks are after He, Karimireddy,
// Jaggi, 2022.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace poison_test {

constexpr int kPeers = 8;
constexpr double kRadius = 0.02;

using Vector = std::vector<float>;

// The knowledge of liars: the parameters of all peers.
struct World {
  std::vector<Game*> honest;  // by rank; null for a liar

  Vector Mean() const {
    Vector mean(40 * 2);
    for (Game* game : honest) {
      if (game == nullptr) continue;
      for (size_t i = 0; i < mean.size(); ++i) {
        mean[i] += game->parameters()[i] / Count();
      }
    }
    return mean;
  }
  // Returns the parameters of the honest peer that is furthest from `mean`.
  Vector Furthest(const Vector& mean) const {
    double most = -1;
    Vector furthest;
    for (Game* game : honest) {
      if (game == nullptr) continue;
      double sum = 0;
      for (size_t i = 0; i < mean.size(); ++i) {
        sum += std::pow(game->parameters()[i] - mean[i], 2);
      }
      if (std::exchange(most, std::max(most, sum)) >= sum) continue;
      furthest.assign(game->parameters().begin(), game->parameters().end());
    }
    return furthest;
  }

 private:
  float Count() const {
    return static_cast<float>(
        honest.size() - std::count(honest.begin(), honest.end(), nullptr));
  }
};

// Changes the parameters of its peer before its n-th step.
using Lie = std::function<void(const World&, uint64_t n, std::span<float> x)>;

// The game of a liar: it sets its parameters before each gradient, which is
// zero.
class LyingGame final : public Game {
 public:
  LyingGame(std::unique_ptr<Game> game, const World* world, Lie lie)
      : game_(std::move(game)),
        world_(world),
        lie_(std::move(lie)),
        still_(layout().size()) {}
  const ParameterLayout& layout() const override { return game_->layout(); }
  DeviceSpan<float> device_parameters() override {
    return game_->device_parameters();
  }
  DeviceSpan<const float> device_gradients() const override { return still_; }
  absl::StatusOr<Losses> Gradient(Players, RngKey) override {
    lie_(*world_, n_++, parameters());
    return Losses{};
  }

 private:
  const std::unique_ptr<Game> game_;
  const World* const world_;
  const Lie lie_;
  const Vector still_;
  uint64_t n_ = 0;
};

// An attack, and the bounds on what it does to honest peers.
struct Attack {
  const char* name;
  const char* says;
  Lie lie;
  std::vector<int> liars = {3};
  double clipped;        // bound on the distance with clipping
  double unclipped = 0;  // and, if not 0, what the distance exceeds without
};

std::ostream& operator<<(std::ostream& out, const Attack& attack) {
  return out << attack.name;
}

Lie MeanTimes(float factor, float plus = 0) {
  return [=](const World& world, uint64_t, std::span<float> x) {
    const Vector mean = world.Mean();
    for (size_t i = 0; i < x.size(); ++i) x[i] = factor * mean[i] + plus;
  };
}

Lie Constant(float value) {
  return [=](const World&, uint64_t, std::span<float> x) {
    std::fill(x.begin(), x.end(), value);
  };
}

Lie Drift(float a_round) {
  return [=](const World&, uint64_t n, std::span<float> x) {
    std::fill(x.begin(), x.end(), a_round * static_cast<float>(n));
  };
}

void Random(const World&, uint64_t n, std::span<float> x) {
  RngKey(n).FillGaussian(x);
  for (float& v : x) v *= 1e3f;
}

void Echo(const World& world, uint64_t, std::span<float> x) {
  std::copy_n(world.honest[0]->parameters().begin(), x.size(), x.begin());
}

// Pulls the others away from the peer that is furthest from them, and that peer
// from them.
Lie Dissensus(float factor) {
  return [=](const World& world, uint64_t, std::span<float> x) {
    const Vector mean = world.Mean(), far = world.Furthest(mean);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = mean[i] - factor * (far[i] - mean[i]);
    }
  };
}

// Root mean squares over the parameters.
struct Distances {
  double solution = 0;   // of the honest peer furthest from the solution
  double consensus = 0;  // of the honest peer furthest from the honest mean
};

double Rms(std::span<const float> x, const auto& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(x[i] - y[i], 2);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// Eight peers on a random 4-regular graph, some of which lie.
class PoisonedFleet {
 protected:
  struct Outcome {
    Distances distances;
    int spoilt = 0;    // events of honest peers
    int exploded = 0;  // events of honest peers
  };
  static Distances Train(double clip_radius, const Attack* attack) {
    return Play(clip_radius, attack, [](SimFleetOptions&) {}).distances;
  }
  static Outcome Play(double clip_radius, const Attack* attack,
                      const std::function<void(SimFleetOptions&)>& change) {
    World world;
    world.honest.resize(kPeers);
    const auto lies = [&](int rank) {
      return attack != nullptr &&
             std::count(attack->liars.begin(), attack->liars.end(), rank) > 0;
    };
    SimFleetOptions o = QuadraticFleet(kPeers, 600);
    o.schedule.graph = "random-regular";
    o.schedule.degree = 4;
    o.codec = "innov-int4";
    o.peer.limits.clip_radius = clip_radius;
    o.peer.limits.largest = 1e6f;
    o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
    o.game = [&](int rank) -> std::unique_ptr<Game> {
      auto game = Quadratic(rank, kPeers, 0.1, 0.1);
      if (lies(rank)) {
        return std::make_unique<LyingGame>(std::move(game), &world,
                                           attack->lie);
      }
      world.honest[static_cast<size_t>(rank)] = game.get();
      return game;
    };
    change(o);
    SimFleet fleet(std::move(o));
    fleet.Run();
    const auto honest = Quadratic(0, kPeers, 0.1, 0.1);
    const auto solution =
        dynamic_cast<const QuadraticGame&>(*honest).solution();
    const Vector mean = world.Mean();
    Outcome outcome;
    Distances& d = outcome.distances;
    for (int rank = 0; rank < kPeers; ++rank) {
      if (lies(rank)) continue;
      EXPECT_TRUE(fleet.StatusOf(rank).ok()) << fleet.StatusOf(rank);
      EXPECT_EQ(fleet.recorder(rank).Count("edge_refused"), 0);
      outcome.spoilt += fleet.recorder(rank).Count("nonfinite_parameters") +
                        fleet.recorder(rank).Count("spoilt");
      outcome.exploded += fleet.recorder(rank).Count("edge_exploded");
      const std::span<float> x = fleet.game(rank).parameters();
      d.solution = std::max(d.solution, Rms(x, solution));
      d.consensus = std::max(d.consensus, Rms(x, mean));
    }
    return outcome;
  }
};

class ExplosionTest : public PoisonedFleet, public testing::Test {};

// The liar does not check itself as an honest peer does.  Neighbours leave out
// differences beyond the largest parameter, and stay well.
TEST_F(ExplosionTest, IsLeftOut) {
  for (const char* codec : {"innov-int4", "dense-f32"}) {
    for (const bool grows : {false, true}) {
      SCOPED_TRACE(absl::StrCat(codec, grows ? ", growing" : ""));
      const auto lie = [grows](const World&, uint64_t n, std::span<float> x) {
        const float far = grows ? std::min(1e25, std::pow(1.3, n)) : 1e9;
        std::fill(x.begin(), x.end(), n < 100 ? 0 : far);
      };
      Attack attack{"Explodes", "", lie, {3}, 0};
      const Outcome outcome = Play(0, &attack, [&](SimFleetOptions& o) {
        o.codec = codec;
        o.spec_of = [](int rank, PeerSpec& spec) {
          if (rank == 3) {
            spec.limits.largest = std::numeric_limits<float>::max();
          }
        };
      });
      EXPECT_EQ(outcome.spoilt, 0);
      EXPECT_GT(outcome.exploded, 4);
      if (!grows) {
        EXPECT_LT(outcome.distances.solution, 0.1);
      }
    }
  }
}

class PoisonTest : public PoisonedFleet,
                   public testing::TestWithParam<Attack> {};

TEST_P(PoisonTest, TheHonestStayWithinTheirBound) {
  const Attack& a = GetParam();
  const Distances without = Train(0, &a), with = Train(kRadius, &a);
  std::printf("| %s | %.3g | %.3g | %.3g | %.3g |\n", a.says, without.solution,
              with.solution, without.consensus, with.consensus);
  EXPECT_LT(with.solution, a.clipped);
  if (a.unclipped > 0) {
    EXPECT_GT(without.solution, a.unclipped);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Attacks, PoisonTest,
    testing::Values(
        Attack{"None", "nobody lies", nullptr, {}, 0.05},
        Attack{"Constant",
               "one says 1e5 everywhere",
               Constant(1e5f),
               {3},
               0.1,
               1e3},
        Attack{"Flip",
               "one says -1 times the honest mean",
               MeanTimes(-1),
               {3},
               0.1},
        Attack{"FlipTen",
               "one says -10 times the honest mean",
               MeanTimes(-10),
               {3},
               0.1},
        Attack{"Zeros", "one says zero", Constant(0), {3}, 0.1},
        Attack{"Drift",
               "one drifts from zero by 0.002 a round",
               Drift(2e-3f),
               {3},
               0.1},
        Attack{"SlowDrift",
               "one drifts from zero by 0.0002 a round",
               Drift(2e-4f),
               {3},
               0.1},
        Attack{"Dissensus",
               "one draws the others away from who is furthest, by 10 times "
               "its distance (dissensus)",
               Dissensus(10),
               {3},
               0.1},
        Attack{"DissensusLong",
               "the same, by 1000 times",
               Dissensus(1000),
               {3},
               0.1},
        Attack{"Echo", "one says what another holds (echo)", Echo, {3}, 0.1},
        Attack{"Random",
               "one says Gaussian noise of 1e3, new every round",
               Random,
               {3},
               0.1},
        Attack{"NotANumber",
               "one has NaN: its own peer notices and sends nothing",
               Constant(std::numeric_limits<float>::quiet_NaN()),
               {3},
               0.1},
        Attack{"TwoFar",
               "two say 1e5 everywhere",
               Constant(1e5f),
               {3, 6},
               0.1,
               1e3},
        Attack{"TwoNear",
               "two say the honest mean + 0.05",
               MeanTimes(1, 0.05f),
               {3, 6},
               0.1},
        Attack{"TwoFlip",
               "two say -1 times the honest mean",
               MeanTimes(-1),
               {3, 6},
               0.2}),
    [](const auto& info) { return info.param.name; });

}  // namespace poison_test
}  // namespace gossamer
