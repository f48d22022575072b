// Distances between two sets of samples, from their features, in float64.
//
// Features are row-major [n, dimension].  This header knows nothing of images
// or networks.

#ifndef GOSSAMER_GAN_MODELS_EVALUATION_METRICS_H_
#define GOSSAMER_GAN_MODELS_EVALUATION_METRICS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/rng.h"

namespace gossamer {

// The features of a set of samples, a row each.
struct Features {
  size_t dimension = 0;
  std::vector<float> values;  // [n, dimension]
  size_t size() const { return dimension == 0 ? 0 : values.size() / dimension; }
  std::span<const float> row(size_t i) const {
    return std::span(values).subspan(i * dimension, dimension);
  }
};

// All of them: kInvalidArgument if the dimensions differ or there are too few
// samples, kDataLoss if a feature is not finite.

// |m1 - m2|^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2)), the Frechet distance of two
// Gaussians with the samples' means and covariances (Heusel et al., NeurIPS
// 2017).  At least two samples each.
absl::StatusOr<double> FrechetDistance(const Features& real,
                                       const Features& fake);

// Kernel distance: the unbiased squared MMD with kernel (x.y / d + 1)^3, mean
// over `subsets` random subsets of up to `subset_size` (Binkowski et al., ICLR
// 2018).
absl::StatusOr<double> KernelDistance(const Features& real,
                                      const Features& fake, int subsets,
                                      size_t subset_size, RngKey key);

// 2 E|x - y| - E|x - x'| - E|y - y'| (Szekely and Rizzo 2013): zero only for
// equal distributions.
absl::StatusOr<double> EnergyDistance(const Features& real,
                                      const Features& fake);

struct PrecisionRecall {
  double precision = 0, recall = 0;
};
// The part of each set that lies within the other's balls of the distance to
// the k-th neighbour (Kynkaanniemi et al., NeurIPS 2019).  More than k samples.
absl::StatusOr<PrecisionRecall> ComputePrecisionRecall(const Features& real,
                                                       const Features& fake,
                                                       int k = 3);

struct InceptionScore {
  double mean = 0, deviation = 0;
};
// exp(E KL(p(y|x) || p(y))) over `splits` parts, from logits (Salimans et al.,
// NeurIPS 2016).
absl::StatusOr<InceptionScore> ComputeInceptionScore(const Features& logits,
                                                     int splits = 10);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_EVALUATION_METRICS_H_
