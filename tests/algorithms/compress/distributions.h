// Vectors that quantizers find easy and hard.

#ifndef GOSSAMER_TESTS_ALGORITHMS_COMPRESS_DISTRIBUTIONS_H_
#define GOSSAMER_TESTS_ALGORITHMS_COMPRESS_DISTRIBUTIONS_H_

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "tests/algorithms/compress/codec_testing.h"

namespace gossamer {

// Each with its name.
inline std::vector<std::pair<std::string, std::vector<float>>> Distributions(
    size_t n) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  const RngKey key(2);
  std::vector<float> gaussian = Gaussian("gaussian", n), laplace(n), spike(n),
                     tiny(n), denormal(n), huge(n), mixed = gaussian;
  for (size_t i = 0; i < n; ++i) {
    const double u = key.Uniform(i) - 0.5;
    laplace[i] = static_cast<float>(
        std::copysign(-std::log(1 - 2 * std::abs(u) + 1e-12), u));
    tiny[i] = gaussian[i] * 1e-30f;
    denormal[i] = gaussian[i] * 1e-40f;
    huge[i] = gaussian[i] > 0 ? kHuge : -kHuge;
    mixed[i] = gaussian[i] *
               static_cast<float>(std::pow(10, 60 * key.Uniform(i / 128) - 30));
  }
  spike[n / 2] = -3;
  spike[7] = 1e-3f;
  return {{"gaussian", gaussian}, {"laplace", laplace},
          {"spike", spike},       {"zero", std::vector<float>(n)},
          {"tiny", tiny},         {"denormal", denormal},
          {"huge", huge},         {"mixed", mixed}};
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_COMPRESS_DISTRIBUTIONS_H_
