#include "topology/skewed_matching.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

constexpr int kAlone = -1;

std::vector<int> Counts(std::span<const int> sites) {
  std::vector<int> counts(1 + *std::ranges::max_element(sites));
  for (int site : sites) ++counts[site];
  return counts;
}

// Returns the largest skew s, at least 1, of a peer whose near partners have
// the share L = `near` of all, 0 < L < 1, so that the mean square of its sample
// is within the budget D:
//   s* = [B + sqrt(B^2 - 4 L^2 R^2)] / (2 L R),  R = 1 - L,
//   B = 1 + D - L^2 - R^2,
// at which (s L + R) (L / s + R) is 1 + D exactly.
absl::StatusOr<double> LargestSkew(double near, double budget) {
  // Negated, so that what is not a number is refused.
  if (!(budget >= 0) || !std::isfinite(budget)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a variance budget of %g is not possible: sampling without skew has 0, "
        "so take 0 or more, such as 1 for twice its variance",
        budget));
  }
  const double l = near, r = 1 - near;
  const double b = 1 + budget - l * l - r * r;
  // s = 1 is within every budget, so the root is real but for rounding.
  const double root = std::sqrt(std::max(0.0, b * b - 4 * l * r * l * r));
  return std::max(1.0, (b + root) / (2 * l * r));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SkewedMatching>> SkewedMatching::Create(
    std::vector<int> sites, double budget, uint64_t seed) {
  const auto m = static_cast<double>(sites.size());
  double kept = 0;
  bool skewed = false;
  for (int count : Counts(sites)) {
    // A peer without near peers has none to prefer.
    if (count < 2 || count == static_cast<int>(sites.size())) continue;
    const double near = (count - 1) / (m - 1);
    GOSSAMER_ASSIGN_OR_RETURN(const double skew, LargestSkew(near, budget));
    // The budget holds at every site: the least skewed decides for all, for a
    // pair has one probability.
    kept = std::max(kept, 1 / (skew * near + 1 - near));
    skewed = true;
  }
  return std::unique_ptr<SkewedMatching>(
      new SkewedMatching(std::move(sites), skewed ? kept : 1, seed));
}

SkewedMatching::SkewedMatching(std::vector<int> sites, double kept,
                               uint64_t seed)
    : sites_(std::move(sites)),
      site_count_(1 + *std::ranges::max_element(sites_)),
      kept_(kept),
      seed_(seed) {}

// A matching of all peers, as random-matching draws it, of which pairs at one
// site stay.  Pairs between the same two sites are taken two by two; two are
// kept together, or give up their four ends, which then pair with a free peer
// at their own site.  Two by two, so that an even number is free: with two
// sites of even size no peer ever rests.  A far pair's probability is exactly
// `kept_` times what it was, and no two pairs share a peer.
MixingRow SkewedMatching::Row(int rank, uint64_t round) const {
  const RngKey key = RngKey(seed_).Fold("skewed-matching").Fold(round);
  const std::vector<int> order = key.Permutation(size());
  std::map<std::pair<int, int>, int> far_pairs;  // so far, by sites
  std::vector<int> free(site_count_, kAlone);    // a peer waiting at each site
  std::vector<int> partner(sites_.size(), kAlone);
  const auto pair = [&partner](int a, int b) {
    partner[a] = b;
    partner[b] = a;
  };
  // At most one peer waits at a site: the next one that is released there
  // becomes its partner.
  const auto release = [&](int peer) {
    int& waiting = free[sites_[peer]];
    if (waiting == kAlone) {
      waiting = peer;
    } else {
      pair(peer, std::exchange(waiting, kAlone));
    }
  };
  // Every peer runs this loop over the whole fleet and keeps its own row, so
  // that both ends of a pair agree without talking.
  for (size_t i = 0; i + 1 < order.size(); i += 2) {
    const int a = order[i], b = order[i + 1];
    if (sites_[a] == sites_[b]) {
      pair(a, b);
      continue;
    }
    const std::pair<int, int> ends = std::minmax(sites_[a], sites_[b]);
    // The draw belongs to two far pairs at once, and depends on nothing but the
    // sites and their count so far.
    const int two = far_pairs[ends]++ / 2;
    if (key.Fold(ends.first).Fold(ends.second).Uniform(two) < kept_) {
      pair(a, b);
    } else {
      release(a);
      release(b);
    }
  }
  if (partner[rank] == kAlone) return {};
  return {{{.rank = partner[rank], .weight = 0.5}}};
}

// W is a projection, so E[W'W] = E[W].  A far pair has the probability y = kept
// times 1/(M-1), or 1/M where one peer rests, whatever the sizes of the sites,
// and a near pair more.  The slowest disagreement is the one between sites; I -
// E[W] has the eigenvalue M y / 2 on it.
std::optional<double> SkewedMatching::expected_contraction() const {
  if (size() == 1) return 0;
  const double m = size();
  return 1 - 0.5 * kept_ * (size() % 2 == 1 ? 1 : m / (m - 1));
}

}  // namespace gossamer
