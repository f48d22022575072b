#include "tests/simulation/member_watch.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "topology/fleet/fleet.h"
#include "topology/mixing_schedule.h"

namespace gossamer::simulation {
namespace {

// A peer that has died so often in a row may be evicted before its lease ends.
constexpr int kShortProcesses = 3;

bool IsMemberOrLeaving(Standing standing) {
  return standing == Standing::kMember || standing == Standing::kLeaving;
}

}  // namespace

void MemberWatch::Started(const FleetRecord& record, absl::Time now) {
  started_ = now;
  Keep(record);
}

void MemberWatch::Keep(const FleetRecord& record) {
  view_ = record.view;
  known_.clear();
  for (const MemberRecord& m : record.members) {
    known_[m.id] = {m.incarnation_id, m.in_view, m.standing, m.removals};
  }
}

// A peer that was away, or that has no checkpoint, begins with its initial
// parameters.
void MemberWatch::Registered(const wire::RegisterRequest& request,
                             absl::Time now) {
  const PeerId id{request.peer_id()};
  Process& process = processes_[id];
  process.heard = now;
  const auto known = known_.find(id);
  const bool member =
      known != known_.end() && known->second.standing == Standing::kMember;
  const bool has_parameters = request.has_parameters() || request.trains() ||
                              (member && request.checkpoint_rounds_size() > 0);
  // The incarnation is known: the service has forgotten it and hears it again.
  if (process.incarnation_id == request.incarnation_id()) {
    process.has_parameters = process.has_parameters || has_parameters;
    return;
  }
  const int short_processes = process.trained || process.incarnation_id == 0
                                  ? 0
                                  : process.short_processes + 1;
  process = {.incarnation_id = request.incarnation_id(),
             .heard = now,
             .suspects = {},
             .has_parameters = has_parameters,
             .saved = {request.checkpoint_rounds().begin(),
                       request.checkpoint_rounds().end()},
             .short_processes = short_processes};
}

void MemberWatch::Heard(const wire::HeartbeatRequest& request, absl::Time now) {
  Process& process = processes_[{request.peer_id()}];
  if (process.incarnation_id != request.incarnation_id()) return;
  process.heard = now;
  const auto known = known_.find({request.peer_id()});
  process.trained |= known != known_.end() && known->second.in_view &&
                     known->second.incarnation_id == process.incarnation_id &&
                     IsMemberOrLeaving(known->second.standing) &&
                     request.round_begun() >= view_.from_round;
  process.suspects = {request.suspected().begin(), request.suspected().end()};
  // A peer with a view trains, whatever this service knows of it.
  process.has_parameters =
      process.has_parameters || request.ready() || request.view_epoch() != 0;
}

std::string MemberWatch::Changed(const FleetRecord& record, absl::Time now) {
  int under_way = 0;  // incarnations that were in the view, and still are
  for (const MemberRecord& m : record.members) {
    const auto before = known_.find(m.id);
    under_way += before != known_.end() && before->second.in_view &&
                 before->second.incarnation_id == m.incarnation_id &&
                 m.in_view && IsMemberOrLeaving(m.standing);
  }
  std::string wrong;
  bool begins = false;
  for (const MemberRecord& m : record.members) {
    const Known& before = known_[m.id];
    if (m.removals > before.removals && wrong.empty()) {
      wrong = CheckEviction(m, record.view, now);
    }
    const bool entered =
        m.in_view &&
        (!before.in_view || before.incarnation_id != m.incarnation_id);
    begins |= entered && under_way == 0;
    const auto process = processes_.find(m.id);
    if (entered && under_way > 0 && process != processes_.end() &&
        process->second.incarnation_id == m.incarnation_id &&
        !process->second.has_parameters) {
      wrong = absl::StrFormat(
          "peer %d is let into a fleet under way and has no parameters of it",
          m.id.value);
    }
  }
  if (begins && wrong.empty()) wrong = CheckBeginning(record);
  Keep(record);
  return wrong;
}

std::string MemberWatch::CheckBeginning(const FleetRecord& record) const {
  std::map<uint64_t, size_t> holders;
  size_t members = 0;
  for (const MemberRecord& m : record.members) {
    if (m.standing != Standing::kMember) continue;
    ++members;
    const auto process = processes_.find(m.id);
    if (process == processes_.end() ||
        process->second.incarnation_id != m.incarnation_id)
      return "";
    for (const uint64_t round : process->second.saved) ++holders[round];
  }
  uint64_t shared = 0;
  for (const auto& [round, count] : holders) {
    if (count == members) shared = round;
  }
  if (record.view.from_round >= shared) return "";
  return absl::StrFormat(
      "the fleet begins at round %d, though all have the checkpoint of round "
      "%d",
      record.view.from_round, shared);
}

bool MemberWatch::HeardWithinLease(PeerId id, absl::Time now) const {
  const auto process = processes_.find(id);
  return process != processes_.end() && now - process->second.heard <= lease_;
}

bool MemberWatch::Suspected(PeerId id, const View& view, absl::Time now) const {
  const std::optional<int> rank = view.RankOf(id);
  const auto schedule = view.MakeSchedule();
  std::set<PeerId> neighbors;
  if (rank && schedule.ok() && (*schedule)->is_static()) {
    for (const Neighbor& n :
         (*schedule)->Row(*rank, view.from_round).neighbors) {
      neighbors.insert(view.members[static_cast<size_t>(n.rank)].id);
    }
  } else {
    for (const auto& [other, known] : known_) neighbors.insert(other);
    neighbors.erase(id);
  }
  int heard = 0, suspecting = 0;
  for (const PeerId neighbor : neighbors) {
    const auto known = known_.find(neighbor);
    if (known == known_.end() || !known->second.in_view ||
        !IsMemberOrLeaving(known->second.standing) ||
        !HeardWithinLease(neighbor, now)) {
      continue;
    }
    ++heard;
    suspecting += processes_.at(neighbor).suspects.contains(id.value);
  }
  return suspecting >= (rank ? std::clamp(heard, 1, 2) : 1);
}

// `after` is the view after the call.  It may have become another one in the
// same call before `m` left it: that one holds the members of the next view and
// the evicted peer.
std::string MemberWatch::CheckEviction(const MemberRecord& m, const View& after,
                                       absl::Time now) const {
  const std::string who = absl::StrCat("peer ", m.id.value, " is removed");
  const auto own = processes_.find(m.id);
  if (own != processes_.end() && own->second.short_processes >= kShortProcesses)
    return "";
  if (HeardWithinLease(m.id, now)) {
    return absl::StrCat(who, " though it has renewed its lease");
  }
  if (now - started_ <= lease_) {
    return absl::StrCat(who, " by a service that has not been up for a lease");
  }
  if (own != processes_.end() && now - own->second.heard > Fleet::kAbsent &&
      now - started_ > Fleet::kAbsent) {
    return "";
  }
  View between = after;
  for (const Member& member : view_.members) {
    if (!after.RankOf(member.id)) between.members.push_back(member);
  }
  std::ranges::sort(between.members, {}, &Member::id);
  if (Suspected(m.id, view_, now) || Suspected(m.id, between, now)) return "";
  return absl::StrCat(who, " though too few of its neighbours suspect it");
}

}  // namespace gossamer::simulation
