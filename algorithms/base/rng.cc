#include "algorithms/base/rng.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace gossamer {

double RngKey::Gaussian(uint64_t i) const {
  // Box-Muller on draws 2i and 2i + 1; 1 - u keeps the logarithm finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform(2 * i)));
  return radius * std::cos(2.0 * std::numbers::pi * Uniform(2 * i + 1));
}

void RngKey::FillGaussian(std::span<float> out) const {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(Gaussian(i));
  }
}

std::vector<int> RngKey::Permutation(int n) const {
  std::vector<int> p(n);
  std::iota(p.begin(), p.end(), 0);
  // Fisher and Yates, with draw i for place i: the permutation is a function of
  // the key alone.
  for (int i = n - 1; i > 0; --i) {
    std::swap(p[i], p[Below(static_cast<uint64_t>(i) + 1, i)]);
  }
  return p;
}

}  // namespace gossamer
