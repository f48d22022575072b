#include "topology/fleet/donors.h"

#include <algorithm>
#include <cstddef>

#include "topology/fleet/protocol.h"

namespace gossamer {

std::vector<Member> Donors::Of(const MemberRecord& joiner,
                               absl::Time now) const {
  std::vector<Member> able;
  // A member that leaves gives them, too, if no other one has any.
  for (const Standing standing : {Standing::kMember, Standing::kLeaving}) {
    if (!able.empty()) break;
    for (const MemberRecord& m : roster_.members()) {
      if (m.standing == standing && m.in_view && !m.finished &&
          m.id != joiner.id && roster_.HasLease(m, now)) {
        able.push_back({.id = m.id, .address = m.address});
      }
    }
  }
  if (able.empty()) return able;
  // Different joiners ask different members.
  std::rotate(
      able.begin(),
      able.begin() + static_cast<ptrdiff_t>(joiner.id.value % able.size()),
      able.end());
  if (able.size() > kMaxDonors) able.resize(kMaxDonors);
  return able;
}

std::vector<Member> Donors::JoinersOf(PeerId donor,
                                      const std::vector<PeerId>& joining,
                                      absl::Time now) const {
  std::vector<Member> joiners;
  for (const MemberRecord& m : roster_.members()) {
    // A peer that has them and cannot be admitted yet takes no other's place.
    if (!m.needs_parameters || m.in_view || roster_.live(m.id).ready ||
        !roster_.HasLease(m, now)) {
      continue;
    }
    if (m.standing != Standing::kMember &&
        !std::ranges::binary_search(joining, m.id)) {
      continue;
    }
    // The donors of a joiner are a function of the roster, so nothing has to be
    // kept to name each side to the other.
    const bool asked = std::ranges::any_of(
        Of(m, now), [donor](const Member& d) { return d.id == donor; });
    if (asked && joiners.size() < kMaxJoiners) {
      joiners.push_back({.id = m.id, .address = m.address});
    }
  }
  return joiners;
}

}  // namespace gossamer
