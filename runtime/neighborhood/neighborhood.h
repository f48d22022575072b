// A peer's edges and the transport under them, as the round loop sees them:
// emit a row, see who has answered, apply what is due.
//
// Owns deadlines and what is late; knows nothing of gradients, schedules or
// views.  Everything runs on the peer's loop.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_NEIGHBORHOOD_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_NEIGHBORHOOD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/throttle.h"
#include "algorithms/edge/edge.h"
#include "runtime/base/event_loop.h"
#include "runtime/neighborhood/damping.h"
#include "runtime/neighborhood/deadline.h"
#include "runtime/neighborhood/format_chooser.h"
#include "runtime/neighborhood/neighborhood_options.h"
#include "runtime/neighborhood/payload_turns.h"
#include "runtime/neighborhood/refusals.h"
#include "runtime/neighborhood/round_chooser.h"
#include "runtime/replay/decisions.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/event_kind.h"

namespace gossamer {

class Neighborhood final : public TransportListener {
 public:
  using FrameHandler = std::function<void(PeerId, Frame)>;
  using EventHandler = std::function<void(
      EventKind kind, const std::string& detail, uint64_t times)>;

  // All outlive it; `x` is stable for life.  Becomes the transport's listener.
  Neighborhood(NeighborhoodOptions options, EventLoop* loop,
               Transport* transport, std::span<float> x);

  // Called when something arrived or a connection changed.
  void SetOnChange(std::function<void()> f) { on_change_ = std::move(f); }
  void SetOnEvent(EventHandler f) { on_event_ = std::move(f); }
  // Something of this peer has come.
  void SetOnHeard(std::function<void(PeerId)> f) { on_heard_ = std::move(f); }
  // Frames of a channel other than kEdge.
  void SetOnFrame(Channel channel, FrameHandler f) {
    on_frame_[channel] = std::move(f);
  }
  // A connection has come up.
  void SetOnUp(std::function<void(PeerId)> f) { on_up_ = std::move(f); }

  struct NewEdge {
    PeerId peer;
    std::string address;
    ExchangeId frontier = 1;           // it decides exchanges from here on
    const SavedEdge* saved = nullptr;  // or goes on from this
    std::shared_ptr<const Codec> codec = nullptr;
    std::shared_ptr<const Codec> other_codec = nullptr;  // EdgeOptions::yields
    // It may learn of the view later: not waited for until the two have met.
    bool newcomer = false;
    bool absent = false;  // no member: `saved` completes what it holds
  };
  // Keeps an edge; one that is there stays as it is, rests no longer, and gets
  // the address.  kInvalidArgument if `saved` does not fit.
  absl::Status Add(NewEdge edge);
  bool Has(PeerId peer) const { return edges_.contains(peer); }
  std::set<PeerId> Peers() const;  // of all edges
  // Peers whose silence counts: of all edges but resting ones.
  std::set<PeerId> Watched() const;
  // Gives the edge up at once, with what is under way on it: the peer is gone.
  void Drop(PeerId peer);
  // Whom the newest view that is known has this peer mix with.  The others may
  // have given their edges up and are waited for only while they are connected.
  void SetPartners(const std::set<PeerId>& partners);
  // Gives all edges up; those to come are of another incarnation.
  void BeginIncarnation();
  // The edge is in no row from `id` on.  It is waited for no longer, completes
  // what is under way, and is forgotten some time after.  `gone`: for good.
  void Rest(PeerId peer, ExchangeId id, bool gone);
  // From here on, on all edges: h, and the step size that would be stable if
  // nothing were late over the one in use (damping.h).
  void SetOverlap(int h, double stable);

  // Who is told of the corrections of an edge, from its first one on; asked
  // once for each edge that is added.  Before any edge is.
  void AddObservers(std::function<CorrectionObserver*(PeerId)> f) {
    observers_of_.push_back(std::move(f));
  }

  // Outlives this.  At a replay, what may be emitted and completed follows it
  // instead of the clock.
  void SetDecisions(Decisions* decisions);
  // At a replay: the exchange can be emitted as it was, and what was complete
  // after the next boundary can be.
  bool CanEmit(std::span<const RowEntry> row, ExchangeId id) const;
  bool CanComplete(ExchangeId limit) const;

  // How long a round is without waiting: of this peer, for deadlines, and of
  // the slowest, for the choice of formats.
  void SetBusy(absl::Duration own, absl::Duration slowest);

  // Decides exchange `id` on every edge: a payload on those in `row` if it may
  // be, a skip on the others.
  void Emit(std::span<const RowEntry> row, ExchangeId id, bool finite);
  // Decides that all exchanges below `id` are skips, on all edges.
  void Pass(ExchangeId id);
  // Applies all that is due: every exchange below `limit`, by neighbour, then
  // by id; sends what is owed.
  void Complete(ExchangeId limit);

  // True if every edge of `row` that is waited for has heard exchange `id`.
  // One on which nothing of this end is outstanding is not: the other end may
  // have begun anew beyond it.  An edge past its deadline is overdue, not
  // waited for until it is in time, but a peer that hears nobody in its round
  // waits out the first deadline: it would run far ahead of the others.
  bool Arrived(std::span<const RowEntry> row, ExchangeId id,
               absl::Duration round);
  // When Arrived() may change by itself.
  absl::Time NextDeadline(std::span<const RowEntry> row, ExchangeId id,
                          absl::Duration round) const;
  // Every edge of `row` knows the other end, or is overdue.
  bool Acquainted(std::span<const RowEntry> row) const;
  // No neighbour has been heard to decide exchange `id`.
  bool Alone(ExchangeId id) const;
  // Its `heard` and `waiting`; without neighbours that have ended.
  RoundsSeen LookAround() const;
  // Those of `row` that have not answered exchange `id`.
  std::vector<PeerId> Missing(std::span<const RowEntry> row,
                              ExchangeId id) const;

  // A fleet cut: all ids below are decided here and the others are told.
  void BeginRecord(ExchangeId cut);
  bool Sealed() const;
  // Sealed records by neighbour; unsealed ones are left out.
  SavedEdges TakeRecords();
  // Nothing of this peer is outstanding, nothing waits here; `resting`: on
  // edges that rest, too, which their other ends may have given up.
  bool Settled(bool resting = true) const;
  // Every edge that is not settled has a connection, to hear what is missing.
  bool MaySettle() const;
  // Sends what is owed, where it can go out now.
  void FlushAll();

  uint64_t corrections() const;
  uint64_t skipped() const { return skipped_; }
  uint64_t late() const { return late_; }
  // Of all edges; nullopt without a clip radius; the longest D since the last.
  std::optional<Clipping> TakeClipping();
  // The longest that an exchange took, of those that ended since the last call.
  absl::Duration TakeExchangeTime();
  const Edge* edge(PeerId peer) const;
  bool Connected(PeerId peer) const;
  void VisitEdges(absl::FunctionRef<void(const Edge&)> visit) const;
  Transport& transport() { return *transport_; }

  void OnUp(PeerId peer, ConnectionId connection) override;
  void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
               Frame frame) override;
  void OnDown(PeerId peer, ConnectionId connection,
              const absl::Status& why) override;

 private:
  struct Entry {
    std::unique_ptr<Damping> damping;  // the edge observes by these
    std::unique_ptr<PayloadTurns> turns;
    std::unique_ptr<Edge> edge;
    std::shared_ptr<const Codec> codec, other_codec;
    DeadlineEstimator deadline;
    std::map<ExchangeId, absl::Time> emitted;  // and not heard
    uint64_t begins = 0;                       // round of its first exchange
    FormatChooser formats = {};                // of what this end receives
    WireFormat told = WireFormat::kDenseF32;   // in an event
    bool overdue = false, newcomer = false, resting = false, gone = false;
    bool behind = false;   // not all that was due was complete
    bool passing = false;  // no partner in the newest view that is known
    absl::Time busy = absl::InfinitePast();  // of a resting one: last in use
    std::string address = {};
    Refusals refusals = {};
    Throttle clipped = {}, left_out = {};  // corrections, in events
    Throttle downs = {};                   // the same, of connections
  };

  // The entry of a row; null if the edge has been given up.
  const Entry* Find(const RowEntry& r) const;
  static bool Waits(const Entry& entry);
  static bool Sealed(const Entry& entry);
  void ForgetRested();
  void ReopenClosed();
  void Send(Entry& entry);
  void Flush(Entry& entry);
  void NoteArrivals(Entry& entry);
  bool LetsPass(Entry& entry, ExchangeId id) const;
  void TellLost(Entry& entry) const;
  void TellClipped(Entry& entry) const;
  void TellFormat(Entry& entry, ExchangeId id) const;
  absl::Time DeadlineOf(const Entry& entry, ExchangeId id,
                        absl::Duration round) const;
  // In which at least half of the edges can answer; nullopt: not known yet.
  std::optional<absl::Duration> PossibleDeadline() const;
  // Of the edges of `row`, overdue ones included.
  absl::Time FirstDeadline(std::span<const RowEntry> row, ExchangeId id,
                           absl::Duration round) const;
  void TakeOtherCodec(const Entry& entry);
  void Refuse(Entry& entry, ConnectionId connection, const absl::Status& why);
  void OnNotice(Entry& entry, const Frame& frame) const;
  void Tell(EventKind kind, const std::string& detail,
            uint64_t times = 1) const;
  void Changed() const;

  const NeighborhoodOptions options_;
  EventLoop* const loop_;
  Transport* const transport_;
  const std::span<float> x_;
  const std::shared_ptr<SnapshotCache> cache_;
  std::map<PeerId, Entry> edges_;
  DeadlineEstimator arrivals_;  // of all edges, given up ones included
  uint64_t epoch_ = 0;
  // The last epoch of edges that were given up: another one to the same peer
  // begins above it.
  std::map<PeerId, uint64_t> last_epochs_;
  // That are open, with what came last on the edge's channel before there was
  // an edge: the other end's hello, which does not come again.
  std::map<PeerId, std::map<ConnectionId, Payload>> connections_;
  std::function<void()> on_change_;
  std::function<void(PeerId)> on_heard_, on_up_;
  EventHandler on_event_;
  std::vector<std::function<CorrectionObserver*(PeerId)>> observers_of_;
  std::map<Channel, FrameHandler> on_frame_;
  int overlap_ = 1;
  double stable_ = 1;
  uint64_t boundary_ = 0, skipped_ = 0, late_ = 0, clipped_of_gone_ = 0;
  absl::Duration exchange_time_, busy_, slowest_;
  std::optional<absl::Duration> possible_;
  Decisions unkept_;
  Decisions* decisions_ = &unkept_;
  ExchangeId passed_ = 0;  // below it, on edges of no row
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_NEIGHBORHOOD_H_
