// Each rule against an independent computation in double, and its state across
// a save and a restore.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/method/registry.h"
#include "algorithms/optim/optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace optim_test {

constexpr size_t kSize = 37;

std::unique_ptr<Optimizer> Make(const OptimizerSpec& spec,
                                size_t size = kSize) {
  auto made = Optimizer::Create(spec, size);
  EXPECT_TRUE(made.ok()) << made.status();
  return std::move(made).value();
}

std::vector<float> GradientOfStep(int step, size_t size = kSize) {
  std::vector<float> g(size);
  RngKey(5).Fold("gradient").Fold(static_cast<uint64_t>(step)).FillGaussian(g);
  return g;
}

std::vector<float> Start(size_t size = kSize) {
  std::vector<float> x(size);
  RngKey(5).Fold("start").FillGaussian(x);
  return x;
}

// Adds changes to x in double, and reports the error of the optimizer's float x
// relative to how far x has moved.
class Tracker {
 public:
  explicit Tracker(const std::vector<float>& x)
      : start_(x.begin(), x.end()), x_(start_) {}
  void Add(size_t i, double change) { x_[i] += change; }
  double Error(const std::vector<float>& x) const {
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      worst =
          std::max(worst, std::abs(x[i] - x_[i]) /
                              (std::abs(x_[i]) + std::abs(x_[i] - start_[i])));
    }
    return worst;
  }

 private:
  std::vector<double> start_, x_;
};

double Decay(int t) { return 1 / (1 + 0.1 * t); }

// Algorithm 1 of each paper in double, written from its formulas.
class DirectionInDouble {
 public:
  explicit DirectionInDouble(const OptimizerSpec& spec) : spec_(spec) {}
  double Next(size_t i, int t, double g) {
    double& m = m_[i];
    double& v = v_[i];
    m = spec_.beta1 * m + (1 - spec_.beta1) * g;
    v = spec_.beta2 * v + (1 - spec_.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(spec_.beta1, t));
    const double v_hat = v / (1 - std::pow(spec_.beta2, t));
    return m_hat / (std::sqrt(v_hat) + spec_.epsilon);
  }

 private:
  OptimizerSpec spec_;
  std::map<size_t, double> m_, v_;
};

TEST(OAdamTest, TwentyStepsEqualThePaperInDouble) {
  const OptimizerSpec spec = {.name = "oadam", .learning_rate = 1e-2};
  auto optimizer = Make(spec);
  auto x = Start();
  Tracker expected(x);
  DirectionInDouble direction(spec);
  std::vector<double> previous(kSize);
  for (int t = 1; t <= 20; ++t) {
    const auto g = GradientOfStep(t);
    optimizer->Step(x, g, Decay(t));
    const double rate = spec.learning_rate * Decay(t);
    for (size_t i = 0; i < kSize; ++i) {
      const double p = direction.Next(i, t, g[i]);
      expected.Add(i, -2 * rate * p + rate * previous[i]);
      previous[i] = p;
    }
    EXPECT_LT(expected.Error(x), 1e-5) << "step " << t;
  }
}

TEST(AdamTest, TwentyStepsEqualThePaperInDouble) {
  const OptimizerSpec spec = {
      .name = "adam", .learning_rate = 1e-2, .beta1 = 0.9, .beta2 = 0.999};
  auto optimizer = Make(spec);
  auto x = Start();
  Tracker expected(x);
  DirectionInDouble direction(spec);
  for (int t = 1; t <= 20; ++t) {
    const auto g = GradientOfStep(t);
    optimizer->Step(x, g, 1);
    for (size_t i = 0; i < kSize; ++i) {
      expected.Add(i, -spec.learning_rate * direction.Next(i, t, g[i]));
    }
    EXPECT_LT(expected.Error(x), 1e-5) << "step " << t;
  }
}

TEST(OAdamTest, WithoutMomentsAndWithALargeEpsilonIsOgda) {
  // For ε far above |g|, p = g / (|g| + ε) is g / ε.
  constexpr double kEpsilon = 1e9;
  auto oadam = Make({.name = "oadam",
                     .learning_rate = 0.05 * kEpsilon,
                     .beta1 = 0,
                     .beta2 = 0,
                     .epsilon = kEpsilon});
  auto ogda = Make({.name = "ogda", .learning_rate = 0.05});
  auto x = Start(), y = x;
  for (int t = 1; t <= 50; ++t) {
    const auto g = GradientOfStep(t);
    oadam->Step(x, g, 1);
    ogda->Step(y, g, 1);
    for (size_t i = 0; i < kSize; ++i) ASSERT_NEAR(x[i], y[i], 1e-5);
  }
}

TEST(OgdaTest, FollowsItsFormula) {
  auto optimizer = Make({.name = "ogda", .learning_rate = 0.1});
  auto x = Start();
  Tracker expected(x);
  for (int t = 1; t <= 20; ++t) {
    const auto g = GradientOfStep(t);
    const auto before =
        t == 1 ? std::vector<float>(kSize) : GradientOfStep(t - 1);
    optimizer->Step(x, g, 1);
    for (size_t i = 0; i < kSize; ++i) {
      expected.Add(i, -0.2 * g[i] + 0.1 * before[i]);
    }
    EXPECT_LT(expected.Error(x), 1e-5);
  }
}

TEST(SgdTest, FollowsItsFormula) {
  auto optimizer = Make({.name = "sgd", .learning_rate = 0.1});
  auto x = Start();
  Tracker expected(x);
  for (int t = 1; t <= 20; ++t) {
    const auto g = GradientOfStep(t);
    optimizer->Step(x, g, Decay(t));
    for (size_t i = 0; i < kSize; ++i) expected.Add(i, -0.1 * Decay(t) * g[i]);
    EXPECT_LT(expected.Error(x), 1e-5);
  }
}

// Returns the gradient of a rotation, which makes the sequence depend on the
// point of each gradient.
std::vector<float> RotationGradient(const std::vector<float>& z) {
  std::vector<float> g(z.size());
  for (size_t i = 0; i + 1 < z.size(); i += 2) {
    g[i] = z[i + 1];
    g[i + 1] = -z[i];
  }
  return g;
}

TEST(OsgTest, ItsExtrapolatedPointsAreThoseOfOgda) {
  auto osg = Make({.name = "osg", .learning_rate = 0.1});
  auto ogda = Make({.name = "ogda", .learning_rate = 0.1});
  auto x = Start(), z = x;
  for (int t = 1; t <= 200; ++t) {
    osg->Extrapolate(x);
    for (size_t i = 0; i < kSize; ++i) ASSERT_NEAR(x[i], z[i], 2e-5) << t;
    osg->Step(x, RotationGradient(x), 1);
    ogda->Step(z, RotationGradient(z), 1);
  }
}

TEST(OsgTest, StepTakesBackTheExtrapolationAlsoWhenTheRateChanges) {
  auto osg = Make({.name = "osg", .learning_rate = 0.1});
  auto x = Start();
  Tracker anchor(x);
  for (int t = 1; t <= 50; ++t) {
    osg->Extrapolate(x);
    const auto g = GradientOfStep(t);
    osg->Step(x, g, Decay(t));
    for (size_t i = 0; i < kSize; ++i) anchor.Add(i, -0.1 * Decay(t) * g[i]);
    EXPECT_LT(anchor.Error(x), 1e-5);
  }
}

TEST(OsgTest, ASkippedStepLeavesThePointExtrapolated) {
  auto osg = Make({.name = "osg", .learning_rate = 0.1});
  auto x = Start();
  osg->Extrapolate(x);
  osg->Step(x, GradientOfStep(1), 1);
  osg->Extrapolate(x);
  const auto once = x;
  osg->Extrapolate(x);
  EXPECT_EQ(x, once);
}

// Keeps every piece of an object's state by name, or puts it back.
class StateStore : public StateVisitor {
 public:
  bool loading = false;
  bool loads() const override { return loading; }
  void Floats(std::string_view name, std::span<float> values) override {
    auto& kept = floats_[std::string(name)];
    if (loading) {
      ASSERT_EQ(kept.size(), values.size()) << name;
      std::copy(kept.begin(), kept.end(), values.begin());
    } else {
      ASSERT_TRUE(kept.empty()) << "name used twice: " << name;
      kept.assign(values.begin(), values.end());
    }
  }
  void Counter(std::string_view name, uint64_t& value) override {
    uint64_t& kept = counters_[std::string(name)];
    (loading ? value : kept) = loading ? kept : value;
  }
  void Bytes(std::string_view name, std::vector<std::byte>& bytes) override {
    FAIL() << "an optimizer has no state in bytes";
  }

 private:
  std::map<std::string, std::vector<float>> floats_;
  std::map<std::string, uint64_t> counters_;
};

// Returns the rules of this folder, then those that methods bring.
std::vector<std::string_view> Rules() {
  std::vector<std::string_view> rules = Optimizer::Names();
  for (const Method* method : Methods()) {
    if (method->rule == nullptr) continue;
    const std::string_view name = method->defaults.optimizer;
    if (std::ranges::find(rules, name) == rules.end()) rules.push_back(name);
  }
  return rules;
}

class EveryOptimizerTest : public testing::TestWithParam<std::string_view> {
 protected:
  OptimizerSpec spec() const {
    return {.name = std::string(GetParam()),
            .make = OwnRule(GetParam()),
            .learning_rate = 1e-2};
  }
};

INSTANTIATE_TEST_SUITE_P(Rules, EveryOptimizerTest, testing::ValuesIn(Rules()),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

TEST_P(EveryOptimizerTest, RestoredStateContinuesBitForBit) {
  const auto run = [](Optimizer& optimizer, std::vector<float>& x, int from,
                      int to) {
    for (int t = from; t < to; ++t) {
      optimizer.Extrapolate(x);
      optimizer.Step(x, GradientOfStep(t), Decay(t));
    }
    optimizer.Extrapolate(x);
  };
  auto original = Make(spec());
  auto x = Start();
  run(*original, x, 1, 8);
  StateStore store;
  original->VisitState(store);
  auto restored = Make(spec());
  store.loading = true;
  restored->VisitState(store);
  auto y = x;
  run(*original, x, 8, 20);
  run(*restored, y, 8, 20);
  EXPECT_EQ(x, y);
}

TEST_P(EveryOptimizerTest, TablesGiveTheSameBits) {
  std::vector<std::vector<float>> results;
  for (const Kernels* kernels : AvailableKernels()) {
    auto optimizer = Optimizer::Create(spec(), 1003, *kernels);
    ASSERT_TRUE(optimizer.ok());
    auto x = Start(1003);
    for (int t = 1; t <= 5; ++t) {
      (*optimizer)->Extrapolate(x);
      (*optimizer)->Step(x, GradientOfStep(t, 1003), 1);
    }
    results.push_back(x);
    EXPECT_EQ(results.front(), results.back()) << kernels->name;
  }
}

TEST_P(EveryOptimizerTest, AStepIsAnIncrement) {
  // A correction that lands between two steps survives the second one: with
  // values that floats add exactly, shifting x shifts every later x.
  OptimizerSpec quarter = spec();
  quarter.learning_rate = 0.25;
  auto here = Make(quarter);
  auto there = Make(quarter);
  std::vector<float> x(kSize, 0.0f), y(kSize, 64.0f);
  for (int t = 1; t <= 10; ++t) {
    here->Extrapolate(x);
    there->Extrapolate(y);
    here->Step(x, GradientOfStep(t), 1);
    there->Step(y, GradientOfStep(t), 1);
    for (size_t i = 0; i < kSize; ++i) ASSERT_NEAR(y[i] - x[i], 64, 1e-3);
  }
}

TEST_P(EveryOptimizerTest, RefusesParametersOutOfRange) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const OptimizerSpec& bad, const char* name) {
    const auto made = Optimizer::Create(bad, 1);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(made.status().message()), testing::HasSubstr(name));
  };
  for (const double rate : {0.0, -1.0, kNan, HUGE_VAL, 1e39}) {
    auto bad = spec();
    bad.learning_rate = rate;
    refused(bad, "learning_rate");
  }
  for (const double beta : {-0.1, 1.0, 1.5, kNan, 1 - 1e-12}) {
    auto bad = spec();
    bad.beta1 = beta;
    refused(bad, "beta1");
    bad = spec();
    bad.beta2 = beta;
    refused(bad, "beta2");
  }
  for (const double epsilon : {0.0, -1e-8, kNan, HUGE_VAL, 1e-60}) {
    auto bad = spec();
    bad.epsilon = epsilon;
    refused(bad, "epsilon");
  }
}

TEST(OptimizerTest, AnUnknownNameNamesTheKnownOnes) {
  const auto made = Optimizer::Create({.name = "lion"}, 1);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()),
              testing::AllOf(testing::HasSubstr("lion"),
                             testing::HasSubstr("sgd, ogda, osg, adam")));
}

}  // namespace optim_test
}  // namespace gossamer
