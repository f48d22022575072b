#include "runtime/peer/state_sharing.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/kernels/kernels.h"
#include "runtime/base/sha256.h"
#include "runtime/checkpoint/peer_state.h"

namespace gossamer {
namespace {

// The waits of a collector are seconds and minutes (state_transfer.cc); nobody
// wakes it when one is over.
constexpr absl::Duration kDonorPollInterval = absl::Milliseconds(250);

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
    return absl::DataLossError(
        absl::StrCat("its ", std::string(name), " are beyond ", largest));
  }
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> StateOf(TrainingState* state) {
  absl::StatusOr<Checkpoint> taken =
      TakeCheckpoint({}, [state](StateVisitor& v) { state->VisitState(v); });
  // The values of a device that has failed are zeros.
  GOSSAMER_RETURN_IF_ERROR(state->queue().status());
  return taken;
}

}  // namespace

StateSharing::StateSharing(const PeerSpec& spec, Parts parts)
    : spec_(spec), parts_(std::move(parts)), donor_(SendFrames()) {}

SendState StateSharing::SendFrames() {
  return [transport = parts_.transport](PeerId peer, Frame frame) {
    return transport->Send(peer, Channel::kState, std::move(frame));
  };
}

void StateSharing::ServeJoiners() {
  std::set<PeerId> joiners;
  for (const Member& m : parts_.membership->joiners()) {
    joiners.insert(m.id);
    parts_.transport->Connect(m.id, m.address);
  }
  for (const PeerId peer : served_) {
    if (joiners.contains(peer)) continue;
    const View& view = parts_.membership->view();
    const std::optional<int> rank = view.RankOf(peer);
    if (!parts_.has_edge(peer)) {
      parts_.transport->Disconnect(peer);
    } else if (rank) {
      // A joiner that was admitted keeps the connection for its edge.  A joiner
      // that was refused was a second process of a member, elsewhere.
      parts_.transport->Connect(
          peer, view.members[static_cast<size_t>(*rank)].address);
    }
  }
  // A connection for this peer's own join is not needed any more, unless it is
  // an edge's.
  for (const PeerId donor : std::exchange(donors_, {})) {
    if (!joiners.contains(donor) && !parts_.has_edge(donor)) {
      parts_.transport->Disconnect(donor);
    }
  }
  served_ = joiners;
  donor_.Serve(std::move(joiners));
}

void StateSharing::OnFrame(PeerId peer, const Frame& frame) {
  const absl::Time now = parts_.loop->Now();
  // A peer may collect and give at once; each takes only frames of its own
  // kinds.
  if (collector_) collector_->OnFrame(peer, frame, now);
  donor_.OnFrame(peer, frame, now);
  OfferIfWanted();
}

void StateSharing::Tick() {
  donor_.Tick(parts_.loop->Now());
  OfferIfWanted();
}

void StateSharing::OfferIfWanted() {
  if (!donor_.wanted() || !parts_.in_fleet()) return;
  // Asked for during a step, the state is at hand at its end.
  if (!parts_.state->Prepare() || parts_.state->stepping()) return;
  if (!parts_.state->Sound()) {
    // A state that is not sound is worse than none.  The joiner may be the one
    // that this peer waits for, so the wait must end (health.cc).
    parts_.health->OnDonationFailed();
    parts_.waiter->Notify();
    return;
  }
  absl::StatusOr<Checkpoint> state = StateOf(parts_.state);
  if (state.ok()) return Offer(*std::move(state));
  donor_.Refuse();
  const uint64_t news = unoffered_.Due(++not_offered_);
  if (news == 0) return;
  parts_.reporter->Report("state_not_offered",
                          std::string(state.status().message()), news);
}

// Writing a state out and hashing it take as long as some rounds do when it is
// large: the loop, which answers everybody, does not wait for them.
void StateSharing::Offer(Checkpoint state) {
  parts_.reporter->Report("state_offered",
                          absl::StrFormat("as after step %d, to a peer that "
                                          "joins",
                                          parts_.state->steps()));
  struct Written {
    Checkpoint state;
    std::vector<std::byte> bytes;
    std::string hash;
  };
  const auto written = std::make_shared<Written>();
  written->state = std::move(state);
  donor_.Prepare();
  parts_.compute->Run(
      [written] {
        written->bytes = EncodeState(written->state);
        written->hash = Sha256(written->bytes);
      },
      [this, written, alive = std::weak_ptr<bool>(alive_)] {
        if (alive.expired()) return;
        donor_.Offer(std::move(written->bytes), std::move(written->hash),
                     parts_.loop->Now());
      });
}

absl::StatusOr<std::unique_ptr<StateCollector>> StateSharing::MakeCollector() {
  GOSSAMER_ASSIGN_OR_RETURN(Checkpoint own, StateOf(parts_.state));
  // A member's state has the own one's shape, but for what a caller keeps
  // beside its parameters: an optimizer's moments come with its first step.
  // Four times as much and a mebibyte leave room for those, names and metadata,
  // and bound what a false offer makes this peer allocate.
  const size_t most = 4 * SizeOf(own) + (1 << 20);
  return std::make_unique<StateCollector>(
      SendFrames(),
      [this](std::function<void()> work, std::function<void()> done) {
        parts_.compute->Run(std::move(work),
                            [this, done = std::move(done),
                             alive = std::weak_ptr<bool>(alive_)] {
                              if (alive.expired()) return;
                              done();
                              parts_.waiter->Notify();
                            });
      },
      most, spec_.liveness_limit,
      [own = std::make_shared<const Checkpoint>(std::move(own)),
       largest = spec_.limits.largest](const Checkpoint& given) {
        return CheckGiven(given, *own, largest);
      });
}

void StateSharing::RefreshDonors() {
  std::vector<PeerId> donors;
  for (const Member& d : parts_.membership->donors()) {
    donors.push_back(d.id);
    donors_.insert(d.id);
    parts_.transport->Connect(d.id, d.address);
  }
  collector_->SetDonors(donors, parts_.loop->Now());
  collector_->Tick(parts_.loop->Now());
}

Task<absl::StatusOr<bool>> StateSharing::Collect(std::function<bool()> enough) {
  const absl::Time limit = parts_.loop->Now() + spec_.liveness_limit;
  const std::function<bool()> enough_or_late = [&] {
    return enough() || parts_.loop->Now() >= limit;
  };
  co_await parts_.state->Prepared(*parts_.waiter, *parts_.loop, enough_or_late);
  absl::StatusOr<std::unique_ptr<StateCollector>> made = MakeCollector();
  GOSSAMER_CO_RETURN_IF_ERROR(made.status());
  collector_ = *std::move(made);
  const bool ended = co_await parts_.waiter->Until(
      [&] {
        if (enough()) return true;
        RefreshDonors();
        return collector_->done();
      },
      limit, [this] { return parts_.loop->Now() + kDonorPollInterval; });
  // From here on no frame reaches it: what it has is taken.
  const std::unique_ptr<StateCollector> collector = std::move(collector_);
  for (const std::string& failure : collector->TakeFailures()) {
    parts_.reporter->Report("state_failed", failure);
  }
  if (!ended || !collector->done()) co_return false;
  GOSSAMER_CO_RETURN_IF_ERROR(RestoreCheckpoint(
      collector->Take(),
      [this](StateVisitor& v) { parts_.state->VisitState(v); }));
  parts_.reporter->Report(
      "state_received",
      absl::StrFormat("the %s of %d members",
                      collector->given() == 3 ? "median" : "average",
                      collector->given()));
  co_return true;
}

}  // namespace gossamer
