// The data of each peer: splits of labelled examples among peers.
//
// Pure functions of their arguments, so that every peer computes the same split
// and keeps its own part.  This header knows nothing of images or files.

#ifndef GOSSAMER_GAN_MODELS_DATA_SHARDS_H_
#define GOSSAMER_GAN_MODELS_DATA_SHARDS_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "algorithms/base/rng.h"

namespace gossamer {

// Indices of each peer's examples; every index of [0, size) is in exactly one
// shard.

// A random split into parts whose sizes differ by at most one.
std::vector<std::vector<int>> IidShards(int size, int peers, RngKey key);

// Label skew: of each label's examples, the peers get parts drawn from
// Dirichlet(alpha, ..., alpha) (Hsu, Qi, Brown 2019); the smaller alpha, the
// more skewed.  Draws again until every peer has an example.
// kInvalidArgument: alpha not positive, or no such draw in 100.
absl::StatusOr<std::vector<std::vector<int>>> DirichletShards(
    std::span<const int> labels, int peers, double alpha, RngKey key);

// The examples of peer `rank`: a random split into equal parts, or with `alpha`
// above 0 by the labels of all `size` examples.  kInvalidArgument: those of
// DirichletShards, or fewer examples than peers, with `source` in the message.
absl::StatusOr<std::vector<int>> ShardOf(int size, std::span<const int> labels,
                                         double alpha, int rank, int peers,
                                         absl::string_view source, RngKey key);

// One draw from Dirichlet(alpha, ..., alpha) of n parts.
std::vector<double> SampleDirichlet(int n, double alpha, RngKey key);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_SHARDS_H_
