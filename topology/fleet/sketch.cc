#include "topology/fleet/sketch.h"

#include <array>
#include <cstddef>

#include "algorithms/base/rng.h"

namespace gossamer {
namespace {

// A coordinate needs 8 bits of bucket and one of sign: four share a draw.
constexpr size_t kPerDraw = 4;
constexpr int kBitsEach = 16;
static_assert(kSketchBuckets == 256);

}  // namespace

std::vector<double> CountSketch(std::span<const float> x, uint64_t seed) {
  const RngKey key = RngKey(seed).Fold("sketch");
  // The sign picks one of two halves, so that adding needs no branch and no
  // multiplication; the difference of the halves is the sketch.
  std::array<double, 2 * kSketchBuckets> sums = {};
  const size_t whole = x.size() / kPerDraw * kPerDraw;
  size_t i = 0;
  for (uint64_t draw = 0; i < whole; ++draw) {
    uint64_t bits = key.Bits(draw);
    for (size_t k = 0; k < kPerDraw; ++k, ++i, bits >>= kBitsEach) {
      sums[bits % sums.size()] += x[i];
    }
  }
  // The rest of fewer than kPerDraw coordinates takes the next draw, so that a
  // coordinate's bucket depends on its place alone.
  uint64_t bits = key.Bits(whole / kPerDraw);
  for (; i < x.size(); ++i, bits >>= kBitsEach) {
    sums[bits % sums.size()] += x[i];
  }
  std::vector<double> sketch(kSketchBuckets);
  for (size_t b = 0; b < sketch.size(); ++b) {
    sketch[b] = sums[b] - sums[b + kSketchBuckets];
  }
  return sketch;
}

std::vector<double> SketchPlayers(std::span<const float> x,
                                  const ParameterLayout& layout,
                                  uint64_t seed) {
  std::vector<double> sketches;
  for (size_t i = 0; i < layout.players().size(); ++i) {
    const auto [offset, size] = layout.extent(static_cast<Player>(i));
    const std::vector<double> of_player =
        CountSketch(x.subspan(offset, size), seed + i);
    sketches.insert(sketches.end(), of_player.begin(), of_player.end());
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
