// The last values of something that is measured every round, and their
// quantiles.
//
// Knows nothing of what is measured.

#ifndef GOSSAMER_RUNTIME_BASE_RECENT_VALUES_H_
#define GOSSAMER_RUNTIME_BASE_RECENT_VALUES_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

namespace gossamer {

class RecentValues {
 public:
  static constexpr size_t kMax = 32;

  void Add(double value) {
    values_.push_back(value);
    if (values_.size() > kMax) values_.pop_front();
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

 private:
  std::deque<double> values_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_RECENT_VALUES_H_
