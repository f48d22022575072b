// Which peers are at one site, as what talking costs between them tells.
//
// Pure.  Knows nothing of what a cost is made of, or of what sites are for.

#ifndef GOSSAMER_TOPOLOGY_SITE_CLUSTERS_H_
#define GOSSAMER_TOPOLOGY_SITE_CLUSTERS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

struct SiteClusters {
  // Of each rank, from 0 on, in the order in which sites first appear.  Empty:
  // the costs show no sites.
  std::vector<int> site;
  int sites = 0;
  // A site holds together by costs of at most `near`; every cost between two
  // sites is `far` or more.
  double near = 0;
  double far = 0;
};

// What is far costs at least so many times what is near.
inline constexpr double kApart = 3;

// Single linkage, cut at its widest gap: peers are at one site if a chain of
// costs up to a threshold joins them.  The thresholds at which chains join are
// the edges of a minimum spanning tree (Gower and Ross, Applied Statistics
// 1969), and of the intervals between one of them and the next the widest is
// taken.  No sites: fewer than two, nobody near anybody, or a gap below kApart.
//
// `costs` is size x size, row-major and symmetric; its diagonal means nothing.
// kInvalidArgument, with the place, unless costs are finite, not negative and
// the same both ways.  O(size^2).
absl::StatusOr<SiteClusters> FindSites(int size, std::span<const double> costs);

// "site-1:1-3,7 site-2:4-6", as mixing.sites takes them: rank r is peer r + 1.
std::string SitesText(const SiteClusters& clusters);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_SITE_CLUSTERS_H_
