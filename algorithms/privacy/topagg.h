// TopAgg: ternary votes on what would make an image look more real, summed
// exactly, blurred once, thresholded.
//
// Wang et al., "DataLens", CCS 2021, arXiv 2103.11109, algorithms 1 and 2.
// This header is pure and knows nothing of networks, teachers' data or
// transports.

#ifndef GOSSAMER_ALGORITHMS_PRIVACY_TOPAGG_H_
#define GOSSAMER_ALGORITHMS_PRIVACY_TOPAGG_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "algorithms/base/rng.h"

namespace gossamer {

// Votes on one coordinate that a 16-bit sum holds, with room to spare.
inline constexpr int kMaxVotes = 30000;
inline constexpr int kMaxBatch = 4096;

// Adds one teacher's vote on one image to `sum`: of the `top` coordinates of
// `gradient` that are largest (of equals the first), +1 with probability
// 1/2 + g_j / (2 b), else -1, b = min(max |g_j|, clip); 0 elsewhere.  Draw j of
// `key` decides coordinate j.  A gradient of zeros abstains, and so does one
// that is not finite, of which alone it returns false: to end a run for it
// would tell of one shard what no noise covers.
// kInvalidArgument: sizes that differ.
absl::StatusOr<bool> AddVote(std::span<const float> gradient, int top,
                             double clip, RngKey key, std::span<int16_t> sum);

// out_j = +1 if V_j > limit, -1 if V_j < -limit, else 0, V = sum + N(0,
// sigma^2), by draw j of `key`.  The only thing that leaves the teachers'
// side; everything that is made of it is as private.
void Release(std::span<const int32_t> sum, double sigma, double limit,
             RngKey key, std::span<int8_t> out);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_PRIVACY_TOPAGG_H_
