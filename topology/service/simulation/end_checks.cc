#include "topology/service/simulation/end_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/codec/codec.h"
#include "topology/mixing_matrix.h"
#include "topology/view.h"

namespace gossamer::simulation {
namespace {

// Of the mean square of all parameters.
constexpr double kFloor = 1e-4;
constexpr double kFloorWithDeadlines = 5e-3;
// What is quantized by itself, not as a difference to a replica, keeps an error
// of the values' size.
constexpr double kFloorOfQuantized = 0.3;
// Of which an exchange of `masked` averages one.
constexpr double kMaskedValues = 16;

// Of the squared distance, per round, in the worst direction:
// ‖(1 − γ)x + γWx‖² <= (1 − γ)‖x‖² + γ‖Wx‖².
double FactorOf(const Scenario& s, const Codec& codec) {
  const auto schedule = *MakeSchedule(s.schedule, s.peers, s.seed);
  const int h = s.overlap == kAutoOverlap ? kMaxOverlap : s.overlap;
  double gamma = codec.gamma();
  if (codec.name() == "masked") gamma /= kMaskedValues;
  if (h > 1) gamma = std::min(gamma, StableStepSize(*schedule, h - 1) * 2 / 3);
  const double mixed = ExpectedContraction(*schedule).factor;
  return 1 - gamma * (1 - mixed);
}

}  // namespace

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

// Payloads of small models travel in bf16, which a stateless codec makes the
// floor.  Where peers wait for each other, mixing contracts as its matrices say
// (the root of it: momentum, delay and rounds apart take their share).  Where
// they do not, an edge between a slow and a fast one mixes only now and then,
// and several corrections of it at once go too far, once; clipped, peers that
// are far apart come closer by steps of one length; quantized, by what a codec
// keeps of a difference.
double DistanceBound(const Scenario& s, const Codec& codec, double before,
                     const std::vector<std::span<const float>>& all) {
  double squares = 0;
  for (const auto& x : all) {
    for (const float v : x) squares += static_cast<double>(v) * v;
  }
  squares /= static_cast<double>(all.size());
  // Its dual goes on pushing while the game stands still: it has to stay
  // finite, and that is all.
  if (s.optimizer.name == "cold") return std::numeric_limits<double>::max();
  if (s.quantized && codec.memory() != EdgeMemory::kReplicas) {
    return 2 * before + kFloorOfQuantized * squares;
  }
  if (s.quantized || s.deadline.kind != DeadlinePolicy::Kind::kNone ||
      s.clip_radius > 0) {
    return 2 * before + kFloorWithDeadlines * squares;
  }
  const double mixed =
      std::pow(FactorOf(s, codec), static_cast<double>(s.calm_rounds) / 2);
  return 10 * before * mixed + kFloor * squares;
}

}  // namespace gossamer::simulation
