// How a Fleet whose service has lost its disk, or has one from before the first
// view, learns of itself again: who trains hands back the view that it has,
// which says as much as an older disk would, and the rest goes as with one.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/fleet.h"

namespace gossamer {
namespace {

// Milliseconds since 1970: no service has come so far.  One more still fits.
constexpr uint64_t kMaxGeneration = uint64_t{1} << 48;

bool Holds(const View& view, PeerId id) {
  return view.RankOf(id) || view.DepartureOf(id);
}

}  // namespace

// Of its own life the service knows all views; a clock that is behind may call
// two lives alike.
bool Fleet::HandsBack(const Registration& r) const {
  return r.trains && r.view && r.view->NewerThan(record_.view);
}

// A generation below the present one gives way to the next view
// (ReplaceForgotten).  One that is not comes of a later life than the disk, by
// a clock that is behind that life's: peers would take no view of this one.
bool Fleet::HasOneToHandBack(const FleetHeartbeat& heartbeat) const {
  const View known = KnownBy(heartbeat);
  return known.generation >= record_.generation &&
         known.NewerThan(record_.view) &&
         !live_.at(heartbeat.peer_id).registered_here;
}

absl::Status Fleet::Recall(const Registration& r, absl::Time now) {
  if (HandsBack(r)) {
    GOSSAMER_RETURN_IF_ERROR(CheckHandedBack(r));
    TakeBack(r, now);
    return absl::OkStatus();
  }
  if (record_.assembled || !r.has_parameters) return absl::OkStatus();
  if (record_.view.epoch != 0) {
    return absl::FailedPreconditionError(
        "the run has ended without this peer, and another begins: start the "
        "peer anew");
  }
  if (!r.trains) return absl::OkStatus();
  return absl::UnavailableError(
      "this service has lost its --state and waits for a peer whose view it "
      "can take; training goes on meanwhile");
}

// Whose service was started with other options goes on without one: it is the
// service that is wrong.
absl::Status Fleet::CheckHandedBack(const Registration& r) const {
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

void Fleet::TakeBack(const Registration& r, absl::Time now) {
  if (!record_.assembled || Finished()) {
    // Who has come meanwhile, to a fleet that was thought to begin, registers
    // again: it comes to one that is under way.
    ForgetRun();
    record_.configuration_hash = r.configuration_hash;
    record_.layout_fingerprint = r.layout_fingerprint;
  }
  for (MemberRecord& m : record_.members) {
    if (Holds(*r.view, m.id) || !OfTheFleet(m)) continue;
    m.standing = Standing::kRemoved;
    m.in_view = false;
  }
  const auto take = [&](PeerId id, const std::string& address,
                        Standing standing) {
    if (MemberRecord* known = Find(id)) {
      known->standing = standing;
      return;
    }
    MemberRecord member;
    member.id = id;
    member.boot_id = kUnknownLife;
    member.address = address;
    member.in_view = true;
    member.standing = standing;
    Put(std::move(member));
    live_[id].registered = now;
  };
  for (const Member& m : r.view->members) {
    take(m.id, m.address, Standing::kMember);
  }
  bool died_leaving = false;
  for (const Departure& d : r.view->departures) {
    take(d.id, d.address, Standing::kLeaving);
    MemberRecord& m = *Find(d.id);
    if (m.boot_id == kUnknownLife || m.in_view || live_[d.id].trains) continue;
    // Another life than the one that leaves: it is to come anew.
    m.standing = Standing::kRemoved;
    died_leaving = true;
  }
  record_.view = *r.view;
  record_.view.resume_round = 0;
  record_.assembled = true;
  // As of another life with that disk, whose leases begin now, whatever the
  // clock says.
  record_.generation = std::max(record_.generation, r.view->generation) + 1;
  started_ = leases_from_ = now;
  // The others wait for who leaves until the round of its departure.
  if (died_leaving) record_.view = NextView(FutureRound());
  ++version_;
  Note(absl::StrFormat(
      "nothing was known here of view %d of %d peers; peer %d has handed it "
      "back, and the fleet goes on by it",
      r.view->epoch, r.view->members.size(), r.peer_id.value));
}

bool Fleet::AwaitsView(absl::Time now) const {
  return std::ranges::any_of(live_, [&](const auto& live) {
    return live.second.has_parameters &&
           now - live.second.registered <= kAbsent;
  });
}

}  // namespace gossamer
