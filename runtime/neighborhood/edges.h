// The edges of a peer over its transport: added, deactivated, given up,
// recorded; frames in and out, connections, and what the two ends refuse of
// each other.
//
// This header knows nothing of rounds' rows, of deadlines or of when an
// exchange is due.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_EDGES_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_EDGES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/throttle.h"
#include "algorithms/edge/edge.h"
#include "runtime/base/event_loop.h"
#include "runtime/neighborhood/neighborhood_options.h"
#include "runtime/neighborhood/pacing.h"
#include "runtime/neighborhood/refusals.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/event_kind.h"

namespace gossamer {

struct NewEdge {
  PeerId peer;
  std::string address;
  ExchangeId frontier = 1;           // it decides exchanges from here on
  const SavedEdge* saved = nullptr;  // or goes on from this
  std::shared_ptr<const Codec> codec = nullptr;
  std::shared_ptr<const Codec> other_codec =
      nullptr;  // EdgeOptions::may_switch_codec
  // It may learn of the view later, and is not waited for until both ends know
  // each other's epoch.
  bool newcomer = false;
  // It lasts for some rounds, by a schedule that both ends know.
  bool transient = false;
  bool absent = false;  // no member: `saved` completes what it holds
};

class Edges final : public TransportListener {
 public:
  using FrameHandler = std::function<void(PeerId, Frame)>;
  using EventHandler = std::function<void(
      EventKind kind, const std::string& detail, uint64_t times)>;
  // Observes the corrections of an edge, from its first one on.
  using ObserverOf = std::function<CorrectionObserver*(PeerId)>;

  struct Entry {
    EdgePace pace;  // the edge observes by it
    std::unique_ptr<Edge> edge;
    std::shared_ptr<const Codec> codec, other_codec;
    std::string address = {};
    uint64_t begins = 0;  // round of its first exchange
    bool newcomer = false, transient = false, inactive = false, gone = false;
    bool not_neighbor = false;  // in the newest view that is known
    absl::Time last_used = absl::InfinitePast();  // of an inactive one
    Refusals refusals = {};
    Throttle clipped = {}, left_out = {};  // corrections, in events
    Throttle downs = {};                   // the same, of connections
  };

  // All outlive it; `x` stays where it is.  Becomes the transport's listener.
  Edges(const NeighborhoodOptions& options, EventLoop* loop,
        Transport* transport, DeviceSpan<float> x, Pacing* pacing);

  void SetOnChange(std::function<void()> f) { on_change_ = std::move(f); }
  void SetOnEvent(EventHandler f) { on_event_ = std::move(f); }
  void SetOnHeard(std::function<void(PeerId)> f) { on_heard_ = std::move(f); }
  void SetOnFrame(Channel channel, FrameHandler f) {
    on_frame_[channel] = std::move(f);
  }
  void SetOnUp(std::function<void(PeerId)> f) { on_up_ = std::move(f); }
  void AddObservers(ObserverOf f) { observers_of_.push_back(std::move(f)); }

  std::map<PeerId, Entry>& entries() { return entries_; }
  const std::map<PeerId, Entry>& entries() const { return entries_; }
  // Null if there is no edge.
  const Entry* Find(PeerId peer) const;
  Entry* Find(PeerId peer);
  bool Connected(PeerId peer) const;
  // An edge of later rounds or of an older view, which the other end may not
  // have made yet, or never, or one whose rounds are over, which it may have
  // forgotten.
  bool MayBeUnknown(const Entry& entry) const;
  // The other end has decided the first exchange.
  static bool Begun(const Entry& entry) {
    return entry.edge->received() > MakeExchangeId(entry.begins);
  }

  // As in Neighborhood.
  absl::Status Add(NewEdge added);
  void Drop(PeerId peer);
  void Deactivate(PeerId peer, ExchangeId id, bool gone);
  void BeginIncarnation();
  void SetOverlap(int h);
  void SetNeighbors(const std::set<PeerId>& neighbors);
  // Gives up the edges that have been inactive for long.
  void PruneInactive();
  // Exchanges below `id` are skips, on edges of no row that are added later.
  void SetFrontier(ExchangeId id) { frontier_ = id; }

  void Send(Entry& entry);
  void Flush(Entry& entry);
  void FlushAll();

  void BeginRecord(ExchangeId cut, SavedEdges spare);
  void DropRecord(ExchangeId cut);
  bool Sealed(ExchangeId cut) const;
  SavedEdges TakeRecords(ExchangeId cut);
  bool Settled(bool inactive) const;
  bool MaySettle(ExchangeId cut) const;
  uint64_t corrections() const;
  std::optional<Clipping> TakeClipping();
  void ReportClipped(Entry& entry) const;

  void OnUp(PeerId peer, ConnectionId connection) override;
  void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
               Frame frame) override;
  void OnProgress(PeerId peer) override {
    // A large frame on a slow link takes longer than a dead peer's silence.
    if (on_heard_) on_heard_(peer);
  }
  void OnDown(PeerId peer, ConnectionId connection,
              const absl::Status& why) override;

  void Report(EventKind kind, const std::string& detail,
              uint64_t times = 1) const;
  void Changed() const;

 private:
  absl::StatusOr<std::unique_ptr<Edge>> MakeEdge(const NewEdge& added);
  // A connection that was opened for something else serves the edge as well.
  void TakeConnections(Entry& entry);
  void TakeOtherCodec(const Entry& entry);
  void OnEdgeFrame(Entry& entry, ConnectionId connection, Frame frame);
  static bool Sealed(const Entry& entry, ExchangeId cut);
  void ReopenClosed();
  void Refuse(Entry& entry, ConnectionId connection, const absl::Status& why);
  void OnNotice(Entry& entry, const Frame& frame) const;
  void ReportLost(Entry& entry) const;

  const NeighborhoodOptions& options_;
  EventLoop* const loop_;
  Transport* const transport_;
  const DeviceSpan<float> x_;
  Pacing* const pacing_;
  const std::shared_ptr<SnapshotCache> cache_;
  std::map<PeerId, Entry> entries_;
  uint64_t epoch_ = 0;
  // The last epoch of edges that were given up: another one to the same peer
  // begins above it.
  std::map<PeerId, uint64_t> last_epochs_;
  // Open ones, with what came last on the edge's channel before there was an
  // edge: the other end's hello, which does not come again.
  std::map<PeerId, std::map<ConnectionId, SharedBytes>> connections_;
  std::function<void()> on_change_;
  std::function<void(PeerId)> on_heard_, on_up_;
  EventHandler on_event_;
  std::vector<ObserverOf> observers_of_;
  std::map<Channel, FrameHandler> on_frame_;
  int overlap_ = 1;
  uint64_t corrections_of_gone_ = 0, clipped_of_gone_ = 0;
  ExchangeId frontier_ = 0;  // of edges that are added
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_EDGES_H_
