#include "tests/simulation/balance.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace gossamer::simulation {
namespace {

constexpr double kRounding = 1e-4;

double Length(const auto& values) {
  double squares = 0;
  for (const double v : values) squares += v * v;
  return std::sqrt(squares);
}

}  // namespace

std::string FindImbalance(
    const std::vector<std::span<const float>>& brought,
    const std::vector<std::span<const float>>& parameters) {
  std::vector<double> sum(brought[0].size());
  double rounded = 0;
  for (size_t peer = 0; peer < brought.size(); ++peer) {
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += brought[peer][k];
    rounded += Length(brought[peer]) + Length(parameters[peer]);
  }
  const double length = Length(sum);
  if (length <= kRounding * rounded) return "";
  return absl::StrFormat(
      "duals or tracked gradients of all peers come to %.3g, beside %.3g of "
      "all: the rest pulls the solution away",
      length, rounded);
}

}  // namespace gossamer::simulation
