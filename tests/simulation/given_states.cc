#include "tests/simulation/given_states.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_format.h"

namespace gossamer::simulation {

void GivenStates::Give(std::span<const float> x) {
  if (bounds_.empty()) {
    for (const float v : x) bounds_.emplace_back(v, v);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    auto& [low, high] = bounds_[i];
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
}

std::string GivenStates::Check(std::span<const float> x) const {
  for (size_t i = 0; i < x.size(); ++i) {
    const auto& [low, high] = bounds_.at(i);
    // The average is rounded.
    const float slack = 1e-5f * std::max(std::abs(low), std::abs(high));
    if (x[i] >= low - slack && x[i] <= high + slack) continue;
    return absl::StrFormat(
        "got %g as parameter %d of members that gave %g to %g", x[i], i, low,
        high);
  }
  return "";
}

}  // namespace gossamer::simulation
