// Who is let into a Fleet: joining, return, and what those outside are told.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/fleet.h"
#include "topology/fleet/protocol.h"
#include "topology/graph.h"
#include "topology/mixing_matrix.h"
#include "topology/mixing_schedule.h"

namespace gossamer {
namespace {

// Records that are kept of peers that are in no view.
constexpr size_t kMaxRecords = 2 * kMaxPeers;

// Of one that comes back alone: what it saved beyond all others is of a past
// that they have given up, and could not be removed then.  0: none.
uint64_t NewestUpTo(uint64_t limit, const std::vector<uint64_t>& rounds) {
  uint64_t newest = 0;
  for (const uint64_t round : rounds) {
    if (round <= limit) newest = std::max(newest, round);
  }
  return newest;
}

}  // namespace

int Fleet::registered() const {
  return static_cast<int>(
      std::count_if(record_.members.begin(), record_.members.end(),
                    [](const MemberRecord& m) { return OfTheFleet(m); }));
}

absl::Status Fleet::CheckRegistration(const Registration& r) const {
  if (!kControlVersions.Agree(r.versions)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the peer speaks control protocol %s, the service %s; install releases "
        "that have one in common",
        r.versions.Text(), kControlVersions.Text()));
  }
  if (r.run_id != options_.run_id) {
    return absl::FailedPreconditionError(
        absl::StrFormat("this service runs \"%s\", not \"%s\"; check --run and "
                        "the service's address",
                        options_.run_id, r.run_id));
  }
  if (r.boot_id == 0 || r.address.empty() ||
      r.address.size() > kMaxAddressBytes ||
      r.checkpoint_rounds.size() > kMaxCheckpointRounds) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "register: needs a boot id, an address of 1 to %d characters and at "
        "most %d checkpoint rounds",
        kMaxAddressBytes, kMaxCheckpointRounds));
  }
  for (uint64_t round : r.checkpoint_rounds) {
    if (round > kMaxRound) {
      return absl::InvalidArgumentError(absl::StrCat(
          "register: checkpoint round ", round, " is out of range"));
    }
  }
  const bool first = record_.members.empty() || Finished() ||
                     (!record_.assembled && HandsBack(r));
  const uint64_t configuration =
      first ? options_.configuration_hash : record_.configuration_hash;
  if (configuration != 0 && r.configuration_hash != configuration) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the peer's configuration %016x is not the run's %016x; start all "
        "peers from the same configuration file",
        r.configuration_hash, configuration));
  }
  if (!first && r.layout_fingerprint != record_.layout_fingerprint) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the peer's parameter layout %016x is not the run's %016x; it has "
        "another model, width or version",
        r.layout_fingerprint, record_.layout_fingerprint));
  }
  return absl::OkStatus();
}

absl::StatusOr<PeerId> Fleet::AssignId(const Registration& r) const {
  std::set<PeerId> taken;
  for (const MemberRecord& m : record_.members) {
    // An answer that got lost: the same life asks again.
    if (m.boot_id == r.boot_id && r.peer_id.value == 0) return m.id;
    taken.insert(m.id);
  }
  PeerId id = r.peer_id;
  if (id.value == 0) {
    id.value = 1;
    while (taken.contains(id)) ++id.value;
  }
  return id;
}

// A new one takes the place of one that is gone where there are too many.
void Fleet::Put(MemberRecord member) {
  auto& members = record_.members;
  const auto at =
      std::find_if(members.begin(), members.end(),
                   [&](const MemberRecord& m) { return m.id >= member.id; });
  if (at != members.end() && at->id == member.id) {
    *at = std::move(member);
    return;
  }
  const PeerId id = members.insert(at, std::move(member))->id;
  if (members.size() <= kMaxRecords) return;
  const auto gone = std::ranges::find_if(members, [id](const MemberRecord& m) {
    return m.id != id && !OfTheFleet(m);
  });
  if (gone == members.end()) return;
  live_.erase(gone->id);
  suspicions_told_.erase(gone->id);
  members.erase(gone);
}

absl::Status CheckFleetSize(const FleetOptions& options, int peers) {
  GOSSAMER_ASSIGN_OR_RETURN(
      const auto schedule, MakeSchedule(options.schedule, peers, options.seed));
  if (const int fewest = FewestPartners(*schedule);
      fewest < options.min_partners) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "graph %s with schedule %s on %d peers: some mix with only %d others, "
        "and mixing.clip_radius needs %d.  Take a denser graph or a random "
        "schedule, or leave it out",
        options.schedule.graph, options.schedule.schedule, peers, fewest,
        options.min_partners));
  }
  if (options.min_gap <= 0) return absl::OkStatus();
  const double gap = ExpectedContraction(*schedule).gap();
  if (gap >= options.min_gap) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "graph %s with schedule %s on %d peers has a spectral gap of %.3g, below "
      "the floor of %.3g: it would mix too slowly.  Take a denser graph or a "
      "random schedule, or lower --min-gap",
      options.schedule.graph, options.schedule.schedule, peers, gap,
      options.min_gap));
}

std::string Fleet::Named(const std::vector<PeerId>& ids) {
  return absl::StrCat(ids.size() == 1 ? "peer " : "peers ",
                      absl::StrJoin(ids, ", ", [](std::string* out, PeerId id) {
                        absl::StrAppend(out, id.value);
                      }));
}

bool Fleet::CanHave(int members, const std::string& instead) {
  absl::Status possible = absl::OkStatus();
  if (!options_.elastic) {
    possible = absl::FailedPreconditionError(
        "this fleet keeps its members: the algorithm needs all of them");
  } else if (options_.schedule.graph == "edge-list") {
    possible = absl::FailedPreconditionError(
        "an edge-list names its peers; members cannot come and go");
  } else if (members < 2) {
    possible = absl::FailedPreconditionError("one peer alone is no fleet");
  } else {
    const auto [it, fresh] = possible_.try_emplace(members);
    if (fresh) it->second = CheckFleetSize(options_, members);
    possible = it->second;
  }
  if (possible.ok()) return true;
  if (noted_.insert(absl::StrCat(instead, members)).second) {
    Note(absl::StrCat(instead, ": a fleet of ", members,
                      " cannot be: ", std::string(possible.message())));
  }
  return false;
}

// Decides what a new life of `member`, or a new peer, is to the fleet.
absl::Status Fleet::Admit(const Registration& r, MemberRecord& member,
                          absl::Time now) {
  const bool known = Find(member.id) != nullptr;
  if (!record_.assembled || Finished()) {
    if (!known && Finished() && r.has_parameters) {
      return absl::FailedPreconditionError(
          "the run has ended without this peer; start it anew for another");
    }
    if (known || registered() < options_.expected) return absl::OkStatus();
    if (options_.elastic) {
      return absl::UnavailableError(absl::StrFormat(
          "the run waits to begin with its %d peers, which have registered; "
          "who comes beside joins once it is under way",
          options_.expected));
    }
    return absl::FailedPreconditionError(absl::StrFormat(
        "the run already has its %d peers; a returning peer must give its "
        "--id, a larger fleet needs --peers",
        options_.expected));
  }
  // The checkpoint of one that is no member may be of another fleet, or of a
  // life that never trained.
  const bool goes_on = known && member.standing == Standing::kMember &&
                       !r.checkpoint_rounds.empty();
  member.needs_parameters = !r.has_parameters && !goes_on;
  // The view that it trains by is not newer than the one of now, which is
  // without it: that is told, and it comes as another life.
  if (!known && r.trains && r.view) {
    member.standing = Standing::kRemoved;
    return absl::OkStatus();
  }
  if (known && member.standing == Standing::kMember) return absl::OkStatus();
  if (member.standing == Standing::kLeaving) {
    member.standing = Standing::kRemoved;
  }
  const auto old = live_.find(member.id);
  if (old != live_.end() && now < old->second.may_return) {
    return absl::UnavailableError(absl::StrFormat(
        "peer %d was removed %d times; it may return in %s", member.id.value,
        member.removals, absl::FormatDuration(old->second.may_return - now)));
  }
  const int members = registered();
  const bool named = options_.schedule.graph == "edge-list";
  if (!options_.elastic || members >= MostPeers() || (named && !known)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the run already has its %d peers; a returning peer must give its "
        "--id, a larger fleet needs another graph, --max-peers or --peers",
        members));
  }
  // It waits until the fleet can have it, with others who wait perhaps.
  member.standing = Standing::kJoining;
  return absl::OkStatus();
}

// Who joins or leaves waits for it.  A peer takes its first view as it begins;
// were that another one than its neighbours began with, what was under way at
// their checkpoint would be lost.  Whom only the service does not hear trains
// on by the view that it has: by another one the others might wait for it.
bool Fleet::Adopted(absl::Time now) const {
  return std::ranges::all_of(record_.members, [&](const MemberRecord& m) {
    if (m.standing != Standing::kMember || !m.in_view || m.finished) {
      return true;
    }
    if (Lost(m, now)) return Suspecters(m.id, now) > 0;
    const uint64_t begun = live_.at(m.id).round_begun;
    // Who came back reads its checkpoint, and begins by the newest view.
    const bool reads = begun == 0 && record_.view.epoch > 1 &&
                       m.resume_round != record_.view.from_round;
    return reads || begun >= record_.view.from_round;
  });
}

// Keeps as many of `joining` as the fleet can have.
void Fleet::TrimJoining(int members, std::vector<PeerId>& joining) {
  const auto room = static_cast<size_t>(std::max(0, MostPeers() - members));
  if (joining.size() > room) joining.resize(room);
  while (!joining.empty() &&
         !CanHave(members + static_cast<int>(joining.size()),
                  "who comes waits to join with others")) {
    joining.pop_back();
  }
}

std::vector<PeerId> Fleet::Joining(absl::Time now) {
  int members = 0;
  std::vector<PeerId> joining;
  for (const MemberRecord& m : record_.members) {
    members += m.standing == Standing::kMember;
    if (m.standing == Standing::kJoining && HasLease(m, now)) {
      joining.push_back(m.id);
    }
  }
  TrimJoining(members, joining);
  return joining;
}

void Fleet::LetIn(absl::Time now) {
  bool moved = false;
  // Before those are members that have no round yet.
  const uint64_t from_round = FutureRound();
  std::vector<PeerId> joining;
  int members = 0;
  for (MemberRecord& m : record_.members) {
    members += m.standing == Standing::kMember;
    if (!MayBeLetIn(m)) continue;
    if (m.standing == Standing::kJoining) {
      if (HasLease(m, now)) joining.push_back(m.id);
      continue;
    }
    // From where, and where the others are, is not known yet.
    if (!live_.at(m.id).trains && !HeardAll(now)) continue;
    const uint64_t newest = NewestUpTo(from_round, m.checkpoint_rounds);
    if (newest == 0 && !m.checkpoint_rounds.empty() && !m.needs_parameters) {
      m.needs_parameters = true;
      ++version_;
      if (!MayBeLetIn(m)) continue;
    }
    // Another life is another view, so that all know of it.
    // With the members' parameters it begins where they will be; in this view
    // it would begin at a round long past, and train alone up to theirs.
    moved |= !live_.at(m.id).trains;
    m.in_view = true;
    m.resume_round = m.needs_parameters ? 0 : newest;
    m.needs_parameters = false;
    for (const Member& v : record_.view.members) {
      moved |= v.id == m.id && v.address != m.address;
    }
    ++version_;
  }
  // Both take a view that all have adopted: were those that join first each
  // time, a stream of them would keep the others from leaving.
  const bool leaves =
      record_.stop.round == 0 &&
      std::ranges::any_of(record_.members, [&](const MemberRecord& m) {
        return WaitsToLeave(m, now);
      });
  if (!joining.empty() && !leaves && Adopted(now)) {
    TrimJoining(members, joining);
    moved |= !joining.empty();
    for (const PeerId id : joining) {
      MemberRecord& m = *Find(id);
      m.standing = Standing::kMember;
      m.in_view = true;
      m.resume_round =
          m.needs_parameters ? 0 : NewestUpTo(from_round, m.checkpoint_rounds);
      m.needs_parameters = false;
      ++(m.removals > 0 ? record_.counts.returns : record_.counts.joins);
    }
  }
  if (!moved) return;
  record_.view = NextView(from_round);
  ++version_;
}

void Fleet::AnswerOutside(const MemberRecord& m, absl::Time now,
                          FleetAnswer& answer) {
  // It ends when the others have.
  if (Finished()) {
    answer.stop = Ended();
  } else if (record_.stop.committed) {
    answer.stop = record_.stop;
  }
  if (m.standing == Standing::kJoining) {
    // Until the fleet can have it they would only grow old.
    if (m.needs_parameters && std::ranges::binary_search(Joining(now), m.id)) {
      answer.donors = DonorsOf(m, now);
    }
    return;
  }
  answer.outside = m.standing == Standing::kRemoved;
  answer.wait = std::max(absl::ZeroDuration(), live_.at(m.id).may_return - now);
}

std::vector<Member> Fleet::DonorsOf(const MemberRecord& joiner,
                                    absl::Time now) const {
  std::vector<Member> able;
  // Who leaves gives them, too, if nobody stays that has any.
  for (const Standing standing : {Standing::kMember, Standing::kLeaving}) {
    if (!able.empty()) break;
    for (const MemberRecord& m : record_.members) {
      if (m.standing == standing && m.in_view && !m.finished &&
          m.id != joiner.id && HasLease(m, now)) {
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

std::vector<Member> Fleet::JoinersOf(PeerId donor, absl::Time now) {
  std::vector<Member> joiners;
  const std::vector<PeerId> joining = Joining(now);
  for (const MemberRecord& m : record_.members) {
    // Who has them and cannot be let in yet takes no other's place.
    if (!m.needs_parameters || m.in_view || live_.at(m.id).ready ||
        !HasLease(m, now)) {
      continue;
    }
    if (m.standing != Standing::kMember &&
        !std::ranges::binary_search(joining, m.id)) {
      continue;
    }
    const std::vector<Member> donors = DonorsOf(m, now);
    const bool asked = std::ranges::any_of(
        donors, [donor](const Member& d) { return d.id == donor; });
    if (asked && joiners.size() < kMaxJoiners) {
      joiners.push_back({.id = m.id, .address = m.address});
    }
  }
  return joiners;
}

}  // namespace gossamer
