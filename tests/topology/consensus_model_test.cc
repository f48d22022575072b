#include "topology/consensus_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "topology/mixing_matrix.h"

namespace gossamer {
namespace {

std::unique_ptr<MixingSchedule> Make(const ScheduleSpec& spec, int size) {
  auto made = MakeSchedule(spec, size, 3);
  EXPECT_TRUE(made.ok()) << made.status();
  return std::move(made).value();
}

std::unique_ptr<MixingSchedule> Graph(const std::string& graph, int size) {
  return Make({.graph = graph, .edges = ""}, size);
}

std::unique_ptr<MixingSchedule> Schedule(const std::string& name, int size) {
  return Make({.schedule = name, .edges = ""}, size);
}

// The recursion itself, with noise, averaged over rounds.
double Simulated(const MixingSchedule& schedule, double gamma, int age) {
  constexpr int kRounds = 60000;
  const int m = schedule.size();
  std::vector<std::vector<double>> x(age + 1, std::vector<double>(m));
  double sum = 0;
  for (int k = 0; k < kRounds; ++k) {
    const RngKey key = RngKey(11).Fold(k);
    const std::vector<double> now = x[k % (age + 1)];
    std::vector<double>& old = x[(k + 1) % (age + 1)];  // and what comes next
    std::vector<double> next(m);
    double mean = 0;
    for (int i = 0; i < m; ++i) {
      next[i] = now[i] + key.Gaussian(i);
      // Round numbers are not negative; what is older than the start is 0.
      for (const Neighbor& n : schedule.Row(i, k + 16 - age).neighbors) {
        next[i] += gamma * n.weight * (old[n.rank] - old[i]);
      }
      mean += next[i] / m;
    }
    for (int i = 0; i < m; ++i) sum += (next[i] - mean) * (next[i] - mean) / m;
    // The mean walks away, which is no matter but for rounding.
    old = next;
  }
  return sum / kRounds;
}

TEST(ConsensusModel, WithoutDelayIsTheGeometricSum) {
  const auto ring = Schedule("permuted-ring", 16);
  const double factor = ExpectedContraction(*ring).factor;
  EXPECT_NEAR(ConsensusModel(*ring).Distance(1, 0, 0), 15.0 / 16 / (1 - factor),
              1e-9);
  // All at once: only the last step's noise is left.
  const auto complete = Graph("complete", 8);
  EXPECT_NEAR(ConsensusModel(*complete).Distance(1, 0, 0), 7.0 / 8, 1e-9);
}

TEST(ConsensusModel, SmallerStepsCountAsSlowerMixing) {
  // Of a projection, 1 - (1 - f)(1 - (1 - g)^2) instead of f.
  const auto pairs = Schedule("random-matching", 8);
  const double f = ExpectedContraction(*pairs).factor;
  for (double g : {0.1, 0.5, 0.9}) {
    EXPECT_NEAR(ConsensusModel(*pairs).Distance(g, 0, 0),
                7.0 / 8 / ((1 - f) * (1 - (1 - g) * (1 - g))), 1e-9);
  }
}

TEST(ConsensusModel, IsWhatTheRecursionDoes) {
  struct Case {
    std::unique_ptr<MixingSchedule> schedule;
    double gamma;
    int age;
  };
  std::vector<Case> cases;
  cases.push_back({Graph("ring", 6), 1, 0});
  cases.push_back({Graph("ring", 6), 0.3, 2});
  cases.push_back({Graph("torus", 9), 0.2, 4});
  cases.push_back({Schedule("permuted-ring", 8), 0.3, 2});
  cases.push_back({Schedule("random-matching", 6), 0.4, 1});
  cases.push_back({Schedule("random-matching", 7), 0.3, 2});
  cases.push_back({Schedule("one-peer-exponential", 8), 1, 0});
  cases.push_back({Schedule("one-peer-exponential", 8), 0.4, 2});
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const double said = ConsensusModel(*c.schedule).Distance(c.gamma, c.age, 0);
    EXPECT_NEAR(said / Simulated(*c.schedule, c.gamma, c.age), 1, 0.03) << i;
  }
}

TEST(ConsensusModel, UnstableStepsGrowWithoutEnd) {
  const auto ring = Graph("ring", 6);
  const double bound = StableStepSize(*ring, 3);
  const ConsensusModel model(*ring);
  EXPECT_TRUE(std::isfinite(model.Distance(0.9 * bound, 3, 0)));
  EXPECT_TRUE(std::isinf(model.Distance(std::min(1.0, 1.3 * bound), 3, 0)));
}

TEST(ConsensusModel, CoarserCodecsAndRarerEdgesCostMore) {
  const auto ring = Graph("ring", 8);
  const auto pairs = Schedule("random-matching", 8);
  const ConsensusModel fixed(*ring), random(*pairs);
  EXPECT_EQ(fixed.rounds_between_uses(), 1);
  EXPECT_EQ(random.rounds_between_uses(), 7);
  EXPECT_EQ(ConsensusModel(*Schedule("one-peer-exponential", 8))
                .rounds_between_uses(),
            3);
  const double exact = fixed.Distance(0.6, 0, 0);
  EXPECT_GT(fixed.Distance(0.6, 0, 0.1), exact);
  EXPECT_GT(fixed.Distance(0.6, 0, 0.3), fixed.Distance(0.6, 0, 0.1));
  EXPECT_GT(random.Distance(0.6, 0, 0.01) / random.Distance(0.6, 0, 0),
            fixed.Distance(0.6, 0, 0.01) / exact);
}

TEST(ConsensusModel, OnePeerAgrees) {
  EXPECT_EQ(ConsensusModel(*Graph("ring", 1)).Distance(1, 0, 0.3), 0);
}

}  // namespace
}  // namespace gossamer
