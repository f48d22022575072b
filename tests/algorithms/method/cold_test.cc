// COLD's rule by itself: the duals of all peers sum to zero.

#include <cmath>
#include <memory>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/game/synthetic_game.h"
#include "algorithms/method/registry.h"
#include "algorithms/optim/local_step.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {
namespace cold_test {

std::unique_ptr<Optimizer> Make(const OptimizerSpec& spec, size_t size) {
  return *Optimizer::Create(spec, size);
}

std::vector<float> Start(size_t size) {
  std::vector<float> x(size);
  RngKey(5).Fold("start").FillGaussian(x);
  return x;
}

// A correction that is too small for the larger of two duals must not go to the
// smaller one alone.  The test adds a million corrections of a hundredth of its
// last place.
TEST(ColdTest, DualsSumToZeroThoughCorrectionsAreBelowTheirLastPlace) {
  constexpr size_t kValues = 16;
  const OptimizerSpec spec{.make = FindMethod("cold")->rule,
                           .learning_rate = 0.1};
  const auto large = Make(spec, kValues), small = Make(spec, kValues);
  std::vector<float> difference = Start(kValues);
  const auto exchange = [&](float c) {
    large->hooks()->OnCorrection(c, difference);
    small->hooks()->OnCorrection(-c, difference);
  };
  large->hooks()->OnCorrection(1, difference);
  const auto both = [&] {
    std::vector<float> a = large->hooks()->Added();
    const std::vector<float> b = small->hooks()->Added();
    for (size_t i = 0; i < kValues; ++i) a[i] += b[i];
    return a;
  };
  const std::vector<float> before = both();
  for (int i = 0; i < 1'000'000; ++i) exchange(5e-10f);
  const std::vector<float> after = both();
  const std::vector<float> moved = small->hooks()->Added();
  for (size_t i = 0; i < kValues; ++i) {
    EXPECT_NEAR(after[i], before[i], 2e-7 * std::abs(before[i]));
    EXPECT_NEAR(moved[i], -5e-4 * difference[i], 1e-9);
  }
}

// A checkpoint's deferred copy of the duals is made before each of these.
TEST(ColdTest, DualsStayConstantUntilACorrection) {
  const std::unique_ptr<Game> game =
      SyntheticGame::Create({.parameters = 8}, 0, 1, 5).value();
  LocalStepSpec spec;
  spec.generator = {
      .name = "cold", .make = FindMethod("cold")->rule, .learning_rate = 0.1};
  spec.discriminator = spec.generator;
  const auto step = *LocalStep::Create(spec, game.get());
  const std::vector<float> difference = Start(game->layout().size());
  int calls = 0;
  const std::vector<float> rest = step->hooks()->Added();
  const auto expect = [&] {
    ++calls;
    EXPECT_EQ(step->hooks()->Added(), rest);
  };
  step->BeforeChange(expect);
  EXPECT_EQ(calls, 0);
  step->hooks()->OnCorrection(1, difference);
  EXPECT_EQ(calls, 1);
  EXPECT_NE(step->hooks()->Added(), rest);
  step->BeforeChange([&] { ++calls; });
  step->hooks()->OnEdgeEnd(difference);
  EXPECT_EQ(calls, 2);
  step->BeforeChange([&] { ++calls; });
  step->hooks()->OnNewIncarnation();
  EXPECT_EQ(calls, 3);
  // A state that is loaded.
  const Checkpoint saved =
      *TakeCheckpoint({}, [&](StateVisitor& v) { step->VisitState(v); });
  step->BeforeChange([&] { ++calls; });
  ASSERT_TRUE(RestoreCheckpoint(saved, [&](StateVisitor& v) {
                step->VisitState(v);
              }).ok());
  EXPECT_EQ(calls, 4);
}

}  // namespace cold_test
}  // namespace gossamer
