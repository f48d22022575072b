#include "topology/service/simulation/end_checks.h"

#include <algorithm>
#include <cmath>

#include "topology/mixing_matrix.h"

namespace gossamer::simulation {

double ConsensusDistance(const std::vector<std::span<const float>>& all) {
  std::vector<double> mean(all[0].size());
  for (const auto& x : all) {
    for (size_t k = 0; k < mean.size(); ++k) {
      mean[k] += x[k] / static_cast<double>(all.size());
    }
  }
  double sum = 0;
  for (const auto& x : all) {
    for (size_t k = 0; k < mean.size(); ++k) {
      sum += (x[k] - mean[k]) * (x[k] - mean[k]);
    }
  }
  return sum / static_cast<double>(all.size());
}

double DistanceBound(const Scenario& s, double before,
                     const std::vector<std::span<const float>>& all) {
  double squares = 0;
  for (const auto& x : all) {
    for (const float v : x) squares += static_cast<double>(v) * v;
  }
  squares /= static_cast<double>(all.size());
  return squares + before;  // calibrated below
}

}  // namespace gossamer::simulation
