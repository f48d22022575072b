#include "topology/fleet/donors.h"

#include <algorithm>
#include <cstddef>

#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

std::vector<Member> At(
    const absl::flat_hash_map<PeerId, std::vector<Member>>& map, PeerId id) {
  const auto at = map.find(id);
  return at == map.end() ? std::vector<Member>() : at->second;
}

}  // namespace

std::vector<Member> Donors::Able(absl::Time now) const {
  std::vector<Member> able;
  // A member that leaves gives them, too, if no other one has any.
  for (const Standing standing : {Standing::kMember, Standing::kLeaving}) {
    if (!able.empty()) break;
    for (const MemberRecord& m : roster_.members()) {
      if (m.standing == standing && m.in_view && !m.finished &&
          roster_.HasLease(m, now)) {
        able.push_back({.id = m.id, .address = m.address});
      }
    }
  }
  return able;
}

void Donors::Choose(const std::vector<PeerId>& joining, absl::Time now) {
  Reset();
  std::vector<const MemberRecord*> needy;
  for (const MemberRecord& m : roster_.members()) {
    // Parameters of a peer that cannot be admitted yet would only grow old, and
    // it would take another one's place.
    if (m.needs_parameters && !m.in_view &&
        (IsMemberOrLeaving(m) || std::ranges::binary_search(joining, m.id))) {
      needy.push_back(&m);
    }
  }
  if (needy.empty()) return;
  const std::vector<Member> able = Able(now);
  if (able.empty()) return;
  for (const MemberRecord* m : needy) {
    const size_t most = std::min<size_t>(kMaxDonors, able.size());
    // Different joiners ask different members.
    for (size_t i = 0; i < most; ++i) {
      const Member& donor = able[(m->id.value + i) % able.size()];
      donors_[m->id].push_back(donor);
      std::vector<Member>& served = joiners_[donor.id];
      if (!roster_.live(m->id).ready && roster_.HasLease(*m, now) &&
          served.size() < kMaxJoiners) {
        served.push_back({.id = m->id, .address = m->address});
      }
    }
  }
}

std::vector<Member> Donors::Of(PeerId joiner) const {
  return At(donors_, joiner);
}

std::vector<Member> Donors::JoinersOf(PeerId donor) const {
  return At(joiners_, donor);
}

}  // namespace gossamer
