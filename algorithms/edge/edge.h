// One end of a real edge: the protocol (edge_end.h), the codec
// (edge_codec_state.h) and frames as bytes (frame.h), put together.
//
// Pure like its parts: the caller moves frames, reports connections and decides
// when things are due.  Everything that comes from the other end is checked
// here before it changes state.

#ifndef GOSSAMER_ALGORITHMS_EDGE_EDGE_H_
#define GOSSAMER_ALGORITHMS_EDGE_EDGE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/compress/codec.h"
#include "algorithms/edge/edge_codec_state.h"
#include "algorithms/edge/edge_end.h"
#include "algorithms/edge/frame.h"

namespace gossamer {

inline constexpr int kMaxEdgeWindow = 8;
inline constexpr uint64_t kEpochLevel = uint64_t{1} << 30;

// The epoch of an incarnation (PROTOCOL.md 5): seconds since 1970, then 30
// random bits.
constexpr uint64_t MakeEpoch(uint64_t unix_seconds, uint64_t random) {
  return unix_seconds * kEpochLevel + random % kEpochLevel;
}

// An epoch above `epoch` with the nonce of the incarnation that `own` belongs
// to.
constexpr uint64_t EpochAbove(uint64_t epoch, uint64_t own) {
  return (epoch / kEpochLevel + 1) * kEpochLevel + own % kEpochLevel;
}

using ProductionEnd =
    EdgeEnd<uint64_t, EdgeCodecState, kEpochLevel, kMaxEdgeWindow>;
using ProductionFrame = EdgeFrame<uint64_t, EdgeMessage>;

// A frame's fields as a header has them, except those that all frames of an
// edge share (the layout; in a hello the run id and whether there are
// replicas); and the reverse, without a payload.
EdgeHeader HeaderOf(const ProductionFrame& frame);
ProductionFrame FrameOf(const EdgeHeader& header);

// An end's part of a fleet checkpoint: the protocol's record and the codec's
// state at the cut.
struct SavedEdge {
  ProductionEnd::Record record;
  EdgeCodecState::Saved codec_state;
};
using SavedEdges = std::map<PeerId, SavedEdge>;  // by the other end

// The properties of one edge, and the limits on its corrections, which both
// ends must share.
struct EdgeOptions {
  PeerId self;
  PeerId other;
  std::string run_id;
  uint64_t epoch = 0;       // MakeEpoch
  ExchangeId frontier = 1;  // first exchange that this end decides
  int window = 1;           // W = max(1, overlap_steps), at most kMaxEdgeWindow
  uint64_t layout = 0;      // ParameterLayout::fingerprint()
  Extent summed = {};       // EdgeCodecState::set_summed
  CorrectionLimits limits = {};
  // There is a codec of the other kind, with or without replicas, to go on with
  // if that is what the other end has begun with.
  bool may_switch_codec = false;
};

// One end of the edge to one other peer.  It owns the end's protocol state,
// replica and difference, and refuses every frame that does not fit the run,
// the layout, the codec or the protocol.
class Edge {
 public:
  struct OutFrame {
    std::vector<std::byte> head;
    SharedBytes body;
    // Payload: its exchange.  Skip: the first exchange that is undecided.
    // Hello: 0.
    ExchangeId exchange = 0;
    DeviceFence ready = {};  // EdgeMessage::ready
  };

  // `x` stays where it is for as long as this object lives; `cache` is shared
  // by the edges of one peer.
  Edge(EdgeOptions options, std::shared_ptr<const Codec> codec,
       DeviceSpan<float> x, std::shared_ptr<SnapshotCache> cache);
  // An edge that goes on from a sealed record of the same fleet-wide cut.
  // kInvalidArgument if the record is not of this codec and layout.
  static absl::StatusOr<std::unique_ptr<Edge>> Resume(
      EdgeOptions options, std::shared_ptr<const Codec> codec,
      DeviceSpan<float> x, std::shared_ptr<SnapshotCache> cache,
      const SavedEdge& saved);

  PeerId other() const { return options_.other; }
  // All ids below are known from the other end; all below are complete at this
  // end.
  ExchangeId received() const { return end_.state().received; }
  ExchangeId done() const { return end_.state().done; }
  ExchangeId decided() const { return end_.state().decided; }
  // The other end's hello has come and its epoch is known: exchanges can have
  // payloads.
  bool handshake_done() const { return end_.state().peer_epoch != 0; }
  // Nothing of this end is outstanding, nothing of the other waits here.
  bool settled() const {
    return end_.state().mine.empty() && end_.state().theirs.empty();
  }
  uint64_t corrections() const { return end_.codec_state().corrections(); }
  const ProductionEnd::State& state() const { return end_.state(); }
  const EdgeCodecState& codec_state() const { return end_.codec_state(); }
  double TakeLongest() { return end_.codec_state().TakeLongest(); }
  void add_observer(CorrectionObserver* o) {
    end_.codec_state().add_observer(o);
  }
  // This edge is given up, and is in no record: the other end would go on with
  // a difference that this end has given back.  A later edge to the same peer
  // is another one.
  void End() {
    ended_ = true;
    end_.codec_state().OnEnd();
  }
  bool ended() const { return ended_; }

  // For a codec that leaves a choice: the format that this end requests of the
  // other, by every frame from here on, and the one that it uses, which the
  // other end has requested.
  void set_requested_format(WireFormat format) {
    requested_format_ = static_cast<uint8_t>(format);
  }
  WireFormat format() const { return end_.codec_state().format(); }

  // For a replay (decisions.h): the format of the next payload, that it is one
  // whatever the other end did, and whether there is room for it.
  void use_format(WireFormat format) { end_.codec_state().set_format(format); }
  void set_force_payload(bool force) { end_.set_force_payload(force); }
  bool HasRoom() const { return end_.HasRoom(); }
  // The other end is sure to send a frame: it has not come yet, or has not
  // answered a payload.  It does not mention exchanges that it jumps over, nor
  // those for which there was no room here.
  bool ExpectsAnswer() const {
    const ProductionEnd::State& s = end_.state();
    return !handshake_done() ||
           (!s.mine.empty() && s.mine.back().id >= s.received);
  }
  // An own payload below `limit` is not complete here; or not answered.
  bool IncompleteBelow(ExchangeId limit) const;
  bool UnansweredBelow(ExchangeId limit) const;

  // h of the view; at most the window that the edge was made with.
  void set_overlap(int h) { end_.set_effective_window(std::max(1, h)); }

  // From the round loop, between steps (PROTOCOL.md 4).  `finite`: x has no
  // infinity and no NaN; without it, and in a round in which no part of x is
  // due, the exchange is a skip.  True if a payload went out.
  bool Emit(ExchangeId id, float coefficient, bool finite);
  void SkipTo(ExchangeId id) { end_.SkipTo(id); }
  void Announce() { end_.Announce(); }
  void Complete(ExchangeId limit) { end_.Complete(limit); }
  // Completes the skips before the first own payload: x stays as it is.
  void CompleteSkips();
  // Sends what is due; call once what else is to be sent now has been.
  void Flush() { end_.Flush(Sender()); }
  bool MayReset() const { return end_.MayReset(); }
  void LosslessReset() { end_.LosslessReset(Sender()); }

  // From the transport.  Connection ids rise; the newest one that is up is sent
  // on.
  void ConnectionUp(uint64_t connection);
  void ConnectionDown(uint64_t connection);
  // kDataLoss or kFailedPrecondition if the other end breaks the protocol or
  // does not fit (run, layout, codec): close the connection, state is as before
  // (PROTOCOL.md 4.3).  kAborted: the ends have codecs of different
  // kinds, and this one, which has not begun, must begin again with the other.
  absl::Status OnFrame(uint64_t connection, std::span<const std::byte> head,
                       SharedBytes body);

  // Frames to send now, in order, on the newest connection.  A payload that a
  // device has not encoded yet stays, and so do the frames behind it.
  std::vector<OutFrame> TakeFrames();

  // Own payloads dropped since the last call because the other end began anew:
  // it may have applied them before, or not (PROTOCOL.md 5).
  std::vector<ExchangeId> TakeLost() { return std::exchange(lost_, {}); }

  // Begins a record of the boundary before `cut` (decided() >= cut), beside
  // those of earlier cuts, in the memory of `spare` as far as that fits.
  void BeginRecord(ExchangeId cut, SavedEdge spare = {});
  void DropRecord(ExchangeId cut) { records_.erase(cut); }
  // The record of `cut` holds both payloads of every exchange below it.
  bool Sealed(ExchangeId cut) const;
  // There is no record of `cut`, or it can never be sealed: the incarnation
  // that it is of has ended.
  bool Unsealable(ExchangeId cut) const;
  // The sealed record, once; nullopt if it is not sealed.  Those of earlier
  // cuts are dropped.
  std::optional<SavedEdge> TakeRecord(ExchangeId cut);

 private:
  Edge(EdgeOptions options, ProductionEnd end);
  struct SendFn {
    Edge* edge;
    void operator()(const ProductionEnd::Frame& f) const { edge->Queue(f); }
  };
  SendFn Sender() { return {this}; }
  bool Newest(uint64_t connection) const {
    return !connections_.empty() && connections_.rbegin()->first == connection;
  }
  void UseNewestConnection();
  void TakeHello(const ProductionEnd::Frame& hello, bool newest);
  void Queue(const ProductionEnd::Frame& frame);
  absl::Status CheckFits(const EdgeHeader& header) const;
  absl::Status OnHello(uint64_t connection, const EdgeHeader& header);
  absl::Status OnOtherCodec(const EdgeHeader& hello) const;
  absl::Status OnData(const EdgeHeader& header, SharedBytes body);
  void OnRequestedFormat(uint8_t format);
  void ExtendRecords();

  EdgeOptions options_;
  ProductionEnd end_;
  // The connections that are up, with the last hello received on each: an end
  // that falls back to an older connection will not hear another one there.
  std::map<uint64_t, std::optional<ProductionEnd::Frame>> connections_;
  uint8_t requested_format_ = 0;
  bool epoch_raised_ = false;  // risen on this connection already
  int began_ = 0;              // times that the other end began anew on it
  std::vector<OutFrame> outbox_;
  std::vector<ExchangeId> lost_;
  struct Recording {
    SavedEdge saved;
    bool sealed = false;
  };
  std::map<ExchangeId, Recording> records_;  // by cut
  bool ended_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_EDGE_EDGE_H_
