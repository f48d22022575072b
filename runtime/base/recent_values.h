// The last values of something that is measured every round, and their
// quantiles.
//
// This header knows nothing of what is measured.

#ifndef GOSSAMER_RUNTIME_BASE_RECENT_VALUES_H_
#define GOSSAMER_RUNTIME_BASE_RECENT_VALUES_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

namespace gossamer {

class RecentValues {
 public:
  // Keeps the last `max` of them.
  explicit RecentValues(size_t max) : max_(max) {}

  void Add(double value) {
    values_.push_back(value);
    if (values_.size() > max_) values_.pop_front();
  }
  void Clear() { values_.clear(); }
  size_t size() const { return values_.size(); }

  // The value below which a share `q` in [0, 1) of them lies; 0 without any.
  double Quantile(double q) const {
    if (values_.empty()) return 0;
    std::vector<double> sorted(values_.begin(), values_.end());
    const auto at = sorted.begin() +
                    static_cast<ptrdiff_t>(q * static_cast<double>(size()));
    std::nth_element(sorted.begin(), at, sorted.end());
    return *at;
  }

  // The harmonic mean of the `newest` of them, as of rates over equal ways; 0
  // without any.
  double HarmonicMean(size_t newest) const {
    const size_t count = std::min(newest, size());
    double inverses = 0;
    for (size_t i = size() - count; i < size(); ++i) inverses += 1 / values_[i];
    return count == 0 ? 0 : static_cast<double>(count) / inverses;
  }

 private:
  size_t max_;
  std::deque<double> values_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_RECENT_VALUES_H_
