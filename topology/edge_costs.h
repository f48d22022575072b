// What it costs each two peers to talk, as a symmetric matrix.
//
// Pure.  Knows nothing of what a cost is made of: latency, transfer, money.

#ifndef GOSSAMER_TOPOLOGY_EDGE_COSTS_H_
#define GOSSAMER_TOPOLOGY_EDGE_COSTS_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"

namespace gossamer {

// A view of size x size costs, row-major; the diagonal means nothing.
class EdgeCosts {
 public:
  EdgeCosts(int size, std::span<const double> values)
      : size_(size), values_(values) {}
  int size() const { return size_; }
  double operator()(int a, int b) const {
    return values_[static_cast<size_t>(a) * size_ + b];
  }
  // kInvalidArgument, with the place, unless there are as many as peers need
  // and all are finite, not negative and the same both ways.
  absl::Status Check() const;

 private:
  int size_;
  std::span<const double> values_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_EDGE_COSTS_H_
