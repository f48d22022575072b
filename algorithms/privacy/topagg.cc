#include "algorithms/privacy/topagg.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/strings/str_format.h"

namespace gossamer {

absl::StatusOr<bool> AddVote(std::span<const float> gradient, int top,
                             double clip, RngKey key, std::span<int16_t> sum) {
  const size_t n = gradient.size();
  if (sum.size() != n || top < 1 || static_cast<size_t>(top) > n) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a vote on %d of %d coordinates, into a sum of %d", top,
                        n, sum.size()));
  }
  double largest = 0;
  for (const float g : gradient) {
    // Checked before anything is added, so that a refused vote leaves the sum
    // as it was.
    if (!std::isfinite(g)) return false;
    largest = std::max(largest, std::abs(static_cast<double>(g)));
  }
  if (largest == 0) return true;
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  // The first of equal magnitudes is taken, so that the choice is a function of
  // the gradient and not of the library's algorithm.
  std::nth_element(order.begin(), order.begin() + (top - 1), order.end(),
                   [&](uint32_t a, uint32_t b) {
                     const float x = std::abs(gradient[a]);
                     const float y = std::abs(gradient[b]);
                     return x > y || (x == y && a < b);
                   });
  // A stochastic sign: a coordinate at the bound votes for certain, and a small
  // one is nearly a coin's throw.
  const double bound = std::min(largest, clip);
  for (int i = 0; i < top; ++i) {
    const uint32_t j = order[static_cast<size_t>(i)];
    const double yes = 0.5 + gradient[j] / (2 * bound);
    // Integers: the sum over teachers is the same in any order and over any
    // number of processes.
    sum[j] = static_cast<int16_t>(sum[j] + (key.Uniform(j) < yes ? 1 : -1));
  }
  return true;
}

void Release(std::span<const int32_t> sum, double sigma, double limit,
             RngKey key, std::span<int8_t> out) {
  for (size_t j = 0; j < out.size(); ++j) {
    // The noise comes once, on the whole sum, and before the threshold: what is
    // made of a private value afterwards costs nothing more.
    const double v = sum[j] + sigma * key.Gaussian(j);
    out[j] = static_cast<int8_t>(v > limit ? 1 : v < -limit ? -1 : 0);
  }
}

}  // namespace gossamer
