// The neighbours of a peer as its rounds see them: emit a row, see who has
// answered, apply what is due.
//
// Edges hold the edges and their frames, Pacing says how fast each goes.  This
// header knows nothing of gradients, schedules or views.  Everything runs on
// the peer's loop.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_NEIGHBORHOOD_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_NEIGHBORHOOD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/edge/edge.h"
#include "runtime/base/event_loop.h"
#include "runtime/neighborhood/edges.h"
#include "runtime/neighborhood/neighborhood_options.h"
#include "runtime/neighborhood/pacing.h"
#include "runtime/neighborhood/round_chooser.h"
#include "runtime/replay/decisions.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class Neighborhood {
 public:
  using FrameHandler = Edges::FrameHandler;
  using EventHandler = Edges::EventHandler;
  using NewEdge = gossamer::NewEdge;

  // All outlive it; `x` stays where it is.  Becomes the transport's listener.
  Neighborhood(NeighborhoodOptions options, EventLoop* loop,
               Transport* transport, DeviceSpan<float> x);

  // Called when something arrived or a connection changed.
  void SetOnChange(std::function<void()> f) {
    edges_.SetOnChange(std::move(f));
  }
  void SetOnEvent(EventHandler f) { edges_.SetOnEvent(std::move(f)); }
  // Called when something of this peer has come.
  void SetOnHeard(std::function<void(PeerId)> f) {
    edges_.SetOnHeard(std::move(f));
  }
  // Frames of a channel other than kEdge.
  void SetOnFrame(Channel channel, FrameHandler f) {
    edges_.SetOnFrame(channel, std::move(f));
  }
  // Called when a connection has come up.
  void SetOnUp(std::function<void(PeerId)> f) { edges_.SetOnUp(std::move(f)); }
  // Observers of the corrections of an edge, from its first one on; asked once
  // for each edge that is added.  Called before any edge is added.
  void AddObservers(Edges::ObserverOf f) { edges_.AddObservers(std::move(f)); }
  // Outlives this.  At a replay it says instead of the clock what may be
  // emitted and completed.
  void SetDecisions(Decisions* decisions);

  // Keeps an edge; one that is there stays as it is, is active again, and gets
  // the address.  kInvalidArgument if `saved` does not fit.
  absl::Status Add(NewEdge edge) { return edges_.Add(std::move(edge)); }
  bool Has(PeerId peer) const { return edges_.Find(peer) != nullptr; }
  bool HasActiveEdge(PeerId peer) const;
  // No edge is left, or nothing is under way on it and its other end is there:
  // it has decided the first exchange, or is connected.
  bool EdgeDone(PeerId peer) const;
  std::set<PeerId> Peers() const;  // of all edges
  // Peers whose silence counts: of all edges but inactive ones, or those that
  // the other end may not know yet.
  std::set<PeerId> Watched() const;
  // Gives the edge up at once, with what is under way on it: the peer is gone.
  void Drop(PeerId peer) { edges_.Drop(peer); }
  // The peers that the newest view that is known has this one mix with.  The
  // others may have given their edges up and are waited for only while they are
  // connected.
  void SetNeighbors(const std::set<PeerId>& neighbors) {
    edges_.SetNeighbors(neighbors);
  }
  // Gives all edges up; those to come are of another incarnation.
  void BeginIncarnation() { edges_.BeginIncarnation(); }
  // The edge is in no row from `id` on.  It is waited for no longer, completes
  // what is under way, and is forgotten some time after.  `gone`: for good.
  void Deactivate(PeerId peer, ExchangeId id, bool gone) {
    edges_.Deactivate(peer, id, gone);
  }

  // From here on, on all edges: h, and the step size that would be stable if
  // nothing were late over the one in use (damping.h).
  void SetOverlap(int h, double stable);
  // Sets the length of a round without waiting: of this peer, for deadlines,
  // and of the slowest, for the choice of formats.
  void SetBusy(absl::Duration own, absl::Duration slowest) {
    pacing_.SetBusy(own, slowest);
  }

  // At a replay: the exchange can be emitted as it was, and what was complete
  // after the next boundary can be.
  bool CanEmit(std::span<const RowEntry> row, ExchangeId id) const;
  bool CanComplete(ExchangeId limit) const;
  // Decides exchange `id` on every edge: a payload on those in `row` if it may
  // be, a skip on the others.
  void Emit(std::span<const RowEntry> row, ExchangeId id, bool finite);
  // Decides that all exchanges below `id` are skips, on all edges.
  void SkipTo(ExchangeId id);
  // Applies all that is due: every exchange below `limit`, by neighbour, then
  // by id.  The answers go out with the next Emit() or tick.
  void Complete(ExchangeId limit);

  // Marks edges of `row` overdue that are past their deadline of exchange `id`,
  // and clears the mark of those that have heard it.  `round`: how long one
  // takes.
  void UpdateOverdue(std::span<const RowEntry> row, ExchangeId id,
                     absl::Duration round);
  // True if no edge of `row` holds the round up: each has heard `id`, is
  // overdue, or is not waited for, as one on which nothing of this end is
  // outstanding (its other end may be a new incarnation beyond `id`).  A peer
  // that has heard no neighbour in the round waits for the first deadline all
  // the same, or it would run far ahead.
  bool Arrived(std::span<const RowEntry> row, ExchangeId id,
               absl::Duration round) const;
  // Returns the time at which Arrived() may change by itself, after an
  // UpdateOverdue().
  absl::Time NextDeadline(std::span<const RowEntry> row, ExchangeId id,
                          absl::Duration round) const;
  // Every edge of `row` has heard the other end's hello, is overdue, or is a
  // transient one whose other end may not have made its own.
  bool HandshakesDone(std::span<const RowEntry> row) const;
  // No neighbour has been heard to decide exchange `id`.
  bool NoneHeard(ExchangeId id) const;
  // Returns what the edges show of the others' rounds, without neighbours that
  // have ended: `heard`, `missing`, `waiting` and `idle` of RoundsSeen.
  RoundsSeen ObservedRounds() const;
  // Returns the peers of `row` that have not answered exchange `id`.
  std::vector<PeerId> Missing(std::span<const RowEntry> row,
                              ExchangeId id) const;

  // A fleet cut: all ids below are decided here, and the other ends learn it.
  // The records take the memory of `spare` as far as that fits.
  void BeginRecord(ExchangeId cut, SavedEdges spare = {}) {
    edges_.BeginRecord(cut, std::move(spare));
  }
  // Nothing of the cut will be saved here.
  void DropRecord(ExchangeId cut) { edges_.DropRecord(cut); }
  // Its records are sealed, but for those that cannot be.
  bool Sealed(ExchangeId cut) const { return edges_.Sealed(cut); }
  // Sealed records by neighbour; unsealed ones are left out, and those of
  // earlier cuts are dropped.
  SavedEdges TakeRecords(ExchangeId cut) { return edges_.TakeRecords(cut); }
  // Nothing of this peer is outstanding, nothing waits here; `inactive`: on
  // inactive edges, too, which their other ends may have given up.
  bool Settled(bool inactive = true) const { return edges_.Settled(inactive); }
  // Every edge that is not settled has a connection, to hear what is missing.
  // `cut` is the last one.
  bool MaySettle(ExchangeId cut) const { return edges_.MaySettle(cut); }
  // Sends what is due, where it can go out now.
  void FlushAll() { edges_.FlushAll(); }
  // Sends the payloads that waited for a device.
  void SendReady();

  uint64_t corrections() const { return edges_.corrections(); }
  uint64_t skipped() const { return pacing_.skipped(); }
  uint64_t late() const { return pacing_.late(); }
  // Returns the clipping of all edges, with the longest D since the last call;
  // nullopt without a clip radius.
  std::optional<Clipping> TakeClipping() { return edges_.TakeClipping(); }
  // The size of what is sent or received has changed on some edge since the
  // last call.
  bool TakeFormatChange() { return pacing_.TakeFormatChange(); }
  // The longest that an exchange took, of those that ended since the last call.
  absl::Duration TakeExchangeTime() { return pacing_.TakeExchangeTime(); }
  const Edge* edge(PeerId peer) const;
  bool Connected(PeerId peer) const { return edges_.Connected(peer); }
  void VisitEdges(absl::FunctionRef<void(const Edge&)> visit) const;
  Transport& transport() { return *transport_; }

 private:
  static bool Waits(const Edges::Entry& entry);
  // The edge has not heard `id`, and the round is held up by it.
  static bool HoldsUp(const Edges::Entry& entry, ExchangeId id);
  // Returns the first deadline of the edges of `row`, overdue ones included.
  absl::Time FirstDeadline(std::span<const RowEntry> row, ExchangeId id,
                           absl::Duration round) const;
  void PreparePacing();

  const NeighborhoodOptions options_;
  Transport* const transport_;
  EventLoop* const loop_;
  Pacing pacing_;
  Edges edges_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_NEIGHBORHOOD_H_
