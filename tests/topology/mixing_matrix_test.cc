// Mixing matrices against closed forms: doubly stochastic, with the known
// spectral gaps and contraction, and stable step sizes.

#include "topology/mixing_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"

namespace gossamer {
namespace mixing_matrix_test {

using ::testing::HasSubstr;

MixingMatrix Matrix(const ScheduleSpec& spec, int size) {
  auto schedule = MakeSchedule(spec, size, 1);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return MatrixOfRound(**schedule, 1);
}

MixingMatrix Matrix(const std::string& graph, int size) {
  ScheduleSpec spec;
  spec.graph = graph;
  return Matrix(spec, size);
}

TEST(MixingMatrixTest, SmallCases) {
  EXPECT_EQ(Matrix("ring", 1)(0, 0), 1);
  EXPECT_EQ(Analyze(Matrix("ring", 1)).spectral_gap, 1);
  const MixingMatrix two = Matrix("ring", 2);
  for (int i : {0, 1}) {
    for (int j : {0, 1}) EXPECT_EQ(two(i, j), 0.5);
  }
  const MixingMatrix three = Matrix("ring", 3);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT_DOUBLE_EQ(three(i, j), 1.0 / 3);
  }
  EXPECT_NEAR(Analyze(three).spectral_gap, 1, 1e-12);
}

TEST(MixingMatrixTest, RingHasItsKnownEigenvalues) {
  // The eigenvalues of a ring are 1/3 + 2/3 cos(2 pi j / M).
  for (int m : {4, 5, 8, 16, 33}) {
    std::vector<double> expected;
    for (int j = 0; j < m; ++j) {
      expected.push_back(1.0 / 3 +
                         2.0 / 3 * std::cos(2 * std::numbers::pi * j / m));
    }
    std::sort(expected.rbegin(), expected.rend());
    const MixingReport report = Analyze(Matrix("ring", m));
    for (int j = 0; j < m; ++j) {
      EXPECT_NEAR(report.eigenvalues[j], expected[j], 1e-12);
    }
    EXPECT_NEAR(report.spectral_gap,
                1 - std::max(std::abs(expected[1]), std::abs(expected.back())),
                1e-12);
  }
}

TEST(MixingMatrixTest, HypercubeAndCompleteHaveTheirKnownGaps) {
  // The eigenvalues of the hypercube are 1 - 2k/(1 + d), k = 0 .. d.
  EXPECT_NEAR(Analyze(Matrix("hypercube", 16)).spectral_gap, 2.0 / 5, 1e-12);
  EXPECT_NEAR(Analyze(Matrix("complete", 9)).spectral_gap, 1, 1e-12);
  // A leaf of a Metropolis star keeps 1 - 1/M, and the slowest difference is
  // that of two leaves.
  EXPECT_NEAR(Analyze(Matrix("star", 8)).spectral_gap, 1.0 / 8, 1e-12);
}

TEST(MixingMatrixTest, MetropolisIsDoublyStochasticOnIrregularGraphs) {
  for (const char* graph : {"erdos-renyi", "star", "torus", "random-regular"}) {
    for (int m : {4, 10, 40}) {
      const MixingMatrix w = Matrix(graph, m);
      EXPECT_TRUE(CheckMixingMatrix(w).ok()) << graph << m;
      const MixingReport report = Analyze(w);
      EXPECT_LT(report.row_sum_error, 1e-12);
      EXPECT_LT(report.column_sum_error, 1e-12);
      EXPECT_EQ(report.symmetry_error, 0);
      EXPECT_GE(report.smallest_entry, 0);
      EXPECT_NEAR(report.eigenvalues.front(), 1, 1e-12);
      EXPECT_GT(report.spectral_gap, 0);
    }
  }
}

TEST(MixingMatrixTest, WeightsOfARegularGraphAreUniform) {
  ScheduleSpec spec;
  EXPECT_DOUBLE_EQ(Matrix(spec, 8)(0, 1), 1.0 / 3);
}

TEST(MixingMatrixTest, GivenWeightsAreKeptAndChecked) {
  ScheduleSpec spec;
  spec.graph = "edge-list";
  spec.edges = "0-1:0.4 1-2:0.5 2-0";
  const MixingMatrix w = Matrix(spec, 3);
  EXPECT_EQ(w(0, 1), 0.4);
  EXPECT_EQ(w(2, 1), 0.5);
  EXPECT_DOUBLE_EQ(w(2, 0), 1.0 / 3);
  EXPECT_NEAR(w(1, 1), 0.1, 1e-15);
  EXPECT_TRUE(CheckMixingMatrix(w).ok());
  spec.edges = "0-1:0.7 1-2:0.5";
  EXPECT_THAT(std::string(MakeSchedule(spec, 3, 1).status().message()),
              testing::AllOf(HasSubstr("peer 1"), HasSubstr("1.2")));
}

TEST(MixingMatrixTest, CheckFindsEveryFault) {
  MixingMatrix w(2);
  w(0, 0) = w(1, 1) = 0.4;
  w(0, 1) = w(1, 0) = 0.6;
  EXPECT_TRUE(CheckMixingMatrix(w).ok());
  w(0, 1) = 0.7;
  EXPECT_THAT(std::string(CheckMixingMatrix(w).message()),
              HasSubstr("not symmetric"));
  w(1, 0) = 0.7;
  EXPECT_THAT(std::string(CheckMixingMatrix(w).message()),
              HasSubstr("adds up to 1.1"));
  w(1, 1) = -0.4;
  w(0, 0) = std::nan("");
  EXPECT_THAT(std::string(CheckMixingMatrix(w).message()),
              HasSubstr("not negative"));
}

TEST(ContractionTest, FixedIsTheSquareOfRho) {
  for (int m : {4, 8, 16, 32}) {
    ScheduleSpec spec;
    const auto schedule = MakeSchedule(spec, m, 1);
    ASSERT_TRUE(schedule.ok());
    const double rho = 1.0 / 3 + 2.0 / 3 * std::cos(2 * std::numbers::pi / m);
    const Contraction c = ExpectedContraction(**schedule);
    EXPECT_NEAR(c.factor, rho * rho, 1e-12);
    EXPECT_FALSE(c.estimated);
    EXPECT_NEAR(c.gap(), Analyze(Matrix("ring", m)).spectral_gap, 1e-12);
  }
}

TEST(ContractionTest, OnePeerExponentialAveragesInOnePeriod) {
  ScheduleSpec spec;
  spec.graph = "one-peer-exponential";
  const auto schedule = MakeSchedule(spec, 16, 1);
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ((*schedule)->period(), 4);
  EXPECT_EQ(ExpectedContraction(**schedule).factor, 0);
  EXPECT_EQ(ExpectedContraction(**schedule).gap(), 1);
}

// A schedule without a period or a formula, which must be estimated.
class Unknown : public MixingSchedule {
 public:
  explicit Unknown(const MixingSchedule& known) : known_(known) {}
  int size() const override { return known_.size(); }
  MixingRow Row(int rank, uint64_t round) const override {
    return known_.Row(rank, round);
  }
  bool is_static() const override { return false; }

 private:
  const MixingSchedule& known_;
};

// Iterates x(k+1) = x(k) - gamma (I - W_k) x(k - age) from random x with mean
// zero.  Returns the norm after the rounds over the first one.
double AfterDelayedMixing(const MixingSchedule& schedule, int age, double gamma,
                          uint64_t rounds = 600) {
  const int m = schedule.size();
  std::vector<double> start(m);
  double mean = 0;
  for (int i = 0; i < m; ++i) mean += start[i] = RngKey(3).Gaussian(i);
  for (double& v : start) v -= mean / m;
  std::deque<std::vector<double>> x(age + 1, start);
  for (uint64_t k = 1; k <= rounds; ++k) {
    std::vector<double> next = x.back();
    for (int i = 0; i < m; ++i) {
      for (const Neighbor& n : schedule.Row(i, k).neighbors) {
        next[i] += gamma * n.weight * (x.front()[n.rank] - x.front()[i]);
      }
    }
    x.push_back(next);
    x.pop_front();
  }
  double before = 0;
  double after = 0;
  for (int i = 0; i < m; ++i) {
    before += start[i] * start[i];
    after += x.back()[i] * x.back()[i];
  }
  return std::sqrt(after / before);
}

std::unique_ptr<MixingSchedule> Schedule(const std::string& graph, int size) {
  ScheduleSpec spec;
  spec.graph = graph;
  spec.degree = 4;
  return *MakeSchedule(spec, size, 1);
}

// Beyond kMaxDense peers, by iteration.
TEST(ContractionTest, LargeGraphsHaveTheirKnownEigenvalues) {
  // A torus has the eigenvalues (1 + 2 cos(2 pi a / 50) + 2 cos(2 pi b / 50))
  // / 5.
  const auto torus = Schedule("torus", 50 * 50);
  const double second = (3 + 2 * std::cos(2 * std::numbers::pi / 50)) / 5;
  EXPECT_NEAR(ExpectedContraction(*torus).factor, second * second, 1e-5);
  EXPECT_NEAR(StableStepSize(*torus, 0), 2 / (1 + 0.6), 1e-4);
  EXPECT_NEAR(ContractionOfNorm(*torus, 0.5), (1 + second) / 2, 1e-5);
  const auto cube = Schedule("hypercube", 1 << 14);
  EXPECT_NEAR(ExpectedContraction(*cube).gap(), 2.0 / 15, 1e-5);
  EXPECT_EQ(
      ExpectedContraction(*Schedule("one-peer-exponential", 1 << 14)).factor,
      0);
  // A random graph of degree 4 comes close to the best that there is
  // (Friedman, 2008): a second eigenvalue of 2 sqrt(3) of its adjacency.
  const auto random = Schedule("random-regular", 10'000);
  const double best = (1 + 2 * std::sqrt(3.0)) / 5;
  const double factor = std::sqrt(ExpectedContraction(*random).factor);
  EXPECT_NEAR(factor, best, 2e-3);
  // Mixing itself contracts by no less, and by little more: many eigenvalues
  // are close to the second one.
  const double mixed = std::pow(AfterDelayedMixing(*random, 0, 1, 200) /
                                    AfterDelayedMixing(*random, 0, 1, 100),
                                1.0 / 100);
  EXPECT_LE(mixed, factor + 1e-6);
  EXPECT_GT(mixed, factor - 0.01);
}

TEST(ContractionTest, IterationAndDenseMatrixAgree) {
  // A matrix of twice kMaxDense peers, in two halves that never meet, would
  // have the eigenvalues of one half; a ring of 1,024 and one of 1,026 are
  // nearly alike.
  for (const std::string graph : {"torus", "ring"}) {
    EXPECT_NEAR(StableStepSize(*Schedule(graph, 1024), 0),
                StableStepSize(*Schedule(graph, 1026), 0), 1e-2)
        << graph;
  }
}

// The matrix of a matching has two eigenvalues: 0 and 1.
TEST(StableStepSizeTest, MatchingsOfLargeFleetsHaveTheBoundOfSmallOnes) {
  for (const std::string graph : {"one-peer-exponential", "random-matching"}) {
    for (int size : {64, 128, 2048}) {
      EXPECT_NEAR(StableStepSize(*Schedule(graph, size), 0), 2, 1e-5)
          << graph << " of " << size;
    }
  }
}

TEST(StableStepSizeTest, SeparatesDecayFromGrowth) {
  for (int age : {0, 1, 2, 5}) {
    for (const char* graph : {"ring", "complete", "hypercube"}) {
      SCOPED_TRACE(absl::StrCat(graph, " age ", age));
      ScheduleSpec spec;
      spec.graph = graph;
      const auto schedule = MakeSchedule(spec, 8, 1);
      const double bound = StableStepSize(**schedule, age);
      EXPECT_LT(AfterDelayedMixing(**schedule, age, 0.9 * bound), 0.1);
      EXPECT_GT(AfterDelayedMixing(**schedule, age, 1.1 * bound), 10);
    }
  }
  // The bound is 2 sin(pi / 6) = 1 over 4/3, the largest eigenvalue of I - W.
  EXPECT_NEAR(StableStepSize(**MakeSchedule({}, 8, 1), 1), 0.75, 1e-12);
}

// Peers take two thirds of the bound, which is stable on changing schedules
// too.
TEST(StableStepSizeTest, TwoThirdsDecayUnderEverySchedule) {
  for (const char* kind :
       {"permuted-ring", "random-matching", "one-peer-exponential"}) {
    for (int age : {1, 2, 5}) {
      SCOPED_TRACE(absl::StrCat(kind, " age ", age));
      ScheduleSpec spec;
      spec.graph = kind;
      const auto schedule = MakeSchedule(spec, 8, 1);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      const double gamma =
          std::min(1.0, StableStepSize(**schedule, age) * 2 / 3);
      EXPECT_LT(AfterDelayedMixing(**schedule, age, gamma), 1e-2);
    }
  }
  EXPECT_TRUE(std::isinf(StableStepSize(**MakeSchedule({}, 1, 1), 3)));
}

// After t accelerated rounds the norm of the slowest disagreement is 1 /
// T_t(1/rho) of what it was, with T_t(y) = cosh(t arcosh y).
TEST(ChebyshevTest, ContractsByItsPolynomial) {
  const auto schedule = MakeSchedule({}, 16, 1);
  const double rho = ContractionOfNorm(**schedule, 1);
  EXPECT_NEAR(rho, 1 - 2.0 / 3 * (1 - std::cos(2 * std::numbers::pi / 16)),
              1e-12);
  for (int rounds : {1, 2, 5, 12}) {
    const std::vector<double> omega = ChebyshevWeights(rho, rounds);
    ASSERT_EQ(omega.size(), static_cast<size_t>(rounds));
    std::vector<double> x(16), before(16);
    for (int i = 0; i < 16; ++i) {
      x[i] = before[i] = std::cos(2 * std::numbers::pi * i / 16);
    }
    for (double w : omega) {
      std::vector<double> next = x;
      for (int i = 0; i < 16; ++i) {
        for (const Neighbor& n : (*schedule)->Row(i, 1).neighbors) {
          next[i] += w * n.weight * (x[n.rank] - x[i]);
        }
        next[i] += (w - 1) * (x[i] - before[i]);
      }
      before = x;
      x = next;
    }
    EXPECT_NEAR(x[0], 1 / std::cosh(rounds * std::acosh(1 / rho)), 1e-9);
    EXPECT_LT(x[0], std::pow(rho, rounds) + 1e-12);
  }
}

TEST(ContractionTest, IsEstimatedWhereNoFormulaIsKnown) {
  ScheduleSpec spec;
  spec.graph = "permuted-ring";
  const auto schedule = MakeSchedule(spec, 8, 1);
  ASSERT_TRUE(schedule.ok());
  const Contraction c = ExpectedContraction(Unknown(**schedule));
  EXPECT_TRUE(c.estimated);
  EXPECT_GT(c.standard_error, 0);
  EXPECT_NEAR(c.factor, (8.0 / 3 - 1) / 7, 4 * c.standard_error);
}

}  // namespace mixing_matrix_test
}  // namespace gossamer
