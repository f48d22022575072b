#include "topology/fleet/restoration.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Milliseconds since 1970: no service has come so far.  One more still fits.
constexpr uint64_t kMaxGeneration = uint64_t{1} << 48;

bool Holds(const View& view, PeerId id) {
  return view.RankOf(id) || view.DepartureOf(id);
}

}  // namespace

void Restoration::ForgetRun() {
  roster_.Clear();
  suspicion_.Clear();
  stop_.Clear();
}

// An incarnation of the service knows all views of its own; a clock that is
// behind may call two incarnations alike.
bool Restoration::HandsBack(const Registration& r) const {
  return r.trains && r.view && r.view->NewerThan(views_.view());
}

// A view of a generation below the present one gives way to the next view
// (Views::ReplaceForgotten).  A view that is not is of a later incarnation than
// the disk, by a clock that is behind that one's: peers would take no view of
// the present incarnation.
bool Restoration::CanHandBack(const FleetHeartbeat& heartbeat) const {
  const View known = KnownView(heartbeat);
  return known.generation >= views_.generation() &&
         known.NewerThan(views_.view()) &&
         !std::as_const(roster_).live(heartbeat.peer_id).registered_here;
}

absl::Status Restoration::Restore(const Registration& r, absl::Time now) {
  if (HandsBack(r)) {
    GOSSAMER_RETURN_IF_ERROR(CheckHandedBack(r));
    TakeView(r, now);
    return absl::OkStatus();
  }
  if (views_.assembled() || !r.has_parameters) return absl::OkStatus();
  if (views_.view().epoch != 0) {
    return absl::FailedPreconditionError(
        "the run has ended without this peer, and another begins: start the "
        "peer anew");
  }
  if (!r.trains) return absl::OkStatus();
  return absl::UnavailableError(
      "this service has lost its --state and waits for a peer whose view it "
      "can take; training goes on meanwhile");
}

// A fleet whose service was started with other options goes on without one: it
// is the service that is wrong.
absl::Status Restoration::CheckHandedBack(const Registration& r) const {
  const View& view = *r.view;
  if (!Holds(view, r.peer_id) || view.generation > kMaxGeneration ||
      view.configuration_hash != r.configuration_hash) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "register: the view %d that peer %d hands back is none of its own",
        view.epoch, r.peer_id.value));
  }
  if (SameFleet(view, /*assembled=*/true, options_)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "peer %d trains in a fleet of %d peers, graph %s, schedule %s, seed %d, "
      "which this service is not for; start it with that fleet's options",
      r.peer_id.value, view.members.size(), view.schedule.graph,
      view.schedule.schedule, view.seed));
}

void Restoration::EvictOutsiders(const View& view) {
  for (MemberRecord& m : roster_.members()) {
    if (Holds(view, m.id) || !OfTheFleet(m)) continue;
    m.standing = Standing::kEvicted;
    m.in_view = false;
  }
}

void Restoration::TakeMember(PeerId id, const std::string& address,
                             Standing standing, absl::Time now) {
  if (MemberRecord* known = roster_.Find(id)) {
    known->standing = standing;
    return;
  }
  MemberRecord member;
  member.id = id;
  member.boot_id = kUnknownIncarnation;
  member.address = address;
  member.in_view = true;
  member.standing = standing;
  roster_.Put(std::move(member));
  roster_.live(id).registered = now;
}

void Restoration::TakeView(const Registration& r, absl::Time now) {
  if (!views_.assembled() || views_.Finished()) {
    // Peers that have registered meanwhile, with a fleet that was thought to
    // begin, register again: they come to one that is under way.
    ForgetRun();
    roster_.TakeRunOf(r);
  }
  EvictOutsiders(*r.view);
  for (const Member& m : r.view->members) {
    TakeMember(m.id, m.address, Standing::kMember, now);
  }
  bool died_leaving = false;
  for (const Departure& d : r.view->departures) {
    TakeMember(d.id, d.address, Standing::kLeaving, now);
    MemberRecord& m = *roster_.Find(d.id);
    if (m.boot_id == kUnknownIncarnation || m.in_view ||
        roster_.live(d.id).trains) {
      continue;
    }
    // Another incarnation than the one that leaves: it is to come anew.
    m.standing = Standing::kEvicted;
    died_leaving = true;
  }
  views_.Restore(*r.view);
  roster_.RestartLeases(now);
  // The others wait for a leaver until the round of its departure.
  if (died_leaving) views_.Renew();
  notes_.Add(absl::StrFormat(
      "nothing was known here of view %d of %d peers; peer %d has handed it "
      "back, and the fleet goes on by it",
      r.view->epoch, r.view->members.size(), r.peer_id.value));
}

}  // namespace gossamer
