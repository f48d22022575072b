// COLD's rule by itself: the duals of all peers sum to zero.

#include <cmath>
#include <memory>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/method/registry.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

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

}  // namespace
}  // namespace gossamer
