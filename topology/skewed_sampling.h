// Sampling that prefers what is cheap to reach, without bias: near terms are
// drawn more often than far ones, and count for less when they are.
//
// Jiang and Rumi, arXiv 2101.07706, for neighbours in graph networks; the
// closed form of the skew is ours.  A sum over j of w_j h_j is estimated by one
// term: j is drawn with probability q_j and gives (w_j / q_j) h_j.  From base
// probabilities p_j, which add up to L near and R = 1 - L far, a skew s makes
//   q_j = s p_j / Z near,  p_j / Z far,  Z = s L + R.
// With A_L and A_R the sums of w_j^2 |h_j|^2 / p_j near and far, A = A_L + A_R,
// the estimate's mean square is Z (A_L / s + A_R); without skew it is A.
//
// Pure; knows nothing of peers, links or rounds.

#ifndef GOSSAMER_TOPOLOGY_SKEWED_SAMPLING_H_
#define GOSSAMER_TOPOLOGY_SKEWED_SAMPLING_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

// The quantities on which the largest skew within a budget depends; the symbols
// are above.
struct SkewMoments {
  double near_share = 0.5;  // L, in (0, 1)
  double near_square = 1;   // A_L, 0 or more
  double far_square = 1;    // A_R, above 0
};

// Z (A_L / s + A_R) of a skew s > 0.
double MeanSquare(const SkewMoments& m, double skew);

// The largest skew whose mean square is at most (1 + budget) A, at least 1:
//   s* = [B + sqrt(B^2 - 4 L R A_L A_R)] / (2 L A_R),
//   B = (1 + budget) A - L A_L - R A_R,
// at which it is (1 + budget) A exactly.  kInvalidArgument unless `budget` is 0
// or more and finite and the moments are as said there.
absl::StatusOr<double> LargestSkew(const SkewMoments& m, double budget);

// The share of far draws, R / (s L + R).
double FarShare(double near_share, double skew);

// A distribution over terms, with the factor that keeps an estimate of their
// sum without bias.
class SkewedSampling {
 public:
  // `base` adds up to one; `near` is as long.  kInvalidArgument unless every
  // probability is above 0, both kinds are there and skew is 1 or more.
  static absl::StatusOr<SkewedSampling> Create(std::span<const double> base,
                                               const std::vector<bool>& near,
                                               double skew);

  // The term that `u`, uniform in [0, 1), draws.
  int Draw(double u) const;
  double probability(int j) const { return q_[static_cast<size_t>(j)]; }
  // The factor on term j of weight w_j when it is drawn.
  double Factor(int j, double weight) const { return weight / probability(j); }

 private:
  std::vector<double> q_;
  std::vector<double> cumulative_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_SKEWED_SAMPLING_H_
