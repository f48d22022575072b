// Members that come and go: whom to meet, whom to let go, and what a peer does
// that leaves or finds itself outside.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/peer/peer.h"

namespace gossamer {

// As soon as a view is known, long before its round comes: who is gone is not
// waited for (without deadlines that round would never come), and who is new
// gets to know this peer.
void Peer::OnMembership() {
  if (view_.epoch == 0 || spec_.centralized || decisions_.replays()) return;
  if (parts_.membership->outside()) {
    for (const PeerId peer : neighborhood_.Peers()) neighborhood_.Drop(peer);
    return;
  }
  const View& newest = parts_.membership->view();
  if (!newest.NewerThan(met_)) return;
  LetGo(newest);
  Meet(newest);
  met_ = newest;
}

void Peer::LetGo(const View& newest) {
  for (const PeerId peer : neighborhood_.Peers()) {
    if (newest.RankOf(peer) || newest.DepartureOf(peer)) continue;
    Tell("member_removed",
         absl::StrFormat("peer %d is in no view any more; what was under way "
                         "with it is given up",
                         peer.value));
    neighborhood_.Drop(peer);
  }
}

void Peer::Meet(const View& newest) {
  if (!newest.RankOf(spec_.self)) return;
  const auto schedule = MakeSchedule(
      newest.schedule, static_cast<int>(newest.members.size()), newest.seed);
  if (!schedule.ok()) return;  // said when the view is adopted
  for (const Member& m : newest.members) {
    if (!met_.RankOf(m.id)) {
      Tell("member_joined", absl::StrFormat("peer %d, from round %d",
                                            m.id.value, newest.from_round));
    }
  }
  for (const Departure& d : newest.departures) {
    if (met_.RankOf(d.id) && d.id != spec_.self) {
      Tell("member_leaves",
           absl::StrFormat("peer %d, from round %d", d.id.value, d.round));
    }
  }
  const absl::Status connected =
      Connect(newest, **schedule, {}, /*newcomers=*/true);
  if (!connected.ok()) Tell("meet_failed", std::string(connected.message()));
}

void Peer::WatchNeighbors() {
  detector_.Watch(neighborhood_.Watched(), parts_.loop->Now());
  if (watch_timer_ != EventLoop::TimerId{} || decisions_.replays()) return;
  watch_timer_ =
      parts_.loop->RunAt(parts_.loop->Now() + detector_.period(), [this] {
        watch_timer_ = {};
        WatchNeighbors();
        for (const PeerId peer : detector_.Tick(parts_.loop->Now())) {
          neighborhood_.Probe(peer);
        }
        for (const PeerId peer : detector_.suspected()) {
          if (!std::ranges::binary_search(suspected_, peer)) {
            Tell("member_suspected",
                 absl::StrFormat("peer %d does not answer", peer.value));
          }
        }
        suspected_ = detector_.suspected();
        parts_.membership->Suspect(suspected_);
      });
}

void Peer::Leave(absl::Time limit) {
  if (leave_timer_ != EventLoop::TimerId{}) return;
  parts_.membership->RequestLeave();
  leave_timer_ = parts_.loop->RunAt(limit, [this] {
    leave_timer_ = {};
    if (parts_.membership->stop().round == 0) LeaveNow();
  });
}

// What is under way is given up: nobody is waited for any longer.
void Peer::LeaveNow() {
  leaves_now_ = true;
  Tell("left_late",
       "the fleet did not let this peer go in time; it goes without an answer "
       "to what is under way");
  for (const PeerId peer : neighborhood_.Peers()) neighborhood_.Drop(peer);
  waiter_.Notify();
}

bool Peer::Leaves() const {
  if (leaves_now_) return true;
  const auto round = parts_.membership->view().DepartureOf(spec_.self);
  return round && round_ >= *round;
}

// It was silent for so long that the others went on without it: it becomes
// another life, with the parameters that it has.
Task<absl::Status> Peer::Rejoin() {
  Tell("outside",
       "the fleet has gone on without this peer; it registers again "
       "with the parameters that it has");
  neighborhood_.BeginLife();
  rows_.clear();
  view_ = met_ = {};
  suspected_.clear();
  if (!parts_.membership->stop().committed) {
    parts_.membership->Rejoin(/*trained=*/true);
  }
  Task<absl::Status> join = Join();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await join.result());
  if (stopped_) co_return absl::OkStatus();
  Tell("rejoined",
       absl::StrFormat("at round %d of view %d", round_, view_.epoch));
  co_return absl::OkStatus();
}

}  // namespace gossamer
