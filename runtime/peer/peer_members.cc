// Members that come and go: whom to meet, whom to let go, and what a peer does
// that leaves or finds itself outside.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/peer/peer.h"

namespace gossamer {
namespace {

// What a stop that is committed gets when a peer's time to leave is over.
constexpr absl::Duration kStopGrace = absl::Seconds(1);

// One member's word must not spoil this peer, nor keep the others' from it.
absl::Status CheckGiven(const Checkpoint& given, const Checkpoint& own,
                        float largest) {
  GOSSAMER_RETURN_IF_ERROR(CheckShape(given, own));
  // The optimizer's own have other units.
  for (const std::string_view name : {kParametersName, kEmaName}) {
    const auto values = given.floats.find(std::string(name));
    if (values == given.floats.end() ||
        HostKernels().all_within(largest, values->second)) {
      continue;
    }
    return absl::DataLossError(absl::StrCat(
        "its ", std::string(name), " are beyond mixing.largest_parameter"));
  }
  return absl::OkStatus();
}

}  // namespace

// As soon as a view is known, long before its round comes: who is gone is not
// waited for (without deadlines that round would never come), and who is new
// gets to know this peer.
void Peer::OnMembership() {
  MeasureWays();
  if (view_.epoch == 0 || spec_.centralized || decisions_.replays()) return;
  ServeJoiners();
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

// Frames among others, while training goes on.  Both ends of a way are told of
// each other in one turn, and each measures its own direction.
void Peer::MeasureWays() {
  const absl::Time now = parts_.loop->Now();
  const std::optional<SurveyTask> task = parts_.membership->survey();
  if (task && task->number != surveyed_) {
    surveyed_ = task->number;
    const PeerId to = task->to.id;
    surveyed_until_[to] = now + 2 * LinkProber::kLimit;
    parts_.transport->Connect(to, task->to.address);
    prober_.Measure(to, [this, number = task->number](
                            std::optional<LinkMeasurement> measured) {
      parts_.membership->TellMeasured(number, measured);
    });
  }
  std::erase_if(surveyed_until_, [&](const auto& way) {
    if (way.second > now) return false;
    if (!spec_.centralized && !neighborhood_.Has(way.first) &&
        !served_.contains(way.first)) {
      parts_.transport->Disconnect(way.first);
    }
    return true;
  });
}

void Peer::LetGo(const View& newest) {
  for (const PeerId peer : neighborhood_.Peers()) {
    if (newest.RankOf(peer) ||
        (newest.DepartureOf(peer) && !SeededBug("drop-leavers"))) {
      continue;
    }
    // Not there before either: an edge that goes on from its record alone.
    if (!met_.RankOf(peer) && !met_.DepartureOf(peer)) continue;
    Tell("member_removed",
         absl::StrFormat("peer %d is in no view any more; what was under way "
                         "with it is given up",
                         peer.value));
    decisions_.TellMembers(round_);
    neighborhood_.Drop(peer);
  }
}

void Peer::Meet(const View& newest) {
  if (!newest.RankOf(spec_.self) || ends_) {
    // It leaves or ends, and still mixes with those who have come back
    // elsewhere.  An edge that began now would have nothing to settle, and
    // never be sealed.
    for (const Member& m : newest.members) {
      if (neighborhood_.Has(m.id)) parts_.transport->Connect(m.id, m.address);
    }
    return;
  }
  const auto schedule = newest.MakeSchedule();
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
  // What fails here fails again, and ends the run, when the view is adopted.
  Connect(newest, **schedule, {}, /*newcomers=*/true).IgnoreError();
}

// Of a life that begins in a fleet under way.  Whoever mixed with the life
// before, in a view that it has not left yet or until it leaves, would wait for
// what that life owed it in rounds that this one does not take part in.  This
// one does not know who they are, so it tells everybody.
absl::Status Peer::GreetOthers() {
  const bool together =
      view_.from_round <= std::max<uint64_t>(view_.resume_round, 1);
  if (spec_.centralized || together || SeededBug("greet-nobody")) {
    return absl::OkStatus();
  }
  std::vector<Member> others = view_.members;
  for (const Departure& d : view_.departures) {
    others.push_back({.id = d.id, .address = d.address});
  }
  const ExchangeId frontier = MakeExchangeId(round_);
  for (const Member& other : others) {
    if (other.id == spec_.self || neighborhood_.Has(other.id)) continue;
    GOSSAMER_RETURN_IF_ERROR(AddEdge(
        {.peer = other.id, .address = other.address, .frontier = frontier},
        /*replica=*/true));
    neighborhood_.Rest(other.id, frontier, /*gone=*/false);
  }
  return absl::OkStatus();
}

void Peer::WatchNeighbors() {
  detector_.Watch(neighborhood_.Watched(), parts_.loop->Now());
  if (watch_timer_ != EventLoop::TimerId{} || decisions_.replays()) return;
  watch_timer_ =
      parts_.loop->RunAt(parts_.loop->Now() + detector_.period(), [this] {
        watch_timer_ = {};
        WatchNeighbors();
        const auto probes = detector_.Tick(parts_.loop->Now());
        for (const PeerId peer : probes.direct) prober_.Ping(peer);
        for (const auto& [witness, about] : probes.through_others) {
          prober_.Ask(witness, about);
        }
        for (const PeerId peer : detector_.suspected()) {
          if (!std::ranges::binary_search(suspected_, peer)) {
            Tell("member_suspected",
                 absl::StrFormat("peer %d does not answer", peer.value));
          }
        }
        TellStrangers(/*last=*/false);
        donor_.Tick(parts_.loop->Now());
        OfferState();
        // What is owed to a peer whose queue was full goes out though nothing
        // else happens here: that peer may be waiting for it.
        neighborhood_.FlushAll();
        suspected_ = detector_.suspected();
        parts_.membership->Suspect(suspected_);
      });
}

void Peer::Leave(absl::Time limit) {
  if (leaves_now_ || leave_timer_ != EventLoop::TimerId{}) return;
  if (spec_.centralized) {
    parts_.membership->RequestStop();  // the others cannot go on without it
  } else {
    parts_.membership->RequestLeave();
  }
  // A stop that nobody has committed may never be: the service may be gone.
  leave_timer_ = parts_.loop->RunAt(limit, [this, limit] {
    leave_timer_ = {};
    if (!parts_.membership->stop().committed) return LeaveNow();
    leave_timer_ = parts_.loop->RunAt(limit + kStopGrace, [this] {
      leave_timer_ = {};
      LeaveNow();
    });
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

SendState Peer::SendStateFrames() {
  return [this](PeerId peer, Frame frame) {
    return parts_.transport->Send(peer, Channel::kState, std::move(frame));
  };
}

void Peer::ServeJoiners() {
  std::set<PeerId> joiners;
  for (const Member& m : parts_.membership->joiners()) {
    joiners.insert(m.id);
    parts_.transport->Connect(m.id, m.address);
  }
  for (const PeerId peer : served_) {
    if (!joiners.contains(peer) && !neighborhood_.Has(peer)) {
      parts_.transport->Disconnect(peer);
    }
  }
  served_ = joiners;
  donor_.Serve(std::move(joiners));
}

// At any moment at which no step is under way x is a state of its own; a peer
// that waits for the very one that joins can give it.
void Peer::OfferState() {
  if (!donor_.wanted() || stepping_ || view_.epoch == 0) return;
  if (!Sound()) {
    // Who asks may be whom this peer waits for: it must not wait any longer,
    // but get well, or begin anew with all others.
    sound_ = false;
    asked_in_vain_ = true;
    waiter_.Notify();
    return;
  }
  absl::StatusOr<Checkpoint> state =
      TakeCheckpoint({}, [this](StateVisitor& v) { VisitState(v); });
  if (!state.ok()) {
    donor_.Refuse();
    const uint64_t news = unoffered_.Due(++not_offered_);
    if (news != 0) {
      Tell("state_not_offered", std::string(state.status().message()), news);
    }
    return;
  }
  Tell("state_offered",
       absl::StrFormat("as after step %d, to a peer that joins", steps_));
  // Writing it out and hashing it take as long as some rounds do when it is
  // large: the loop, which answers everybody, does not wait for them.
  struct Offer {
    Checkpoint state;
    std::vector<std::byte> bytes;
    std::string hash;
  };
  const auto offer = std::make_shared<Offer>();
  offer->state = *std::move(state);
  donor_.Prepare();
  parts_.compute->Run(
      [offer] {
        offer->bytes = EncodeSnapshot(offer->state);
        offer->hash = Sha256(offer->bytes);
      },
      [this, offer, alive = std::weak_ptr<bool>(alive_)] {
        if (alive.expired()) return;
        donor_.Offer(std::move(offer->bytes), std::move(offer->hash),
                     parts_.loop->Now());
      });
}

// From members, the middle of theirs; for as long as no view says that it is
// not needed.
Task<absl::Status> Peer::GetState() {
  constexpr absl::Duration kLook = absl::Milliseconds(250);
  Membership* const m = parts_.membership;
  absl::StatusOr<Checkpoint> own =
      TakeCheckpoint({}, [this](StateVisitor& v) { VisitState(v); });
  GOSSAMER_CO_RETURN_IF_ERROR(own.status());
  const size_t most = 2 * SizeOf(*own) + (1 << 20);
  collector_ = std::make_unique<StateCollector>(
      SendStateFrames(),
      [this](std::function<void()> work, std::function<void()> done) {
        parts_.compute->Run(std::move(work),
                            [this, done = std::move(done),
                             alive = std::weak_ptr<bool>(alive_)] {
                              if (alive.expired()) return;
                              done();
                              waiter_.Notify();
                            });
      },
      most, spec_.liveness_limit,
      [own = std::make_shared<const Checkpoint>(*std::move(own)),
       largest = spec_.largest_parameter](const Checkpoint& given) {
        return CheckGiven(given, *own, largest);
      });
  const bool done = co_await waiter_.Until(
      [this, m] {
        if (m->view().epoch != 0 || m->outside() || leaves_now_ ||
            m->stop().committed || !m->refused().ok()) {
          return true;
        }
        std::vector<PeerId> donors;
        for (const Member& d : m->donors()) {
          donors.push_back(d.id);
          parts_.transport->Connect(d.id, d.address);
        }
        collector_->SetDonors(donors, parts_.loop->Now());
        collector_->Tick(parts_.loop->Now());
        return collector_->done();
      },
      parts_.loop->Now() + spec_.liveness_limit,
      [this, kLook] { return parts_.loop->Now() + kLook; });
  const std::unique_ptr<StateCollector> collector = std::move(collector_);
  for (const std::string& failure : collector->TakeFailures()) {
    Tell("state_failed", failure);
  }
  if (!done || !collector->done()) co_return absl::OkStatus();
  GOSSAMER_CO_RETURN_IF_ERROR(RestoreCheckpoint(
      collector->Take(), [this](StateVisitor& v) { VisitState(v); }));
  decisions_.TellMembers(round_);
  has_state_ = true;
  Tell("state_received",
       absl::StrFormat("the %s of %d members",
                       collector->given() == 3 ? "median" : "average",
                       collector->given()));
  m->SetReady();
  co_return absl::OkStatus();
}

bool Peer::Leaves() const {
  if (leaves_now_) return true;
  const auto round = parts_.membership->view().DepartureOf(spec_.self);
  return round && round_ >= *round;
}

void Peer::BeginLife() {
  decisions_.TellMembers(round_);
  neighborhood_.BeginLife();
  rows_.clear();
  view_ = met_ = {};
  suspected_.clear();
  rounds_since_life_ = 0;
}

// It was silent for so long that the others went on without it: it becomes
// another life, with the parameters that it has.
Task<absl::Status> Peer::Rejoin() {
  Tell("outside",
       "the fleet has gone on without this peer; it registers again "
       "with the parameters that it has");
  BeginLife();
  if (parts_.membership->stop().committed) {
    stopped_ = true;  // the others end without this one
    co_return absl::OkStatus();
  }
  parts_.membership->Rejoin(/*trained=*/true);
  Task<absl::Status> join = Join();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await join.result());
  if (stopped_ || left_) co_return absl::OkStatus();
  Tell("rejoined",
       absl::StrFormat("at round %d of view %d", round_, view_.epoch));
  co_return absl::OkStatus();
}

}  // namespace gossamer
