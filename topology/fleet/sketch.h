// A few hundred numbers that keep the distances between long vectors.
//
// The count-sketch of kernels.h: every coordinate is added to one bucket with
// one sign, both from the seed.  It is linear, so the sketch of a difference is
// the difference of the sketches, and E of its squared norm is the squared
// norm, with a relative standard deviation of at most sqrt(2 / kSketchBuckets),
// 9 %. This header knows nothing of who sends it where.

#ifndef GOSSAMER_TOPOLOGY_FLEET_SKETCH_H_
#define GOSSAMER_TOPOLOGY_FLEET_SKETCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/base/parameter_layout.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

// kSketchBuckets sums of each player's parameters, one player after the other;
// x lies where the queue works, and the call waits for it.  Two sketches
// compare only if their seeds are the same.
std::vector<double> SketchPlayers(const DeviceQueue& queue,
                                  DeviceSpan<const float> x,
                                  const ParameterLayout& layout, uint64_t seed);

// 1/M sum_i ||x_i - mean||^2 of each player of M sketched vectors, estimated.
// All of the same length; 0 for fewer than two.
std::vector<double> ConsensusDistances(
    std::span<const std::vector<double>> sketches);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_SKETCH_H_
