// The sites at which peers are near one another: a name per site, and the peers
// at it.
//
// This header knows nothing of distances between sites.

#ifndef GOSSAMER_TOPOLOGY_SITES_H_
#define GOSSAMER_TOPOLOGY_SITES_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"

namespace gossamer {

// The names of sites and the site of each peer that the configuration names.
class Sites {
 public:
  // "paris:1-8 sydney:9-16,20": names and ids of peers, which begin at 1,
  // separated by blanks.  kInvalidArgument gives the position (from 1) of what
  // is malformed or there twice; there are at least two sites.
  static absl::StatusOr<Sites> Parse(const std::string& text);

  // The number of the site, from 0 on, that each of `members` is at.  A peer
  // that is not named is far from all others, at a site of its own.
  std::vector<int> Of(std::span<const PeerId> members) const;
  bool Has(PeerId id) const { return site_of_.contains(id); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::map<PeerId, int> site_of_;
};

// 1 .. size: the members that a fleet begins with.
std::vector<PeerId> FoundingMembers(int size);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_SITES_H_
