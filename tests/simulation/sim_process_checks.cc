// The invariants of a peer's process, checked after each of its events.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "algorithms/edge/saved_edge.h"
#include "tests/simulation/sim_process.h"

namespace gossamer::simulation {
namespace {

// The liveness limit on a clock that is off, as a factor.
constexpr double kLongestWait = 1.1;
// A payload is no wider than float32.  A state has no more than so many
// vectors, with names and numbers around them.
constexpr size_t kVectorsOfAState = 8;
constexpr size_t kAround = 8192;

}  // namespace

// The disk without read errors, to see what is there.
DiskSession SimProcess::SoundDisk() {
  static constexpr DiskSession::Errors kNone;
  return {&machine_.disk, &crash_, &kNone, key_};
}

// Checks that a saved checkpoint is there, whatever happened to the disk.
void SimProcess::CheckSaved() {
  DiskSession sound = SoundDisk();
  const CheckpointStore store(kCheckpoints, 1, sound);
  const std::vector<uint64_t> rounds = store.Rounds();
  if (machine_.saved_round == 0) return;
  if (rounds.empty() || rounds.back() < machine_.saved_round) {
    Violation(absl::StrFormat(
        "the checkpoint of round %d was saved and is lost; the newest is %d",
        machine_.saved_round, rounds.empty() ? 0 : rounds.back()));
  }
}

// Checks that a set-aside checkpoint is where its event says.
void SimProcess::CheckSetAside(const std::string& told) {
  for (const absl::string_view word : absl::StrSplit(told, ' ')) {
    if (!absl::StartsWith(word, "set-aside-")) continue;
    const std::string path = absl::StrCat(kCheckpoints, "/", word);
    if (SoundDisk().Exists(path + "/manifest.textproto")) return;
  }
  Violation(absl::StrCat("it is not there: ", told));
}

void SimProcess::Check() {
  if (!peer_ || crash_.dead()) return;
  if (peer_->next_look() >
      loop_.Now() + kLongestWait * world_.scenario.LivenessLimit()) {
    Violation("it waits without a deadline");
  }
  // The bound is four states: one that is given, one that comes, and two that
  // have come.
  if (peer_->state_bytes() >
      4 * (kVectorsOfAState * game_->parameters().size_bytes() + kAround)) {
    Violation(absl::StrCat("holds ", peer_->state_bytes(), " bytes of states"));
  }
  CheckView();
  // A frame from a peer moves its edge alone; every other event may move any.
  const std::optional<PeerId> heard = transport_->TakeHeard();
  if (!heard) {
    CheckEdges();
  } else if (const Edge* e = edge(*heard); e != nullptr) {
    CheckEdge(*e, seen_[*heard]);
  }
}

void SimProcess::CheckEdges() {
  // Both lists are in the order of peers.  An edge that was given up begins
  // anew if it comes back.
  auto seen = seen_.begin();
  peer_->neighborhood().VisitEdges([&](const Edge& e) {
    while (seen != seen_.end() && seen->first < e.other()) {
      seen = seen_.erase(seen);
    }
    if (seen == seen_.end() || e.other() < seen->first) {
      seen = seen_.emplace_hint(seen, e.other(), Seen{});
    }
    CheckEdge(e, seen->second);
    ++seen;
  });
  seen_.erase(seen, seen_.end());
}

void SimProcess::CheckView() {
  const View& view = client_->view();
  if (view.epoch == 0) {
    // The peer has not begun by that view, and begins as at first.
    if (!client_->took_up()) {
      seen_view_ = {};
      views_.clear();
    }
    return;
  }
  if (view.generation == seen_view_.generation &&
      view.epoch == seen_view_.epoch) {
    return;
  }
  if (!view.NewerThan(seen_view_)) Violation("took a view that is older");
  // The peer gives up the checkpoints after that round, and has none yet of the
  // parameters that others give it.
  if (seen_view_.epoch == 0) {
    machine_.saved_round = std::min(machine_.saved_round, view.resume_round);
  }
  seen_view_ = view;
  for (const auto& [peer, seen] : seen_) excused_.insert(peer);
  auto& known = world_.views[{view.generation, view.epoch}];
  std::shared_ptr<const View> same = known.lock();
  if (!same) known = same = std::make_shared<const View>(view);
  views_.push_back(same);
  if (same->from_round != view.from_round ||
      same->overlap_steps != view.overlap_steps ||
      same->members != view.members) {
    Violation(absl::StrFormat(
        "view %d of generation %d is not the one that others have", view.epoch,
        view.generation));
  }
}

void SimProcess::ReportEdges() {
  if (!peer_) return;
  peer_->neighborhood().VisitEdges([this](const Edge& edge) {
    const auto& s = edge.state();
    world_.tell(
        machine_.id,
        absl::StrFormat("round %d: edge to peer %d: decided %d.%d heard %d.%d "
                        "done %d.%d peer_done %d.%d told %d.%d, %d mine, %d "
                        "theirs, epoch %d peer_epoch %d%s%s%s",
                        round(), edge.other().value, RoundOf(s.decided),
                        s.decided % kMaxPhases, RoundOf(s.heard),
                        s.heard % kMaxPhases, RoundOf(s.done),
                        s.done % kMaxPhases, RoundOf(s.peer_done),
                        s.peer_done % kMaxPhases, RoundOf(s.told),
                        s.told % kMaxPhases, s.mine.size(), s.theirs.size(),
                        s.epoch, s.peer_epoch, s.connected ? " connected" : "",
                        s.ready ? " ready" : "", s.owes ? " owes" : ""));
  });
}

void SimProcess::CheckEdge(const Edge& edge, Seen& seen) {
  const auto& s = edge.state();
  const Seen now = {s.epoch, s.peer_epoch, s.decided,     s.heard,
                    s.done,  s.peer_done,  s.mine.size(), s.theirs.size()};
  if (now == seen) return;
  const auto wrong = [&](const char* what) {
    Violation(absl::StrFormat("edge to peer %d: %s", edge.other().value, what));
  };
  if (s.epoch != seen.epoch) {
    if (s.epoch < seen.epoch) wrong("the epoch fell");
    const std::string shared = world_.ledger.Own(machine_.id, s.epoch);
    if (!shared.empty()) Violation(shared);
  }
  // An edge in place of a closed one has not met the other end yet.
  const bool anew = s.epoch > seen.epoch && s.peer_epoch == 0;
  if (s.peer_epoch < seen.peer_epoch && !anew) {
    wrong("the other end's epoch fell");
  }
  if (s.decided < seen.decided) wrong("what was decided is not any more");
  if (s.epoch == seen.epoch && s.peer_epoch == seen.peer_epoch &&
      (s.heard < seen.heard || s.done < seen.done ||
       s.peer_done < seen.peer_done)) {
    wrong("what was heard or complete is not any more");
  }
  if (s.done > s.decided || s.done > s.heard) {
    wrong("complete beyond what both ends decided");
  }
  if (s.mine.size() > 2 * s.window) wrong("retains more than 2W payloads");
  if (s.Waiting() > 2 * s.peer_window) wrong("holds more than 2W payloads");
  CheckMemory(edge);
  seen = now;
}

void SimProcess::CheckMemory(const Edge& edge) {
  const auto& s = edge.state();
  const size_t payload = game_->parameters().size_bytes() + 64;
  size_t mine = 0, theirs = 0;
  for (const auto& held : s.mine) mine += held.token.bytes.size();
  for (const auto& held : s.theirs) theirs += held.token.bytes.size();
  if (mine > 4 * s.window * payload || theirs > 4 * s.peer_window * payload) {
    Violation(absl::StrFormat(
        "edge to peer %d: retains %d bytes of its own and %d of the other end",
        edge.other().value, mine, theirs));
  }
}

// Checks the one limit of memory that a peer is given.  The limit goes by
// ranks, and an edge keeps the replica it was made with though a later view
// changes ranks; so does an edge from a checkpoint, or one whose other end has
// its replica from such a view.  Only edges to members that the present view
// has made count, and twice the limit is allowed for ends that met in different
// views.
void SimProcess::CheckReplicas() {
  if (world_.scenario.replica_edges == 0) return;
  uint64_t bytes = 0;
  peer_->neighborhood().VisitEdges([&](const Edge& edge) {
    if (!edge.side().codec().needs_replica()) return;
    if (excused_.contains(edge.other()) || !view().RankOf(edge.other())) return;
    const CodecSide::Saved saved = edge.side().Save();
    bytes += sizeof(float) * (saved.replica.size() + saved.difference.size());
  });
  if (bytes <= 2 * ReplicaMemory()) return;
  Violation(absl::StrFormat(
      "holds %d bytes of replicas of one view's edges, of %d that it may",
      bytes, ReplicaMemory()));
}

void SimProcess::NoteGiven() {
  const std::span<const float> x = parameters();
  if (world_.given.empty()) {
    for (const float v : x) world_.given.emplace_back(v, v);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    auto& [low, high] = world_.given[i];
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
}

// Checks that the average of states lies between them.
void SimProcess::CheckReceived() {
  const std::span<const float> x = parameters();
  for (size_t i = 0; i < x.size(); ++i) {
    const auto& [low, high] = world_.given.at(i);
    const float slack = 1e-5f * std::max(std::abs(low), std::abs(high));
    if (x[i] >= low - slack && x[i] <= high + slack) continue;
    Violation(
        absl::StrFormat("got %g as parameter %d of members that gave %g to %g",
                        x[i], i, low, high));
    return;
  }
}

// A checkpoint has just been restored: the corrections in it count as applied.
void SimProcess::NotePast(uint64_t round) {
  DiskSession sound = SoundDisk();
  const auto saved = CheckpointStore(kCheckpoints, 1, sound).Load(round);
  if (!saved.ok()) return;
  for (const auto& [name, bytes] : saved->bytes) {
    if (!absl::StartsWith(name, kEdgePrefix)) continue;
    const auto edge = DecodeSavedEdge(bytes);
    if (!edge.ok()) continue;
    const PeerId other{std::stoull(name.substr(kEdgePrefix.size()))};
    excused_.insert(other);
    world_.ledger.Resume(
        {machine_.id, other, edge->record.epoch, edge->record.peer_epoch},
        edge->record.done, edge->record.cut);
  }
}

}  // namespace gossamer::simulation
