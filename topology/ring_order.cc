#include "topology/ring_order.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "topology/edge_costs.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kStarts = 8;  // of the search that is not exact

RingOrder Describe(const EdgeCosts& costs, std::vector<int> order, bool exact) {
  const int m = costs.size();
  std::rotate(order.begin(), std::ranges::find(order, 0), order.end());
  if (order[1] > order.back()) std::reverse(order.begin() + 1, order.end());
  RingOrder ring{.order = std::move(order), .exact = exact};
  const int edges = m == 2 ? 1 : m;
  for (int i = 0; i < edges; ++i) {
    const double c = costs(ring.order[i], ring.order[(i + 1) % m]);
    ring.largest = std::max(ring.largest, c);
    ring.sum += c;
  }
  return ring;
}

// Held and Karp: best[S][v] is the cheapest path from peer 0 through the peers
// of S that ends at v in S; `join` adds an edge to a path.  Peer v is bit v
// - 1.
template <typename Join>
std::vector<int> CheapestRing(const EdgeCosts& costs, const Join& join) {
  const int n = costs.size() - 1;
  const uint32_t all = (1u << n) - 1;
  std::vector<double> best(static_cast<size_t>(all + 1) * n, kNever);
  std::vector<int8_t> from(best.size(), -1);
  const auto at = [n](uint32_t set, int v) {
    return static_cast<size_t>(set) * n + v;
  };
  for (int v = 0; v < n; ++v) best[at(1u << v, v)] = join(0, costs(0, v + 1));
  for (uint32_t set = 1; set <= all; ++set) {
    for (int v = 0; v < n; ++v) {
      const double path = best[at(set, v)];
      if (path == kNever) continue;
      for (int w = 0; w < n; ++w) {
        if (set >> w & 1) continue;
        const size_t next = at(set | 1u << w, w);
        const double longer = join(path, costs(v + 1, w + 1));
        if (longer >= best[next]) continue;
        best[next] = longer;
        from[next] = static_cast<int8_t>(v);
      }
    }
  }
  int last = 0;
  double least = kNever;
  for (int v = 0; v < n; ++v) {
    const double ring = join(best[at(all, v)], costs(v + 1, 0));
    if (ring < least) {
      least = ring;
      last = v;
    }
  }
  std::vector<int> order = {0};
  for (uint32_t set = all; last >= 0;) {
    order.push_back(last + 1);
    const int before = from[at(set, last)];
    set &= ~(1u << last);
    last = before;
  }
  return order;
}

RingOrder Exact(const EdgeCosts& costs) {
  const auto largest = [](double path, double edge) {
    return std::max(path, edge);
  };
  const double limit =
      Describe(costs, CheapestRing(costs, largest), true).largest;
  const auto sum = [limit](double path, double edge) {
    return edge > limit ? kNever : path + edge;
  };
  return Describe(costs, CheapestRing(costs, sum), true);
}

// A search in rings that may have edges over `limit`, at a price above any sum.
class LocalSearch {
 public:
  LocalSearch(const EdgeCosts& costs, double limit)
      : costs_(costs), limit_(limit), size_(costs.size()) {
    for (int i = 0; i < size_; ++i) {
      for (int j = 0; j < i; ++j) penalty_ += costs(i, j);
    }
    penalty_ = 2 * penalty_ + 1;
  }

  std::vector<int> From(int start) {
    Greedy(start);
    while (Reverse() || Move()) {
    }
    return order_;
  }

 private:
  double Cost(int a, int b) const {
    const double c = costs_(a, b);
    return c > limit_ ? c + penalty_ : c;
  }
  int At(int place) const { return order_[place % size_]; }
  // Rounding must not make two rings better than each other.
  double Little() const { return 1e-12 * penalty_; }

  void Greedy(int start) {
    order_ = {start};
    std::vector<bool> taken(size_);
    taken[start] = true;
    while (static_cast<int>(order_.size()) < size_) {
      int next = -1;
      for (int v = 0; v < size_; ++v) {
        if (taken[v]) continue;
        if (next < 0 || Cost(order_.back(), v) < Cost(order_.back(), next)) {
          next = v;
        }
      }
      taken[next] = true;
      order_.push_back(next);
    }
  }

  // 2-opt: turns a part of the ring around; true if anything became better.
  bool Reverse() {
    bool better = false;
    for (int i = 0; i < size_ - 1; ++i) {
      for (int j = i + 2; j < size_; ++j) {
        if (i == 0 && j == size_ - 1) continue;
        const int a = At(i), b = At(i + 1), c = At(j), d = At(j + 1);
        if (Cost(a, c) + Cost(b, d) >= Cost(a, b) + Cost(c, d) - Little()) {
          continue;
        }
        std::reverse(order_.begin() + i + 1, order_.begin() + j + 1);
        better = true;
      }
    }
    return better;
  }

  // Takes one peer out and puts it where it costs least.
  bool Move() {
    for (int i = 0; i < size_; ++i) {
      const int v = At(i), before = At(i + size_ - 1), after = At(i + 1);
      const double saved =
          Cost(before, v) + Cost(v, after) - Cost(before, after);
      for (int j = i + 1; j < i + size_ - 1; ++j) {
        const int a = At(j), b = At(j + 1);
        if (Cost(a, v) + Cost(v, b) - Cost(a, b) >= saved - Little()) continue;
        order_.erase(order_.begin() + i);
        order_.insert(std::ranges::find(order_, a) + 1, v);
        return true;
      }
    }
    return false;
  }

  const EdgeCosts& costs_;
  const double limit_;
  const int size_;
  double penalty_ = 0;
  std::vector<int> order_;
};

RingOrder Searched(const EdgeCosts& costs, double limit) {
  RingOrder best;
  const int m = costs.size();
  for (int k = 0; k < std::min(m, kStarts); ++k) {
    const int start = k * m / std::min(m, kStarts);
    RingOrder ring =
        Describe(costs, LocalSearch(costs, limit).From(start), false);
    if (best.order.empty() ||
        std::pair(ring.largest, ring.sum) < std::pair(best.largest, best.sum)) {
      best = std::move(ring);
    }
  }
  return best;
}

// Falling limits, by bisection over the costs there are.
RingOrder Searched(const EdgeCosts& costs) {
  std::vector<double> limits;
  for (int i = 0; i < costs.size(); ++i) {
    for (int j = 0; j < i; ++j) limits.push_back(costs(i, j));
  }
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  RingOrder best = Searched(costs, limits.back());
  size_t low = 0;
  for (size_t high = limits.size() - 1; low < high;) {
    const size_t middle = (low + high) / 2;
    RingOrder ring = Searched(costs, limits[middle]);
    const bool kept = ring.largest <= limits[middle];
    if (std::pair(ring.largest, ring.sum) < std::pair(best.largest, best.sum)) {
      best = std::move(ring);
    }
    if (kept) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<RingOrder> BestRingOrder(int size,
                                        std::span<const double> values) {
  const EdgeCosts costs(size, values);
  if (size < 2 || size > kMaxPeers) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ring has 2 to ", kMaxPeers, " peers, not ", size));
  }
  const absl::Status wrong = costs.Check();
  if (!wrong.ok()) return wrong;
  return size <= kExactRingPeers ? Exact(costs) : Searched(costs);
}

std::string RingEdges(std::span<const int> order) {
  std::string out;
  const size_t edges = order.size() == 2 ? 1 : order.size();
  for (size_t i = 0; i < edges; ++i) {
    absl::StrAppend(&out, i > 0 ? " " : "", order[i], "-",
                    order[(i + 1) % order.size()]);
  }
  return out;
}

}  // namespace gossamer
