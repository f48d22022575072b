#include "topology/site_clusters.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "topology/edge_costs.h"

namespace gossamer {
namespace {

// The costs of a minimum spanning tree's edges, rising (Prim 1957).
std::vector<double> TreeCosts(int size, const EdgeCosts& costs) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  std::vector<double> nearest(static_cast<size_t>(size), kFar), tree;
  std::vector<bool> in(static_cast<size_t>(size));
  int last = 0;
  for (int n = 1; n < size; ++n) {
    in[last] = true;
    int next = -1;
    for (int r = 0; r < size; ++r) {
      if (in[r]) continue;
      nearest[r] = std::min(nearest[r], costs(last, r));
      if (next < 0 || nearest[r] < nearest[next]) next = r;
    }
    tree.push_back(nearest[next]);
    last = next;
  }
  std::ranges::sort(tree);
  return tree;
}

}  // namespace

absl::StatusOr<SiteClusters> FindSites(int size,
                                       std::span<const double> values) {
  const EdgeCosts costs(size, values);
  GOSSAMER_RETURN_IF_ERROR(costs.Check());
  const std::vector<double> tree = TreeCosts(size, costs);
  size_t cut = 0;
  for (size_t i = 1; i < tree.size(); ++i) {
    const double widest = cut > 0 ? tree[cut] - tree[cut - 1] : 0;
    if (tree[i] - tree[i - 1] > widest) cut = i;
  }
  SiteClusters found;
  if (cut == 0 || tree[cut] < kApart * tree[cut - 1]) return found;
  found.near = tree[cut - 1];
  found.far = tree[cut];
  found.site.assign(static_cast<size_t>(size), -1);
  for (int first = 0; first < size; ++first) {
    if (found.site[first] >= 0) continue;
    std::vector<int> reached = {first};
    found.site[first] = found.sites;
    for (size_t i = 0; i < reached.size(); ++i) {
      for (int r = 0; r < size; ++r) {
        if (found.site[r] >= 0 || costs(reached[i], r) > found.near) continue;
        found.site[r] = found.sites;
        reached.push_back(r);
      }
    }
    ++found.sites;
  }
  return found;
}

std::string SitesText(const SiteClusters& clusters) {
  std::string text;
  const int size = static_cast<int>(clusters.site.size());
  for (int site = 0; site < clusters.sites; ++site) {
    absl::StrAppend(&text, site == 0 ? "" : " ", "site-", site + 1, ":");
    const char* comma = "";
    for (int r = 0; r < size; ++r) {
      if (clusters.site[r] != site) continue;
      const int first = r;
      while (r + 1 < size && clusters.site[r + 1] == site) ++r;
      absl::StrAppend(&text, comma, first + 1);
      if (r > first) absl::StrAppend(&text, "-", r + 1);
      comma = ",";
    }
  }
  return text;
}

}  // namespace gossamer
