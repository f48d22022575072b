#include "topology/edge_costs.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gossamer {

absl::Status EdgeCosts::Check() const {
  const int m = size_;
  if (m < 1 || values_.size() != static_cast<size_t>(m) * m) {
    return absl::InvalidArgumentError(
        absl::StrCat(m, " peers have ", m * m, " costs, but ", values_.size(),
                     " are given"));
  }
  const EdgeCosts& costs = *this;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < m; ++j) {
      if (i == j) continue;
      if (!std::isfinite(costs(i, j)) || costs(i, j) < 0) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "the cost from %d to %d is %g; it must be a number, 0 or more", i,
            j, costs(i, j)));
      }
      if (costs(i, j) != costs(j, i)) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "from %d to %d costs %g, but back %g; an edge has one cost", i, j,
            costs(i, j), costs(j, i)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace gossamer
