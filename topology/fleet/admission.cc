#include "topology/fleet/admission.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "algorithms/base/seeded_bug.h"

namespace gossamer {
namespace {

// The newest of `rounds` up to `limit`, 0 if there is none.  A member that
// comes back alone may have saved a round beyond all others: that checkpoint is
// of a past that they gave up while it was away.
uint64_t NewestUpTo(uint64_t limit, const std::vector<uint64_t>& rounds) {
  uint64_t newest = 0;
  for (const uint64_t round : rounds) {
    if (round <= limit) newest = std::max(newest, round);
  }
  return newest;
}

int Members(const Roster& roster) {
  return static_cast<int>(std::ranges::count_if(
      roster.members(),
      [](const MemberRecord& m) { return m.standing == Standing::kMember; }));
}

}  // namespace

bool Admission::AwaitsView(absl::Time now) const {
  return std::ranges::any_of(roster_.members(), [&](const MemberRecord& m) {
    const LiveMember& live = roster_.live(m.id);
    return live.has_parameters && now - live.registered <= kAbsent;
  });
}

// A fleet whose members stay the same goes on, or begins again, as a whole.
// Its peers may be started again one by one, so `m` is refused only if another
// member still trains a lease after `m` registered.
absl::Status Admission::CheckAdmissible(const MemberRecord& m,
                                        absl::Time trained) const {
  const LiveMember& live = roster_.live(m.id);
  if (options_.elastic || m.in_view || live.trains ||
      trained <= live.registered + options_.lease) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "the others train already, and this algorithm takes nobody in under "
      "way: stop all peers, then start all of them with --resume, or all "
      "without");
}

// Members that end before `m` is admitted will not wait for it, so it may end
// as well.  Members that had ended before it registered may come back, so it
// waits kAbsent for them.
bool Admission::EndedWithout(const MemberRecord& m, absl::Time now) const {
  if (!views_.assembled() || m.in_view) return false;
  const LiveMember& waits = roster_.live(m.id);
  bool anybody = false;
  bool since = now - waits.registered > kAbsent;
  for (const MemberRecord& other : roster_.members()) {
    if (!IsMemberOrLeaving(other) || !other.in_view) continue;
    if (!other.finished && !roster_.Lost(other, now)) return false;
    anybody |= other.finished;
    since |= roster_.live(other.id).finished > waits.registered;
  }
  return anybody && since && !waits.trains;
}

bool Admission::MayBeAdmitted(const MemberRecord& m) const {
  const LiveMember& live = roster_.live(m.id);
  // Only an incarnation that trains already is taken into a fleet that keeps
  // its members: it is in its place, and the service's disk is what is behind.
  if (!options_.elastic && !live.trains) return false;
  const bool has = !m.needs_parameters || live.ready || live.trains ||
                   SeededBug("join-without-parameters");
  if (m.in_view || !has) return false;
  // A member that came back is admitted during a stop, too: its acknowledgement
  // is asked for, and it hears of the stop only once a view has it.  A newcomer
  // would only put the stop off.
  if (m.standing == Standing::kMember) return true;
  return m.standing == Standing::kJoining && !stop_.proposed();
}

// An incarnation that has registered is admitted to a view once it is known
// whether the fleet lives.  It does if a member in the view, by the record or
// by what it says, has been heard since; it does not if every member has a new
// incarnation: then all begin together, from the checkpoint that they share.
void Admission::AdmitPending(absl::Time now) {
  if (!views_.assembled() &&
      (roster_.registered() < options_.expected || AwaitsView(now))) {
    return;
  }
  bool all_new = true;
  bool some_wait = false;
  absl::Time last_registered = absl::InfinitePast();
  absl::Time last_heard = absl::InfinitePast();
  for (const MemberRecord& m : roster_.members()) {
    const LiveMember& live = roster_.live(m.id);
    if (MayBeAdmitted(m)) {
      some_wait = true;
      last_registered = std::max(last_registered, live.registered);
    }
    if (!IsMemberOrLeaving(m)) continue;
    const bool trains = m.in_view || live.trains;
    if (trains && !m.finished) {
      last_heard = std::max(last_heard, live.last_heard);
    }
    // A member that this incarnation of the service has not heard may train.
    const bool known =
        !views_.assembled() || live.last_heard != absl::InfinitePast();
    all_new = all_new && !trains && known;
  }
  if (all_new) {
    BeginTogether();
  } else if (some_wait && last_heard > last_registered) {
    AdmitWaiting(now);
  } else if (some_wait && now - last_registered > kAbsent) {
    BeginWithoutAbsent(now);
  }
}

void Admission::BeginTogether() {
  views_.BeginTogether();
  stop_.Clear();
}

// None of the fleet's incarnations is heard any more: those that have come back
// begin together, from the checkpoint that they share.  A peer that comes later
// joins them.
void Admission::BeginWithoutAbsent(absl::Time now) {
  // A service that was just started has heard no member yet: it waits as long
  // before it calls one absent.
  if (!views_.assembled() || !options_.elastic ||
      now - roster_.started() <= kAbsent) {
    return;
  }
  std::vector<PeerId> absent, again;  // came back, and have ended again
  int back = 0;
  for (const MemberRecord& m : roster_.members()) {
    if (!IsMemberOrLeaving(m)) continue;
    const LiveMember& live = roster_.live(m.id);
    if (!m.in_view && !live.trains) {
      if (m.standing != Standing::kMember) continue;
      if (!roster_.HasLease(m, now)) again.push_back(m.id);
      back += roster_.HasLease(m, now);
    } else if (now - live.last_heard > kAbsent) {
      absent.push_back(m.id);
      // A member of the last view has been heard within the time: the fleet is
      // not dead.
    } else {
      return;
    }
  }
  if (absent.empty()) return;
  absent.insert(absent.end(), again.begin(), again.end());
  const std::string who = PeersText(absent);
  if (!sizes_.CanHave(back, who + " is waited for")) return;
  for (const PeerId id : absent) {
    MemberRecord& m = *roster_.Find(id);
    m.standing = Standing::kEvicted;
    m.in_view = false;
    ++m.removals;
    ++roster_.counts().removals;
  }
  notes_.Add(absl::StrCat("of a fleet that has ended ", who,
                          " did not come back in ",
                          absl::FormatDuration(kAbsent), ": the others begin"));
  BeginTogether();
}

void Admission::Trim(std::vector<PeerId>& joining) {
  const int members = Members(roster_);
  const auto room = static_cast<size_t>(std::max(0, sizes_.Most() - members));
  if (joining.size() > room) joining.resize(room);
  while (!joining.empty() &&
         !sizes_.CanHave(members + static_cast<int>(joining.size()),
                         "who comes waits to join with others")) {
    // From the end: the peers with the smallest ids go first, the same ones at
    // every call, so that the donors serve those that will be admitted.
    joining.pop_back();
  }
}

std::vector<PeerId> Admission::Joining(absl::Time now) {
  std::vector<PeerId> joining;
  for (const MemberRecord& m : roster_.members()) {
    if (m.standing == Standing::kJoining && roster_.HasLease(m, now)) {
      joining.push_back(m.id);
    }
  }
  Trim(joining);
  return joining;
}

bool Admission::AdmitReturned(uint64_t from_round, absl::Time now) {
  bool moved = false;
  for (MemberRecord& m : roster_.members()) {
    if (m.standing == Standing::kJoining || !MayBeAdmitted(m)) continue;
    const bool trains = roster_.live(m.id).trains;
    // The rounds of the others, and so the round to begin at, are not known
    // yet.
    if (!trains && !roster_.HeardAll(now)) continue;
    const uint64_t newest = NewestUpTo(from_round, m.checkpoint_rounds);
    // Its checkpoints are all of a past that is given up: it is admitted once
    // it has other members' parameters.
    if (newest == 0 && !m.checkpoint_rounds.empty() && !m.needs_parameters) {
      m.needs_parameters = true;
      roster_.Changed();
      if (!MayBeAdmitted(m)) continue;
    }
    // Another incarnation is another view, so that all know of it.  With the
    // members' parameters it begins where they will be; in the present view it
    // would begin at a round long past, and train alone up to theirs.
    moved |= !trains;
    m.in_view = true;
    m.resume_round = m.needs_parameters ? 0 : newest;
    m.needs_parameters = false;
    for (const Member& v : views_.view().members) {
      // A peer that trains on at another address or on another device needs a
      // view for its neighbours to find it.
      moved |= v.id == m.id && (v.address != m.address || v.device != m.device);
    }
    roster_.Changed();
  }
  return moved;
}

// Joins and departures both take a view that all have adopted: were joins first
// each time, a stream of them would keep the others from leaving.
bool Admission::AdmitJoining(uint64_t from_round, std::vector<PeerId> joining,
                             bool at_once, absl::Time now) {
  const bool leaves = !stop_.proposed() && departures_.Awaited(now);
  if (joining.empty()) joining_.End();
  if (joining.empty() || leaves || !views_.Adopted(now)) return false;
  const bool others = !at_once && Joining(now).size() > joining.size();
  if (joining_.Waits(others, now)) return false;
  joining_.End();
  Trim(joining);
  for (const PeerId id : joining) {
    MemberRecord& m = *roster_.Find(id);
    m.standing = Standing::kMember;
    m.in_view = true;
    m.resume_round =
        m.needs_parameters ? 0 : NewestUpTo(from_round, m.checkpoint_rounds);
    m.needs_parameters = false;
    FleetCounts& counts = roster_.counts();
    ++(m.removals > 0 ? counts.returns : counts.joins);
  }
  return !joining.empty();
}

void Admission::AdmitWaiting(absl::Time now) {
  // Taken before there are members that have no round yet.
  const uint64_t from_round = rounds_.FutureRound();
  std::vector<PeerId> joining;
  for (const MemberRecord& m : roster_.members()) {
    if (m.standing == Standing::kJoining && MayBeAdmitted(m) &&
        roster_.HasLease(m, now)) {
      joining.push_back(m.id);
    }
  }
  const bool returned = AdmitReturned(from_round, now);
  const bool joined =
      AdmitJoining(from_round, std::move(joining), /*at_once=*/returned, now);
  if (returned || joined) views_.RenewFrom(from_round);
}

}  // namespace gossamer
