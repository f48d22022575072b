#include "tests/simulation/edge_watch.h"

#include "absl/strings/str_format.h"

namespace gossamer::simulation {

void EdgeWatch::Check(const Neighborhood& edges, std::optional<PeerId> heard) {
  if (!heard) {
    CheckAll(edges);
  } else if (const Edge* e = edges.edge(*heard); e != nullptr) {
    CheckEdge(*e, seen_[*heard]);
  }
}

void EdgeWatch::CheckAll(const Neighborhood& edges) {
  // Both lists are in the order of peers.  An edge that was given up begins
  // anew if it comes back.
  auto seen = seen_.begin();
  edges.VisitEdges([&](const Edge& e) {
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

void EdgeWatch::CheckEdge(const Edge& edge, Seen& seen) {
  const auto& s = edge.state();
  const Seen now = {s.epoch, s.peer_epoch, s.decided,     s.received,
                    s.done,  s.peer_done,  s.mine.size(), s.theirs.size()};
  if (now == seen) return;
  const auto wrong = [&](const char* what) {
    violation_(
        absl::StrFormat("edge to peer %d: %s", edge.other().value, what));
  };
  if (s.epoch != seen.epoch) {
    if (s.epoch < seen.epoch) wrong("the epoch fell");
    const std::string shared = ledger_.Own(self_, process_, s.epoch);
    if (!shared.empty()) violation_(shared);
  }
  // An edge in place of a closed one has not met the other end yet.
  const bool anew = s.epoch > seen.epoch && s.peer_epoch == 0;
  if (s.peer_epoch < seen.peer_epoch && !anew) {
    wrong("the other end's epoch fell");
  }
  if (s.decided < seen.decided) wrong("what was decided is not any more");
  if (s.epoch == seen.epoch && s.peer_epoch == seen.peer_epoch &&
      (s.received < seen.received || s.done < seen.done ||
       s.peer_done < seen.peer_done)) {
    wrong("what was heard or complete is not any more");
  }
  if (s.done > s.decided || s.done > s.received) {
    wrong("complete beyond what both ends decided");
  }
  if (s.mine.size() > 2 * s.window) wrong("retains more than 2W payloads");
  if (s.Waiting() > 2 * s.peer_window) wrong("holds more than 2W payloads");
  CheckMemory(edge);
  seen = now;
}

void EdgeWatch::CheckMemory(const Edge& edge) const {
  const auto& s = edge.state();
  // A payload is no wider than float32, with a head.
  const size_t payload = limits_.parameters + 64;
  size_t mine = 0, theirs = 0;
  for (const auto& held : s.mine) mine += held.token.bytes.size();
  for (const auto& held : s.theirs) theirs += held.token.bytes.size();
  if (mine > 4 * s.window * payload || theirs > 4 * s.peer_window * payload) {
    violation_(absl::StrFormat(
        "edge to peer %d: retains %d bytes of its own and %d of the other end",
        edge.other().value, mine, theirs));
  }
}

// The limit goes by ranks, and an edge keeps the replica it was made with
// though a later view changes ranks; so does an edge from a checkpoint, or one
// whose other end has its replica from such a view.  Only edges to members that
// the present view has made count, and twice the limit is allowed for ends that
// met in different views.
void EdgeWatch::CheckReplicas(const Neighborhood& edges,
                              const View& view) const {
  if (limits_.replicas == 0) return;
  uint64_t bytes = 0;
  edges.VisitEdges([&](const Edge& edge) {
    if (!edge.codec_state().codec().needs_replica()) return;
    if (excused_.contains(edge.other()) || !view.RankOf(edge.other())) return;
    const EdgeCodecState::Saved saved = edge.codec_state().Save();
    bytes += sizeof(float) * (saved.replica.size() + saved.difference.size());
  });
  if (bytes <= 2 * limits_.replicas) return;
  violation_(absl::StrFormat(
      "holds %d bytes of replicas of one view's edges, of %d that it may",
      bytes, limits_.replicas));
}

}  // namespace gossamer::simulation
