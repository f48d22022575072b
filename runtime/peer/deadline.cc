#include "runtime/peer/deadline.h"

#include <algorithm>
#include <vector>

namespace gossamer {
namespace {

constexpr size_t kFirstExchanges = 8;
constexpr size_t kHistory = 32;

absl::Duration Median(std::vector<absl::Duration> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

}  // namespace

void DeadlineEstimator::Record(absl::Duration arrival) {
  arrivals_.push_back(arrival);
  if (arrivals_.size() > kHistory) arrivals_.pop_front();
}

absl::Duration DeadlineEstimator::Typical() const {
  if (arrivals_.empty()) return absl::ZeroDuration();
  return Median({arrivals_.begin(), arrivals_.end()});
}

absl::Duration DeadlineEstimator::Limit(absl::Duration round,
                                        absl::Duration possible) const {
  if (policy_.kind == DeadlinePolicy::Kind::kFixed) {
    return std::max(policy_.fixed, possible);
  }
  if (policy_.kind == DeadlinePolicy::Kind::kNone ||
      arrivals_.size() < kFirstExchanges) {
    return absl::InfiniteDuration();
  }
  const std::vector<absl::Duration> all(arrivals_.begin(), arrivals_.end());
  const absl::Duration median = Typical();
  std::vector<absl::Duration> deviations;
  for (absl::Duration d : all)
    deviations.push_back(absl::AbsDuration(d - median));
  const absl::Duration transfer = *std::min_element(all.begin(), all.end());
  const absl::Duration least = std::max(absl::Milliseconds(20), round / 4);
  const absl::Duration most = std::max(absl::Seconds(1), round / 2) + transfer;
  return std::min(std::max(median + 4 * Median(deviations), least), most);
}

}  // namespace gossamer
