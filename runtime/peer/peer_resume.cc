// How a peer takes up what its checkpoints hold as its first view begins.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/edge/saved_edge.h"
#include "runtime/peer/peer.h"

namespace gossamer {
namespace {

// What of a first view says where a life begins.
struct Beginning {
  uint64_t resumed = 0;  // from the checkpoint of this round; 0: from none
  uint64_t round = 0;
  explicit Beginning(const View& view)
      : resumed(view.resume_round),
        round(resumed != 0 ? resumed : std::max<uint64_t>(1, view.from_round)) {
  }
  friend bool operator==(const Beginning&, const Beginning&) = default;
};

struct Found {
  absl::StatusOr<std::vector<StoredCheckpoint>> list;
  absl::StatusOr<Checkpoint> saved;  // that of the round to resume from
};

Found Read(const CheckpointStore& store, uint64_t resumed) {
  Found found{.list = store.List(), .saved = absl::NotFoundError("")};
  if (resumed != 0) found.saved = store.Load(resumed);
  return found;
}

std::string Whose(const CheckpointId& id) {
  return absl::StrCat("peer ", id.peer_id, " of run '", id.run_id,
                      "' with layout ", absl::Hex(id.layout_fingerprint),
                      " and configuration ", absl::Hex(id.configuration_hash));
}

absl::Status CheckOwn(const CheckpointId& saved, CheckpointId own) {
  own.round = saved.round;
  if (saved == own) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint of round ", saved.round, " is of ",
                   Whose(saved), "; this is ", Whose(own)));
}

absl::StatusOr<SavedEdges> TakeEdges(Checkpoint& saved) {
  SavedEdges edges;
  for (auto it = saved.bytes.begin(); it != saved.bytes.end();) {
    absl::string_view name = it->first;
    uint64_t peer = 0;
    if (!absl::ConsumePrefix(&name, kEdgePrefix) ||
        !absl::SimpleAtoi(name, &peer)) {
      ++it;
      continue;
    }
    GOSSAMER_ASSIGN_OR_RETURN(SavedEdge edge, DecodeSavedEdge(it->second));
    edges.emplace(PeerId{peer}, std::move(edge));
    it = saved.bytes.erase(it);
  }
  return edges;
}

}  // namespace

// Files are read and renamed on the compute engine: with states of gigabytes
// that takes longer than a lease.  Meanwhile the fleet may begin elsewhere, or
// without this peer.
Task<absl::StatusOr<SavedEdges>> Peer::TakeUp() {
  const View& view = parts_.membership->view();
  CheckpointStore* const store = parts_.checkpoints;
  absl::StatusOr<SavedEdges> edges = SavedEdges();
  std::optional<Beginning> begun;
  while (view.epoch != 0 && !view.DepartureOf(spec_.self) && !leaves_now_ &&
         begun != Beginning(view)) {
    begun = Beginning(view);
    edges = SavedEdges();
    if (store == nullptr && begun->resumed == 0) continue;
    if (store == nullptr) {
      co_return absl::FailedPreconditionError(
          absl::StrCat("the fleet resumes from round ", begun->resumed,
                       ", but this peer has no checkpoint folder"));
    }
    std::optional<Found> found;
    co_await Compute([&] { found = Read(*store, begun->resumed); });
    TellDamaged(found->list);
    if (leaves_now_ || begun != Beginning(view)) continue;
    if (begun->resumed != 0) {
      GOSSAMER_CO_RETURN_IF_ERROR(found->saved.status());
      edges = Restore(*found->saved);
      GOSSAMER_CO_RETURN_IF_ERROR(edges.status());
    } else if (!found->list.ok() || found->list->empty()) {
      continue;
    }
    // Sound, what is later may be: another peer could not read its own for a
    // moment, or is not as far.
    absl::StatusOr<uint64_t> aside = 0;
    co_await Compute([&] { aside = store->SetAsideAfter(begun->round); });
    GOSSAMER_CO_RETURN_IF_ERROR(aside.status());
    if (*aside == 0) continue;
    Tell("checkpoint_aside",
         absl::StrFormat("the fleet is at round %d; the checkpoint of round %d "
                         "is set-aside-round-%d now",
                         begun->round, *aside, *aside));
  }
  co_return edges;
}

void Peer::TellDamaged(
    const absl::StatusOr<std::vector<StoredCheckpoint>>& list) {
  if (!list.ok()) {
    Tell("checkpoint_damaged", std::string(list.status().message()));
    return;
  }
  for (const StoredCheckpoint& stored : *list) {
    if (stored.whole.ok()) continue;
    Tell("checkpoint_damaged", std::string(stored.whole.message()));
  }
}

absl::StatusOr<SavedEdges> Peer::Restore(Checkpoint& saved) {
  GOSSAMER_RETURN_IF_ERROR(CheckOwn(saved.id, OwnId()));
  GOSSAMER_ASSIGN_OR_RETURN(auto edges, TakeEdges(saved));
  GOSSAMER_RETURN_IF_ERROR(
      RestoreCheckpoint(saved, [this](StateVisitor& v) { VisitState(v); }));
  round_ = saved.id.round;
  has_state_ = true;
  Tell("resumed",
       absl::StrCat("from round ", round_, " with ", edges.size(), " edges"));
  return edges;
}

}  // namespace gossamer
