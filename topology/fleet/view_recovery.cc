#include "topology/fleet/view_recovery.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

bool Holds(const View& view, PeerId id) {
  return view.RankOf(id) || view.DepartureOf(id);
}

}  // namespace

void ViewRecovery::ResetRun() {
  roster_.Clear();
  suspicion_.Clear();
  stop_.Clear();
}

// A view of this incarnation's own generation is known here, so a newer one is
// of a service with a later disk.  A clock that is behind may give two
// incarnations one generation; the epoch then decides.
bool ViewRecovery::CanRecoverFrom(const Registration& r) const {
  return BringsNewerView(r) && !r.foreign;
}

bool ViewRecovery::BringsNewerView(const Registration& r) const {
  return r.trains && r.view && r.view->NewerThan(views_.view());
}

// A view of an earlier generation than the present one gives way to the next
// view (Views::ReplaceForgotten).  A view of this generation or a later one is
// of a later incarnation than the disk, if the clock is behind that one's:
// peers would take no view of the present incarnation, as theirs looks newer.
bool ViewRecovery::HasNewerView(const FleetHeartbeat& heartbeat) const {
  const View known = KnownView(heartbeat);
  return !LaterGeneration(views_.generation(), known.generation) &&
         known.NewerThan(views_.view()) &&
         !std::as_const(roster_).live(heartbeat.peer_id).registered_here;
}

absl::Status ViewRecovery::Recover(const Registration& r, absl::Time now) {
  if (CanRecoverFrom(r)) {
    GOSSAMER_RETURN_IF_ERROR(CheckView(r));
    TakeView(r, now);
    return absl::OkStatus();
  }
  // A peer that is known, or cannot come anew, would never take a view of this
  // service, as its own looks newer.
  if (BringsNewerView(r) &&
      (roster_.Find(r.peer_id) != nullptr || !options_.elastic)) {
    return absl::UnavailableError(absl::StrFormat(
        "peer %d trains by a newer view, which no service with this store has "
        "made: start the service with the store that the run began with, or "
        "with an empty one; training goes on meanwhile",
        r.peer_id.value));
  }
  if (views_.assembled() || !r.has_parameters) return absl::OkStatus();
  // The record knows that its run has ended, so it is the peer that is late and
  // not the disk that is lost.
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

// A view comes from outside, so it must hold the peer that brings it and be of
// its configuration.  If the service was started with other options than the
// fleet's, the service is wrong: the fleet goes on without one.
absl::Status ViewRecovery::CheckView(const Registration& r) const {
  const View& view = *r.view;
  if (!Holds(view, r.peer_id) || view.epoch > kMaxEpoch ||
      view.configuration_hash != r.configuration_hash) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "register: the view %d that peer %d hands back is none of its own",
        view.epoch, r.peer_id.value));
  }
  if (SameFleet(view, /*assembled=*/true, options_)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "peer %d trains in a fleet of %d peers, graph %s, seed %d, "
      "which this service is not for; start it with that fleet's options",
      r.peer_id.value, view.members.size(), view.schedule.graph, view.seed));
}

// Members that the newer view is without have left or were evicted under an
// incarnation of the service that this disk does not remember.
void ViewRecovery::EvictOutsiders(const View& view) {
  for (MemberRecord& m : roster_.members()) {
    if (Holds(view, m.id) || !IsMemberOrLeaving(m)) continue;
    m.standing = Standing::kEvicted;
    m.in_view = false;
  }
}

void ViewRecovery::TakeMember(const Member& m, Standing standing,
                              absl::Time now) {
  // The own record says more of an incarnation than a view does.
  if (MemberRecord* known = roster_.Find(m.id)) {
    known->standing = standing;
    return;
  }
  MemberRecord member;
  member.id = m.id;
  member.incarnation_id = kUnknownIncarnation;
  member.address = m.address;
  member.device = m.device;
  member.in_view = true;
  member.standing = standing;
  roster_.Put(std::move(member));
  roster_.live(m.id).registered = now;
}

void ViewRecovery::TakeView(const Registration& r, absl::Time now) {
  if (!views_.assembled() || views_.Finished()) {
    // Peers that have registered meanwhile, with a fleet that was thought to
    // begin, register again: they come to one that is under way.
    ResetRun();
    views_.Disassemble();
    roster_.TakeRunOf(r);
  }
  EvictOutsiders(*r.view);
  for (const Member& m : r.view->members) {
    TakeMember(m, Standing::kMember, now);
  }
  bool died_leaving = false;
  for (const Departure& d : r.view->departures) {
    TakeMember({.id = d.id, .address = d.address}, Standing::kLeaving, now);
    MemberRecord& m = *roster_.Find(d.id);
    if (m.incarnation_id == kUnknownIncarnation || m.in_view ||
        roster_.live(d.id).trains) {
      continue;
    }
    // Another incarnation than the one that leaves: it is to come anew.
    m.standing = Standing::kEvicted;
    died_leaving = true;
  }
  views_.ContinueFrom(*r.view);
  roster_.MarkIncomplete();
  // The members did not know this service, so none could have renewed a lease:
  // each has one from here.
  roster_.RestartLeases(now);
  // The others wait for a leaver until the round of its departure.
  if (died_leaving) views_.Renew();
  notes_.Add(absl::StrFormat(
      "nothing was known here of view %d of %d peers; peer %d has handed it "
      "back, and the fleet goes on by it",
      r.view->epoch, r.view->members.size(), r.peer_id.value));
}

}  // namespace gossamer
