#include "topology/fleet/sketch.h"

#include <cstddef>

#include "algorithms/base/rng.h"

namespace gossamer {

std::vector<double> SketchPlayers(const DeviceQueue& queue,
                                  DeviceSpan<const float> x,
                                  const ParameterLayout& layout,
                                  uint64_t seed) {
  std::vector<DeviceVector<double>> sums;
  for (size_t i = 0; i < layout.players().size(); ++i) {
    const auto [offset, size] = layout.extent(static_cast<Player>(i));
    sums.push_back(DeviceVector<double>::Unset(queue, SketchSumsOf(size),
                                               "sums of a sketch"));
    queue.Run(&DeviceKernels::sketch, x.subspan(offset, size),
              RngKey(seed + i).Fold("sketch").Bits(0), sums.back().span());
  }
  // All are under way before one is waited for.
  std::vector<double> sketches;
  for (DeviceVector<double>& of_player : sums) {
    const auto sketch =
        queue.ToHost(of_player.span().subspan(0, kSketchBuckets));
    sketches.insert(sketches.end(), sketch.begin(), sketch.end());
  }
  return sketches;
}

std::vector<double> ConsensusDistances(
    std::span<const std::vector<double>> sketches) {
  if (sketches.empty()) return {};
  const double m = static_cast<double>(sketches.size());
  std::vector<double> distances(sketches[0].size() / kSketchBuckets);
  for (size_t b = 0; b < sketches[0].size(); ++b) {
    double mean = 0;
    for (const std::vector<double>& s : sketches) mean += s[b];
    // Bucket by bucket: the sketch is linear, so the mean of the sketches is
    // the sketch of the mean.
    mean /= m;
    for (const std::vector<double>& s : sketches) {
      distances[b / kSketchBuckets] += (s[b] - mean) * (s[b] - mean) / m;
    }
  }
  return distances;
}

}  // namespace gossamer
