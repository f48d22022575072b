#include "runtime/peer/checkpointer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/edge/saved_edge.h"
#include "runtime/checkpoint/peer_state.h"
#include "runtime/peer/compute.h"

namespace gossamer {
namespace {

// A running peer does not wait longer than this many rounds for the edges of a
// checkpoint; unsealed ones are left out (PROTOCOL.md 6).  A neighbour that is
// gone would keep the checkpoint from the disk for ever.
constexpr uint64_t kMaxSealingRounds = 64;

// The round and the checkpoint at which a first view has a peer begin.
// Two views that begin at the same place are one for Resume(): it reads files
// again only if this changes.
struct Beginning {
  uint64_t resumed = 0;  // from the checkpoint of this round; 0: from none
  uint64_t round = 0;
  explicit Beginning(const View& view)
      : resumed(view.resume_round),
        round(resumed != 0 ? resumed : std::max<uint64_t>(1, view.from_round)) {
  }
  friend bool operator==(const Beginning&, const Beginning&) = default;
};

// The result of one visit to the disk.
struct Found {
  absl::StatusOr<std::vector<StoredCheckpoint>> list;
  absl::StatusOr<Checkpoint> saved;  // that of the round to resume from
  absl::StatusOr<uint64_t> free;     // bytes
};

Found Read(const CheckpointStore& store, uint64_t resumed) {
  Found found{.list = store.List(),
              .saved = absl::NotFoundError(""),
              .free = store.FreeBytes()};
  if (resumed != 0) found.saved = store.Load(resumed);
  return found;
}

std::string Whose(const CheckpointId& id) {
  return absl::StrCat("peer ", id.peer_id, " of run '", id.run_id,
                      "' with layout ", absl::Hex(id.layout_fingerprint),
                      " and configuration ", absl::Hex(id.configuration_hash));
}

absl::Status CheckOwn(const CheckpointId& saved, CheckpointId own) {
  // Only the round may differ.
  own.round = saved.round;
  if (saved == own) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint of round ", saved.round, " is of ",
                   Whose(saved), "; this is ", Whose(own)));
}

std::string VectorName(PeerId edge, std::string_view vector) {
  return absl::StrCat(kEdgePrefix, edge.value, ".", std::string(vector));
}

// The vectors are moved, so a checkpoint with them costs no memory beside the
// records.
void GiveEdge(PeerId peer, SavedEdge& edge, Checkpoint& to) {
  to.bytes[absl::StrCat(kEdgePrefix, peer.value)] = EncodeSavedEdge(edge);
  edge.record = {};  // its payloads are given back
  for (const auto& [name, vector] : edge.codec_state.Vectors()) {
    if (vector->empty()) continue;
    to.floats[VectorName(peer, name)] = std::move(*vector);
  }
}

void TakeVectors(Checkpoint& from, PeerId peer, SavedEdge& edge) {
  for (const auto& [name, vector] : edge.codec_state.Vectors()) {
    auto taken = from.floats.extract(VectorName(peer, name));
    if (!taken.empty()) *vector = std::move(taken.mapped());
  }
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
    TakeVectors(saved, PeerId{peer}, edge);
    edges.emplace(PeerId{peer}, std::move(edge));
    // RestoreCheckpoint() refuses names that the state does not ask for, and
    // edges are no part of it.
    it = saved.bytes.erase(it);
  }
  return edges;
}

}  // namespace

Checkpointer::Checkpointer(const PeerSpec& spec, ComputeEngine* disk,
                           CheckpointStore* store, Neighborhood* neighborhood,
                           TrainingState* state, Reporter* reporter)
    : spec_(spec),
      disk_(disk),
      store_(store),
      neighborhood_(neighborhood),
      state_(state),
      reporter_(reporter) {}

Checkpointer::~Checkpointer() {
  // Nothing reads the state any longer.
  state_->BeforeChange(nullptr);
}

CheckpointId Checkpointer::OwnId() const {
  return {.run_id = spec_.run_id,
          .peer_id = spec_.self.value,
          .round = state_->round(),
          .layout_fingerprint = state_->layout().fingerprint(),
          .configuration_hash = spec_.configuration_hash};
}

void Checkpointer::Reserve() {
  // On a device nothing else of the state is in the host's memory.
  if (!saves() || spec_.checkpoint_every == 0 || !state_->queue().on_host()) {
    return;
  }
  absl::StatusOr<Checkpoint> taken = TakeCheckpoint(
      OwnId(), [this](StateVisitor& v) { state_->VisitState(v); });
  if (!taken.ok()) return;
  spare_ = *std::move(taken);
  ReportTightDisk(SizeOf(spare_), free_, there_);
}

// The disk's thread touches the pages, so no round waits for them.
void Checkpointer::ReserveEdges() {
  if (!saves() || spec_.checkpoint_every == 0 || !state_->queue().on_host() ||
      reserving_ || !taken_.empty() || writing_ != nullptr) {
    return;
  }
  const auto room = std::make_shared<SavedEdges>();
  neighborhood_->VisitEdges([&](const Edge& edge) {
    if (edge.ended() || spare_edges_.contains(edge.other())) return;
    EdgeCodecState::Saved state = edge.codec_state().Room();
    size_t floats = 0;
    for (const auto& [name, vector] : state.Vectors()) {
      floats += vector->capacity();
    }
    if (floats > 0) (*room)[edge.other()].codec_state = std::move(state);
  });
  if (room->empty()) return;
  reserving_ = true;
  disk_->Run(
      [room] {
        for (auto& [peer, edge] : *room) {
          for (const auto& [name, vector] : edge.codec_state.Vectors()) {
            vector->resize(vector->capacity());
          }
        }
      },
      [this, alive = std::weak_ptr<bool>(alive_), room] {
        if (alive.expired()) return;
        reserving_ = false;
        spare_edges_.merge(*room);
      });
}

bool Checkpointer::Due() const {
  const uint64_t round = state_->round();
  // `round` is the next one, so the first checkpoint comes after
  // `checkpoint_every` rounds.  That of the end is BeginLast()'s.
  return saves() && spec_.checkpoint_every > 0 && round <= spec_.rounds &&
         (round - 1) % spec_.checkpoint_every == 0;
}

void Checkpointer::BeginIfDue() {
  if (!Due()) return ReserveEdges();
  if (Full()) return ReportSkipped();
  // The record of a cut that is not saved would stay until a later one is.
  if (!Take()) neighborhood_->DropRecord(MakeExchangeId(state_->round()));
}

// A checkpoint is sealed once the neighbours' announcements of its round have
// come, which takes as many rounds as exchanges overlap with.  Each holds a
// copy of the state, so none is taken to wait for a disk that needs more than a
// round: memory that is new costs its round more than a copy does.
bool Checkpointer::Full() const {
  const int h =
      spec_.overlap_steps == kAutoOverlap ? kMaxOverlap : spec_.overlap_steps;
  return taken_.size() > static_cast<size_t>(h) ||
         (writing_ != nullptr && state_->round() > writing_->began + 1);
}

void Checkpointer::ReportSkipped() {
  const uint64_t times = skips_.Due(++skipped_);
  if (times == 0) return;
  const Taken& oldest =
      writing_ != nullptr ? *writing_->taken : *taken_.front();
  reporter_->Report(
      "checkpoint_skipped",
      absl::StrCat("round ", state_->round(),
                   " has no checkpoint: that of round ",
                   oldest.checkpoint.id.round,
                   writing_ != nullptr ? " waits for the disk"
                                       : " waits for its neighbours",
                   " (", skipped_, " skipped so far); checkpoint.every ",
                   spec_.checkpoint_every, " saves fewer rounds than it says"),
      times);
}

void Checkpointer::BeginLast(bool own) {
  // Without a checkpoint of its own the peer still ends its part of the cut.
  if (store_ == nullptr || !own) {
    return neighborhood_->BeginRecord(MakeExchangeId(state_->round()));
  }
  Take();
}

bool Checkpointer::Take() {
  // The last round's may be due as well: its record begins anew.
  if (!taken_.empty() &&
      taken_.back()->checkpoint.id.round == state_->round()) {
    taken_.pop_back();
  }
  // Records begin whether or not there is something to save: neighbours seal
  // theirs by this end's announcement.
  neighborhood_->BeginRecord(MakeExchangeId(state_->round()),
                             std::exchange(spare_edges_, SavedEdges()));
  if (!state_->Sound()) {
    reporter_->Report("checkpoint_failed",
                      "this peer's parameters are not finite; the checkpoints "
                      "before stay");
    return false;
  }
  // The copy lets training go on while the checkpoint waits for its edges.  A
  // device's queue is the loop's, so all of its state is copied at once.
  const auto taken = std::make_shared<Taken>();
  absl::StatusOr<Checkpoint> state = TakeCheckpoint(
      OwnId(), [this](StateVisitor& v) { state_->VisitState(v); },
      std::exchange(spare_, Checkpoint()),
      {.prefix = TrainingState::kStableDuringGradient,
       .copy = state_->queue().on_host() ? &taken->deferred : nullptr});
  // The values of a device that has failed are zeros.
  if (const absl::Status device = state_->queue().status(); !device.ok()) {
    state = device;
  }
  if (!state.ok()) {
    reporter_->Report("checkpoint_failed",
                      std::string(state.status().message()));
    return false;
  }
  taken->checkpoint = *std::move(state);
  taken_.push_back(taken);
  state_->BeforeChange([taken] { taken->deferred.Finish(); });
  disk_->Run([taken] { taken->deferred.Help(); }, [] {});
  return true;
}

void Checkpointer::WriteIfSealed() {
  if (taken_.empty() || writing_ != nullptr) return;
  const uint64_t round = taken_.front()->checkpoint.id.round;
  const bool late = state_->round() > round + kMaxSealingRounds;
  if (neighborhood_->Sealed(MakeExchangeId(round)) || late) Write();
}

void Checkpointer::Write() {
  writing_ = std::make_shared<Writing>();
  writing_->taken = std::move(taken_.front());
  writing_->began = state_->round();
  taken_.pop_front();
  // Records that are not sealed are not among these.
  writing_->edges = neighborhood_->TakeRecords(
      MakeExchangeId(writing_->taken->checkpoint.id.round));
  disk_->Run(
      [store = store_, writing = writing_, keeps = state_->queue().on_host()] {
        Checkpoint& checkpoint = writing->taken->checkpoint;
        writing->taken->deferred.Finish();
        for (auto& [peer, edge] : writing->edges) {
          GiveEdge(peer, edge, checkpoint);
        }
        writing->bytes = std::max<size_t>(1, SizeOf(checkpoint));
        writing->saved = store->Save(checkpoint);
        for (auto& [peer, edge] : writing->edges) {
          TakeVectors(checkpoint, peer, edge);
          checkpoint.bytes.erase(absl::StrCat(kEdgePrefix, peer.value));
        }
        // To give the memory of replicas back takes long, too.
        if (!keeps) writing->edges.clear();
        writing->free = store->FreeBytes();
      },
      [this, alive = std::weak_ptr<bool>(alive_), writing = writing_] {
        if (alive.expired()) return;
        const std::string round =
            absl::StrCat("round ", writing->taken->checkpoint.id.round);
        if (writing->saved.ok()) {
          reporter_->Report("checkpoint", round);
          if (!std::exchange(saved_one_, true)) {
            ReportTightDisk(writing->bytes, writing->free, there_ + 1);
          }
        } else {
          // Training does not depend on it: say so and go on.
          reporter_->Report("checkpoint_failed",
                            std::string(writing->saved.message()));
        }
        ReportRoom();
        // On a device nothing else of the state is in the host's memory.
        if (state_->queue().on_host()) {
          spare_ = std::move(writing->taken->checkpoint);
          spare_edges_.merge(writing->edges);
        }
        writing_ = nullptr;
        WriteIfSealed();
        writing->over.Set(writing->saved.ok());
      });
}

void Checkpointer::ReportRoom() {
  const uint64_t gone = store_->gone_for_room();
  if (gone == reported_gone_) return;
  reported_gone_ = gone;
  const uint64_t times = gone_.Due(gone);
  if (times == 0) return;
  reporter_->Report("checkpoint_room",
                    absl::StrCat(gone, " older checkpoints went for room"),
                    times);
}

// Said before the first round, of the state alone, or else with the first
// checkpoint, which has records of edges too: by the time that the disk is
// full, a fleet may have gone far on fewer than it was told to keep.
void Checkpointer::ReportTightDisk(uint64_t bytes,
                                   const absl::StatusOr<uint64_t>& free,
                                   size_t there) {
  if (!free.ok() || told_tight_) return;
  const uint64_t fits = *free / std::max<uint64_t>(1, bytes);
  there = std::min(there, store_->most() - 1);
  if (there + fits >= store_->most()) return;
  told_tight_ = true;
  reporter_->Report(
      "checkpoint_room",
      absl::StrFormat("the disk has room for %d checkpoints of %.1f MB beside "
                      "the %d that are there, and checkpoint.keep %d needs "
                      "room for %d, with the one that is being written: fewer "
                      "will be kept",
                      fits, 1e-6 * static_cast<double>(bytes), there,
                      store_->most() - 1, store_->most()));
}

Task<bool> Checkpointer::Finish(bool newest) {
  bool saved = false;
  if (newest && taken_.size() > 1) {
    taken_.erase(taken_.begin(), taken_.end() - 1);
  }
  while (writing_ != nullptr || !taken_.empty()) {
    if (writing_ == nullptr) Write();
    const Pending<bool> over = writing_->over;
    saved = co_await over;
  }
  co_return saved;
}

// Files are read and renamed beside the loop: with states of gigabytes that
// takes longer than a lease.
Task<absl::StatusOr<Checkpointer::Resumed>> Checkpointer::Resume(
    const View& view, std::function<bool()> out_of_time) {
  // `view` is the membership's and changes during each wait.  Files that were
  // read for a view that no longer holds are read again for the newer one.
  Resumed resumed;
  std::optional<Beginning> begun;
  while (view.epoch != 0 && !view.DepartureOf(spec_.self) && !out_of_time() &&
         begun != Beginning(view)) {
    begun = Beginning(view);
    resumed.edges = SavedEdges();
    // There is nothing to read: the condition of the loop ends it, or finds a
    // newer view.
    if (store_ == nullptr && begun->resumed == 0) continue;
    if (store_ == nullptr) {
      co_return absl::FailedPreconditionError(
          absl::StrCat("the fleet resumes from round ", begun->resumed,
                       ", but this peer has no checkpoint folder"));
    }
    std::optional<Found> found;
    co_await Compute(disk_, [&] { found = Read(*store_, begun->resumed); });
    absl::Status kept;
    if (found->list.ok()) {
      co_await Compute(disk_,
                       [&] { kept = store_->KeepDamaged(*found->list); });
    }
    ReportDamaged(found->list, kept);
    if (found->list.ok()) there_ = found->list->size();
    free_ = found->free;
    if (out_of_time() || begun != Beginning(view)) continue;
    if (begun->resumed != 0) {
      // The fleet begins where all members said that they have an intact
      // checkpoint, so one that cannot be read now is an error.
      GOSSAMER_CO_RETURN_IF_ERROR(found->saved.status());
      absl::StatusOr<SavedEdges> edges = Restore(*found->saved);
      GOSSAMER_CO_RETURN_IF_ERROR(edges.status());
      resumed.edges = *std::move(edges);
      resumed.state = true;
    } else if (!found->list.ok() || found->list->empty()) {
      continue;
    }
    // A later checkpoint may be sound: another peer could not read its own for
    // a moment, or is not as far.
    absl::StatusOr<uint64_t> aside = 0;
    co_await Compute(disk_,
                     [&] { aside = store_->SetAsideAfter(begun->round); });
    // Going on with later checkpoints in place would mix two pasts at the next
    // start.
    GOSSAMER_CO_RETURN_IF_ERROR(aside.status());
    if (*aside == 0) continue;
    reporter_->Report(
        "checkpoint_aside",
        absl::StrFormat("the fleet is at round %d; the checkpoint of round %d "
                        "is set-aside-round-%d now",
                        begun->round, *aside, *aside));
  }
  co_return resumed;
}

void Checkpointer::ReportDamaged(
    const absl::StatusOr<std::vector<StoredCheckpoint>>& list,
    const absl::Status& kept) {
  if (!list.ok()) {
    reporter_->Report("checkpoint_damaged",
                      std::string(list.status().message()));
    return;
  }
  for (const StoredCheckpoint& stored : *list) {
    if (stored.integrity.ok()) continue;
    std::string detail(stored.integrity.message());
    if (!kept.ok()) {
      absl::StrAppend(&detail, "; it was not kept: ", kept.message());
    } else if (absl::IsDataLoss(stored.integrity)) {
      absl::StrAppend(&detail, "; kept as damaged-round-", stored.round);
    }
    reporter_->Report("checkpoint_damaged", detail);
  }
}

absl::StatusOr<SavedEdges> Checkpointer::Restore(Checkpoint& saved) {
  GOSSAMER_RETURN_IF_ERROR(CheckOwn(saved.id, OwnId()));
  GOSSAMER_ASSIGN_OR_RETURN(auto edges, TakeEdges(saved));
  GOSSAMER_RETURN_IF_ERROR(RestoreCheckpoint(
      saved, [this](StateVisitor& v) { state_->VisitState(v); }));
  // The round is the checkpoint's name and no part of its state.
  state_->set_round(saved.id.round);
  reporter_->Report("resumed", absl::StrCat("from round ", state_->round(),
                                            " with ", edges.size(), " edges"));
  return edges;
}

}  // namespace gossamer
