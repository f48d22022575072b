// Pairs drawn every round, near peers often and far ones rarely.
//
// A schedule like random-matching, with the share of pairs between sites cut to
// what a variance budget allows.  This header knows sites by their number;
// nothing of what they cost.
//
// Jiang and Rumi, arXiv 2101.07706, prefer near neighbours so in graph networks
// and weigh what is drawn by 1/q, which leaves no bias.  From base
// probabilities p_j, which add up to L near and R = 1 - L far, a skew s makes
//   q_j = s p_j / Z near,  p_j / Z far,  Z = s L + R.
// With equal disagreement between all pairs the mean square of such a sample is
// Z (L / s + R) times what it is without skew.

#ifndef GOSSAMER_TOPOLOGY_SKEWED_MATCHING_H_
#define GOSSAMER_TOPOLOGY_SKEWED_MATCHING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

// Random-matching of which a share of the far pairs gives way to near ones.
class SkewedMatching : public MixingSchedule {
 public:
  // `sites`: the number of each rank's site, 0 or more.  `budget`: how much
  // more mean square a sample of a partner may have than without skew, with
  // equal disagreement between all pairs.  kInvalidArgument: such a budget
  // cannot be.
  static absl::StatusOr<std::unique_ptr<SkewedMatching>> Create(
      std::vector<int> sites, double budget, uint64_t seed);

  int size() const override { return static_cast<int>(sites_.size()); }
  bool is_static() const override { return size() <= 2; }
  MixingRow Row(int rank, uint64_t round) const override;
  std::optional<double> expected_contraction() const override;

  // The probability that a pair at two sites that random-matching would draw is
  // kept: 1 / Z, so that far pairs have the probability p_j / Z.
  double kept() const { return kept_; }

 private:
  SkewedMatching(std::vector<int> sites, double kept, uint64_t seed);

  std::vector<int> sites_;
  int site_count_ = 0;
  double kept_ = 1;
  uint64_t seed_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_SKEWED_MATCHING_H_
