#include "algorithms/edge/edge.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Ids and epochs of honest peers stay far below (PROTOCOL.md 8).  An epoch to
// rise above leaves room for the rise, lest the other end refuse the result.
constexpr uint64_t kMaxEpoch = uint64_t{1} << 63;
constexpr uint64_t kMaxRememberedEpoch = kMaxEpoch - kEpochLevel;
constexpr uint64_t kMaxId = uint64_t{1} << 62;

// Two ends that find each other after any faults begin anew fewer times than
// this (PROTOCOL.md 8).
constexpr int kMaxBeginnings = 8;

// This number is the same at both ends and differs between edges, so that an
// edge's resync boundary is agreed on without a message (PROTOCOL.md 4.9).
uint64_t EdgeHash(PeerId a, PeerId b) {
  const auto [lower, upper] = std::minmax(a.value, b.value);
  return RngKey(lower).Fold(upper).Bits(0);
}

// Equal at both ends if and only if they restore the same cut of the same
// incarnation (PROTOCOL.md 6).  The epochs enter in the order of the peers'
// ids, because `epoch` and `peer_epoch` change places between the ends.  The
// lowest bit is set, because a basis of 0 means none.
uint64_t BasisOf(const EdgeOptions& o, const ProductionEnd::Record& r) {
  const bool lower = o.self < o.other;
  return RngKey(r.cut)
             .Fold(lower ? r.epoch : r.peer_epoch)
             .Fold(lower ? r.peer_epoch : r.epoch)
             .Bits(0) |
         1;
}

EdgeCodecState CodecStateOf(const EdgeOptions& options,
                            std::shared_ptr<const Codec> codec,
                            DeviceSpan<float> x,
                            std::shared_ptr<SnapshotCache> cache) {
  EdgeCodecState codec_state(std::move(codec), x, std::move(cache),
                             EdgeHash(options.self, options.other),
                             options.self > options.other);
  codec_state.set_limits(options.limits);
  codec_state.set_summed(options.summed);
  return codec_state;
}

}  // namespace

EdgeHeader HeaderOf(const ProductionFrame& f) {
  EdgeHeader h;
  h.kind = f.kind;
  h.epoch = f.epoch;
  h.peer_epoch = f.peer_epoch;
  h.prev = f.prev;
  h.to = f.to;
  h.ack = f.ack;
  if (f.kind == FrameKind::kHello) {
    h.basis = f.basis;
    h.window = f.window;
  }
  if (f.kind == FrameKind::kPayload) {
    h.format = f.token.format;
    h.c = f.token.c;
    h.payload_bytes = static_cast<uint32_t>(f.token.bytes.size());
  }
  return h;
}

ProductionFrame FrameOf(const EdgeHeader& h) {
  ProductionFrame f;
  f.kind = h.kind;
  f.epoch = h.epoch;
  f.peer_epoch = h.peer_epoch;
  f.prev = h.prev;
  f.to = h.to;
  f.ack = h.ack;
  f.basis = h.basis;
  f.window = h.window;
  return f;
}

Edge::Edge(EdgeOptions options, ProductionEnd end)
    : options_(std::move(options)), end_(std::move(end)) {}

Edge::Edge(EdgeOptions options, std::shared_ptr<const Codec> codec,
           DeviceSpan<float> x, std::shared_ptr<SnapshotCache> cache)
    : Edge(options,
           ProductionEnd(
               CodecStateOf(options, std::move(codec), x, std::move(cache)),
               options.epoch, options.frontier, options.window)) {}

absl::StatusOr<std::unique_ptr<Edge>> Edge::Resume(
    EdgeOptions options, std::shared_ptr<const Codec> codec,
    DeviceSpan<float> x, std::shared_ptr<SnapshotCache> cache,
    const SavedEdge& saved) {
  EdgeCodecState codec_state =
      CodecStateOf(options, std::move(codec), x, std::move(cache));
  bool fits = true;
  // A file is checked as strictly as a frame: Complete reads these payloads
  // later and has no way to refuse one.
  for (const auto* queue : {&saved.record.mine, &saved.record.theirs}) {
    for (const auto& held : *queue) {
      const float c = held.token.c;
      fits = fits && c > 0 && c <= 1 &&
             codec_state.Validate(held.token.encoded(held.id)).ok();
    }
  }
  if (!codec_state.Restore(saved.codec_state) || !fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint's edge to peer ", options.other.value,
                     " has replicas or payloads of another model or codec: "
                     "resume with the run's own "
                     "configuration"));
  }
  const uint64_t basis = BasisOf(options, saved.record);
  ProductionEnd end(std::move(codec_state), options.epoch, saved.record, basis);
  return std::unique_ptr<Edge>(new Edge(std::move(options), std::move(end)));
}

bool Edge::IncompleteBelow(ExchangeId limit) const {
  const auto& mine = end_.state().mine;
  return std::any_of(mine.begin(), mine.end(), [&](const auto& held) {
    return held.id >= done() && held.id < limit;
  });
}

// Skips have no correction, so they need not wait for the boundary at which an
// exchange is due.  The first own payload ends them: completing it could change
// x.
void Edge::CompleteSkips() {
  const auto* payload = end_.state().mine.FirstFrom(done());
  end_.Complete(payload == nullptr ? decided() : payload->id);
}

bool Edge::UnansweredBelow(ExchangeId limit) const {
  const auto& mine = end_.state().mine;
  return std::any_of(mine.begin(), mine.end(), [&](const auto& held) {
    return held.id >= received() && held.id < limit;
  });
}

bool Edge::Emit(ExchangeId id, float coefficient, bool finite) {
  end_.codec_state().set_coefficient(coefficient);
  const bool due = !end_.codec_state().codec().Due(RoundOf(id)).empty();
  return end_.Emit(id, finite && due, Sender());
}

void Edge::ConnectionUp(uint64_t connection) {
  connections_.emplace(connection, std::nullopt);
  if (Newest(connection)) UseNewestConnection();
}

// Frames that wait for the lost connection are dropped, which keeps memory
// bounded while the other end is away: the next hello brings again what it
// still lacks (PROTOCOL.md 3).
void Edge::ConnectionDown(uint64_t connection) {
  const bool newest = Newest(connection);
  connections_.erase(connection);
  if (!newest) return;
  end_.ConnectionDown();
  outbox_.clear();
  if (!connections_.empty()) UseNewestConnection();
}

// The limits on rises and new beginnings count for each connection: a peer that
// exceeds them loses the connection, and another one costs it a handshake
// (PROTOCOL.md 8).
void Edge::UseNewestConnection() {
  epoch_raised_ = false;
  began_ = 0;
  outbox_.clear();  // was for the connection before
  end_.ConnectionUp(Sender());
  const auto& hello = connections_.rbegin()->second;
  if (hello) TakeHello(*hello, true);
}

void Edge::TakeHello(const ProductionEnd::Frame& hello, bool newest) {
  const ProductionEnd::State& s = end_.state();
  const uint64_t epoch = s.epoch, peer_epoch = s.peer_epoch;
  // Noted before the hello is processed, which may clear the queue.
  std::vector<ExchangeId> held;
  for (const auto& payload : s.mine) held.push_back(payload.id);
  end_.OnHello(hello, newest, Sender());
  if (s.epoch == epoch && s.peer_epoch == peer_epoch) return;
  // Another incarnation; one that goes on from a record keeps its payloads.
  if (s.mine.empty()) lost_.insert(lost_.end(), held.begin(), held.end());
}

void Edge::Queue(const ProductionEnd::Frame& f) {
  EdgeHeader h = HeaderOf(f);
  // Every frame has the layout, not the hello alone: an end reads all open
  // connections, and a frame is judged by itself.
  h.layout = FoldFingerprint(options_.layout);
  if (f.kind == FrameKind::kHello) {
    h.replica = end_.codec_state().codec().needs_replica();
    h.run_id = options_.run_id;
  } else {
    h.requested_format = requested_format_;
  }
  if (f.kind != FrameKind::kPayload) {
    h.format = end_.codec_state().codec().format();
  }
  const bool payload = f.kind == FrameKind::kPayload;
  const bool hello = f.kind == FrameKind::kHello;
  outbox_.push_back({.head = EncodeHeader(h),
                     .body = f.token.bytes,
                     .exchange = hello     ? 0
                                 : payload ? f.to - 1
                                           : f.to,
                     .ready = f.token.ready});
}

std::vector<Edge::OutFrame> Edge::TakeFrames() {
  const auto late = std::ranges::find_if(
      outbox_, [](OutFrame& frame) { return !frame.ready.done(); });
  // A device that has failed has encoded nothing, and may be seen to have
  // failed just now.
  if (!end_.codec_state().codec().queue().status().ok()) return {};
  std::vector<OutFrame> waiting(std::make_move_iterator(late),
                                std::make_move_iterator(outbox_.end()));
  outbox_.erase(late, outbox_.end());
  return std::exchange(outbox_, std::move(waiting));
}

absl::Status Edge::OnFrame(uint64_t connection, std::span<const std::byte> head,
                           SharedBytes body) {
  GOSSAMER_ASSIGN_OR_RETURN(const EdgeHeader header, DecodeHeader(head));
  GOSSAMER_RETURN_IF_ERROR(CheckFits(header));
  if (header.payload_bytes != body.size()) {
    return absl::DataLossError(absl::StrCat("payload of ", body.size(),
                                            " bytes, header says ",
                                            header.payload_bytes));
  }
  GOSSAMER_RETURN_IF_ERROR(header.kind == FrameKind::kHello
                               ? OnHello(connection, header)
                               : OnData(header, std::move(body)));
  // After every frame and before the next Complete: a payload that is complete
  // here is forgotten, and a record that lacks it could never be sealed.
  ExtendRecords();
  return absl::OkStatus();
}

absl::Status Edge::CheckFits(const EdgeHeader& h) const {
  // Larger numbers would make `id + 1` and an epoch's rise overflow.
  if (h.epoch == 0 || h.epoch >= kMaxEpoch || h.peer_epoch >= kMaxEpoch ||
      h.to > kMaxId || h.prev > kMaxId || h.ack > kMaxId) {
    return absl::DataLossError("frame with an impossible id or epoch");
  }
  if (h.layout != FoldFingerprint(options_.layout)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "peer %d trains another model: its layout is %08x, this peer's %08x; "
        "both need the same game configuration",
        options_.other.value, h.layout, FoldFingerprint(options_.layout)));
  }
  return absl::OkStatus();
}

absl::Status Edge::OnHello(uint64_t connection, const EdgeHeader& h) {
  const bool replica = end_.codec_state().codec().needs_replica();
  if (h.run_id != options_.run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("peer ", options_.other.value, " belongs to run '",
                     h.run_id, "', this peer to '", options_.run_id, "'"));
  }
  if (h.replica != replica) return OnOtherCodec(h);
  if (h.window < 1 || h.window > kMaxEdgeWindow || h.payload_bytes != 0) {
    return absl::DataLossError(
        "hello with an impossible window or with a payload");
  }
  const uint64_t before = end_.state().epoch;
  if (h.peer_epoch > before &&
      (epoch_raised_ || h.peer_epoch >= kMaxRememberedEpoch)) {
    return absl::DataLossError("hello asks for a second or impossible rise");
  }
  // Each new beginning costs this end two vectors to set to zero, and the
  // sender a hundred bytes.
  const uint64_t theirs = end_.state().peer_epoch;
  if (h.epoch > theirs && theirs != 0 && ++began_ > kMaxBeginnings) {
    return absl::DataLossError(absl::StrCat("hello that begins anew for the ",
                                            began_, "th time on a connection"));
  }
  const ProductionEnd::Frame f = FrameOf(h);
  // A frame of a connection that has been reported down may still arrive;
  // nothing falls back to that one.
  const auto up = connections_.find(connection);
  if (up != connections_.end()) up->second = f;
  TakeHello(f, Newest(connection));
  if (end_.state().epoch != before) epoch_raised_ = true;
  return absl::OkStatus();
}

// If memory does not suffice for replicas on all edges, ends that were made in
// different views may differ (PROTOCOL.md 8).  An end that has not heard of the
// other switches its codec, and of two such ends the one with replicas, so that
// memory stays within its limit.  It loses nothing: it has no record, or one of
// another edge, since ends of one cut have one codec.  The other end hears its
// next hello.
absl::Status Edge::OnOtherCodec(const EdgeHeader& hello) const {
  const bool begun = handshake_done();
  const bool begun_there = hello.peer_epoch != 0;
  const std::string what =
      absl::StrCat("peer ", options_.other.value, " uses a codec ",
                   hello.replica ? "with" : "without", " replicas, this peer '",
                   std::string(end_.codec_state().codec().name()), "'");
  if (!options_.may_switch_codec || (begun && begun_there)) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, "; both need the same codec"));
  }
  // Both ends evaluate the same expression with the roles exchanged, so exactly
  // one of them switches.
  const bool switches = begun == begun_there ? !hello.replica : begun_there;
  return switches ? absl::AbortedError(what) : absl::OkStatus();
}

absl::Status Edge::OnData(const EdgeHeader& h, SharedBytes body) {
  if (h.epoch != end_.state().peer_epoch ||
      h.peer_epoch != end_.state().epoch) {
    return absl::OkStatus();  // another incarnation: not worth a validation
  }
  // Before the checks below: a request is advice that no state of the protocol
  // depends on, so a frame that is refused afterwards does no harm by it.
  OnRequestedFormat(h.requested_format);
  ProductionEnd::Frame f = FrameOf(h);
  if (h.kind == FrameKind::kPayload) {
    // The id is to − 1, and id 0 means no exchange.
    if (!(h.c > 0.0f && h.c <= 1.0f) || h.to < 2) {
      return absl::DataLossError(absl::StrCat("payload with coefficient ", h.c,
                                              " and frontier ", h.to));
    }
    // The payload is validated before the protocol sees it, since Complete
    // cannot refuse what has been accepted.
    GOSSAMER_ASSIGN_OR_RETURN(
        f.token,
        end_.codec_state().Receive(h.to - 1, h.format, h.c, std::move(body)));
  } else if (!body.empty()) {
    return absl::DataLossError("skip with a payload");
  }
  if (end_.OnData(f) == Verdict::kViolation) {
    return absl::DataLossError(absl::StrCat(
        "peer ", options_.other.value, " breaks the edge protocol: prev ",
        h.prev, ", to ", h.to, ", ack ", h.ack, " where decided is ",
        end_.state().decided, " and ", end_.state().theirs.size(),
        " payloads wait"));
  }
  return absl::OkStatus();
}

// A request is advice: a format that this codec does not offer counts as none.
void Edge::OnRequestedFormat(uint8_t format) {
  for (const WireFormat choice : end_.codec_state().codec().choices()) {
    if (static_cast<uint8_t>(choice) == format) {
      end_.codec_state().set_format(choice);
    }
  }
}

void Edge::BeginRecord(ExchangeId cut, SavedEdge spare) {
  records_.erase(cut);
  if (ended_) return;
  records_.emplace(cut,
                   Recording{SavedEdge{
                       end_.BeginRecord(cut),
                       end_.codec_state().Save(std::move(spare.codec_state))}});
  // Payloads that were received before the cut may seal the record already.
  ExtendRecords();
}

void Edge::ExtendRecords() {
  for (auto& [cut, r] : records_) {
    if (!r.sealed) r.sealed = end_.ExtendRecord(r.saved.record);
  }
}

bool Edge::Sealed(ExchangeId cut) const {
  const auto it = records_.find(cut);
  return it != records_.end() && it->second.sealed;
}

// After a lost connection the other end may come back with the incarnation as
// it was, so only a different pair of epochs settles it.
bool Edge::Unsealable(ExchangeId cut) const {
  const auto it = records_.find(cut);
  if (it == records_.end()) return true;
  if (it->second.sealed || !handshake_done()) return false;
  const ProductionEnd::Record& r = it->second.saved.record;
  const ProductionEnd::State& s = end_.state();
  return r.epoch != s.epoch || r.peer_epoch != s.peer_epoch;
}

std::optional<SavedEdge> Edge::TakeRecord(ExchangeId cut) {
  std::optional<SavedEdge> taken;
  // An unsealed record is dropped.  Without all payloads below the cut its
  // future would depend on the other end, and resuming from it could apply a
  // correction at one end only.
  if (const auto it = records_.find(cut);
      it != records_.end() && it->second.sealed) {
    taken = std::move(it->second.saved);
  }
  records_.erase(records_.begin(), records_.upper_bound(cut));
  return taken;
}

}  // namespace gossamer
