#include "algorithms/edge/codec_side.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// D drifts from x̂_theirs − x̂_mine by rounding, 1e-5 of |x| after this many
// exchanges (PROTOCOL.md 7.2); a fleet's edges resync in different rounds.
constexpr uint64_t kResyncRounds = 65536;

constexpr char kReplica[] = "the replica of an edge";
constexpr char kDifference[] = "the difference of an edge";
constexpr char kSum[] = "the summed corrections of an edge";

}  // namespace

// The draw shifts a cycle as a whole, so that each fragment comes once in `p`
// rounds while the order differs between cycles.
int FragmentOf(ExchangeId id, int fragments) {
  const auto p = static_cast<uint64_t>(fragments);
  const uint64_t cycle = RoundOf(id) / p;
  return static_cast<int>((RoundOf(id) + RngKey(cycle).Below(p, 0)) % p);
}

EdgeMessage SnapshotCache::Encode(const Codec& codec, ExchangeId id,
                                  WireFormat format, DeviceSpan<const float> x,
                                  DeviceSpan<float> replica) {
  const DeviceQueue& queue = codec.queue();
  const size_t size = codec.EncodedSize(format);
  EdgeMessage message = {.format = format};
  std::shared_ptr<std::byte[]> owner;
  // The exchange's id is the same at both ends, and at a replay.
  if (queue.on_host()) {
    owner = pool_->Get(size);
    codec.Encode(format, x, replica, id, {owner.get(), size});
  } else {
    auto coded = DeviceVector<std::byte>::Unset(queue, size, "a payload");
    codec.Encode(format, x, replica, id, coded);
    owner = queue.Download(coded);
    message.ready = queue.Mark();
  }
  const std::span<const std::byte> bytes(owner.get(), size);
  message.bytes = Payload(bytes, std::move(owner));
  return message;
}

DeviceSpan<float> SnapshotCache::Zeros(const DeviceQueue& queue, size_t size) {
  // Fragments differ in size.
  if (zeros_.size() < size)
    zeros_ = DeviceVector<float>::Unset(queue, size, "zeros");
  const DeviceSpan<float> zeros = zeros_.span().first(size);
  queue.Clear(zeros);
  return zeros;
}

EdgeMessage SnapshotCache::Encode(const Codec& codec, ExchangeId id,
                                  DeviceSpan<const float> x, float limit) {
  // All edges with a stateless codec send the same bytes, so the first edge of
  // the round encodes for the others.
  if (id != id_) {
    message_ = Encode(codec, id, codec.format(), x, {});
    // A device's bytes are not there yet.
    if (std::isfinite(limit) && codec.queue().on_host()) {
      message_.reach = codec.Reach(message_.encoded(id), limit);
    }
    id_ = id;
  }
  return message_;
}

CodecSide::CodecSide(std::shared_ptr<const Codec> codec, DeviceSpan<float> x,
                     std::shared_ptr<SnapshotCache> cache, uint64_t edge_hash,
                     bool upper)
    : codec_(std::move(codec)),
      x_(x),
      cache_(std::move(cache)),
      format_(codec_->format()),
      offset_(edge_hash % kResyncRounds),
      upper_(upper),
      reach_(static_cast<size_t>(codec_->fragments())),
      progress_(static_cast<size_t>(codec_->fragments())) {}

uint64_t CodecSide::ResyncInterval(ExchangeId id) const {
  return (RoundOf(id) + offset_) / kResyncRounds;
}

void CodecSide::OnEnd() {
  if (sum_.empty()) return;
  if (!SeededBug("keep-duals")) {
    for (CorrectionObserver* o : observers_) o->OnEdgeEnd(sum_);
  }
  // An edge that was given up may still begin an incarnation, and OnZero comes
  // here again; the sum counts once.
  sum_ = {};
}

void CodecSide::OnZero() {
  // Before anything is cleared: an observer gets the sum of the incarnation
  // that has just ended.
  OnEnd();
  for (CorrectionObserver* o : observers_) o->OnZero();
  replica_.Clear();
  if (!SeededBug("keep-difference")) {
    difference_.Clear();
    std::ranges::fill(shared_, 0.0f);
  }
  std::ranges::fill(progress_, Progress());
  std::ranges::fill(reach_, 0.0f);
}

absl::StatusOr<EdgeMessage> CodecSide::Receive(ExchangeId id, WireFormat format,
                                               float c, Payload bytes) const {
  EdgeMessage message{.format = format, .c = c, .bytes = std::move(bytes)};
  GOSSAMER_RETURN_IF_ERROR(Validate(id, message.encoded(id)));
  if (std::isfinite(limits_.largest)) message.reach = ReachOf(id, &message);
  return message;
}

EdgeMessage CodecSide::OnEmit(ExchangeId id) {
  const Codec& codec = CodecOf(id);
  if (codec.memory() == EdgeMemory::kShared) {
    shared_.resize(codec.memory_size());
    EdgeMessage message =
        cache_->Encode(codec, id, codec.FormatFor(shared_), x_, shared_);
    message.c = c_;
    return message;
  }
  const auto [offset, size] = codec.extent();
  const DeviceSpan<const float> x = x_.subspan(offset, size);
  if (codec.memory() == EdgeMemory::kNone) {
    EdgeMessage message = cache_->Encode(codec, id, x, limits_.largest / 2);
    message.c = c_;
    return message;
  }
  replica_.EnsureSize(queue(), x_.size, kReplica);
  const DeviceSpan<float> replica = replica_.span().subspan(offset, size);
  Progress& progress = ProgressOf(id);
  WireFormat format = format_;
  const uint64_t interval = ResyncInterval(id);
  // PROTOCOL.md 4.9.  The replica of a new incarnation is zero already; behind
  // a resync boundary it is set to zero here.  In both cases the innovation is
  // x itself, for which the codec names a format.
  if (progress.first) {
    format = codec.first_format();
  } else if (interval != progress.emit_interval) {
    format = codec.resync_format();
    queue().Clear(replica);
  }
  progress.first = false;
  progress.emit_interval = interval;
  EdgeMessage message = cache_->Encode(codec, id, format, x, replica);
  // A format that loses less allows a larger step, and another one a smaller.
  message.c = c_ * codec.RelativeGamma(format);
  return message;
}

void CodecSide::OnComplete(ExchangeId id, const EdgeMessage* mine,
                           const EdgeMessage* theirs) {
  if (SeededBug("skip-at-one-end") && upper_ && RoundOf(id) % 8 == 3) {
    return;
  }
  // Callers wait for it where a wait blocks nobody.
  if (mine != nullptr && !DeviceMark(mine->ready).done()) {
    queue().Wait().IgnoreError();
  }
  for (CorrectionObserver* o : observers_) o->OnExchange(id, mine, theirs);
  const Codec& codec = CodecOf(id);
  const auto [offset, size] = codec.extent();
  DeviceSpan<float> difference;
  if (codec.memory() == EdgeMemory::kShared) {
    shared_.resize(codec.memory_size());
    difference = shared_;
  }
  if (codec.needs_replica()) {
    difference_.EnsureSize(queue(), x_.size, kDifference);
    difference = difference_.span().subspan(offset, size);
    Progress& progress = ProgressOf(id);
    const uint64_t interval = ResyncInterval(id);
    // The interval follows from the exchange's id, so both ends set D to zero
    // before the same exchange (PROTOCOL.md 4.9).
    if (interval != progress.complete_interval) {
      queue().Clear(difference);
      progress.complete_interval = interval;
    }
  }
  Encoded m, t;
  if (mine) m = mine->encoded(id);
  if (theirs) t = theirs->encoded(id);
  // Both ends use the smaller coefficient, whichever view each had
  // (PROTOCOL.md 4.4).
  float c = mine && theirs ? std::min(mine->c, theirs->c) : 0.0f;
  if (SeededBug("own-coefficient") && mine && theirs) c = mine->c;
  if (SeededBug("apply-nothing")) c = 0;
  // Called for skips too: D changes by a single payload as well, and its bound
  // grows with it.
  const bool may_be_far = MayBeFar(id, mine, theirs);
  if (codec.memory() == EdgeMemory::kShared || limits_.clip_radius > 0 ||
      may_be_far || (summed_.size > 0 && difference.empty())) {
    return CompleteApart(id, mine, theirs, c, difference, may_be_far);
  }
  const DeviceSpan<float> x = x_.subspan(offset, size);
  codec.Complete(mine ? &m : nullptr, theirs ? &t : nullptr, c, difference, x);
  if (SeededBug("apply-twice") && c > 0) {
    codec.Complete(&m, &t, c, difference, x);
  }
  if (mine && theirs) {
    ++corrections_;
    Sum(codec.extent(), c, difference);
    for (CorrectionObserver* o : observers_) {
      o->OnCorrection(id, *mine, *theirs, c, difference);
    }
  }
}

// The increment is formed in a vector of zeros first.  It can then be measured
// and shortened before it reaches x, and observers are given exactly what was
// added, bit for bit.
void CodecSide::CompleteApart(ExchangeId id, const EdgeMessage* mine,
                              const EdgeMessage* theirs, float c,
                              DeviceSpan<float> memory, bool may_be_far) {
  const Codec& codec = CodecOf(id);
  const auto [offset, size] = codec.extent();
  const DeviceSpan<float> increment = cache_->Zeros(queue(), size);
  Encoded m, t;
  if (mine) m = mine->encoded(id);
  if (theirs) t = theirs->encoded(id);
  codec.Complete(mine ? &m : nullptr, theirs ? &t : nullptr, c, memory,
                 increment);
  // A single payload may change D and never x (PROTOCOL.md 4.4).
  if (mine == nullptr || theirs == nullptr) return;
  if (may_be_far && Far(id, c, memory, increment)) {
    ++clipping_.left_out;
    return;
  }
  if (limits_.clip_radius > 0) Clip(c, increment);
  queue().Run(&DeviceKernels::axpy, 1.0f, increment, x_.subspan(offset, size));
  ++corrections_;
  // If D was only looked at, the correction is the ordinary one.
  const bool looked = codec.needs_replica() && limits_.clip_radius == 0;
  const float factor = looked ? c : 1;
  const DeviceSpan<const float> difference = looked ? memory : increment;
  Sum(codec.extent(), factor, difference);
  for (CorrectionObserver* o : observers_) {
    o->OnCorrection(id, *mine, *theirs, factor, difference);
  }
}

float CodecSide::ReachOf(ExchangeId id, const EdgeMessage* message) const {
  if (message == nullptr) return 0;
  if (message->reach) return *message->reach;
  // Two payloads within half of it are no further apart.
  return CodecOf(id).Reach(message->encoded(id), limits_.largest / 2);
}

// A bound on D is kept from the payloads' own bounds, so that D is read only
// where the bound does not settle it.
bool CodecSide::MayBeFar(ExchangeId id, const EdgeMessage* mine,
                         const EdgeMessage* theirs) {
  if (!std::isfinite(limits_.largest) || limits_.clip_radius > 0) return false;
  // Sums of so many floats as there are exchanges between two resyncs.
  constexpr float kRounding = 1 + 1e-6f;
  float reach = ReachOf(id, mine) + ReachOf(id, theirs);
  if (codec_->needs_replica()) {
    float& all =
        reach_[static_cast<size_t>(FragmentOf(id, codec_->fragments()))];
    all = kRounding * (all + reach);
    reach = all;
  }
  return mine != nullptr && theirs != nullptr && reach > limits_.largest;
}

// The test reads D itself of codecs with replicas, and c·D of the others.
// Either is the same at both ends up to its sign, so both ends leave the
// correction out or neither does.
bool CodecSide::Far(ExchangeId id, float c, DeviceSpan<const float> memory,
                    DeviceSpan<const float> increment) {
  if (!codec_->needs_replica()) {
    return !Within(c * limits_.largest, increment);
  }
  float& reach =
      reach_[static_cast<size_t>(FragmentOf(id, codec_->fragments()))];
  // The bound that was found replaces the grown one.  A small bound spares many
  // reads; one of exactly the limit would make the next exchange read D again.
  for (const float part : {1 / 1024.0f, 1 / 32.0f, 1.0f}) {
    if (!Within(part * limits_.largest, memory)) continue;
    reach = part * limits_.largest;
    return false;
  }
  return true;
}

// The host waits for the answer, on which it depends whether x changes. Healthy
// peers ask once in the very many rounds in which the bound grows to the limit.
bool CodecSide::Within(float limit, DeviceSpan<const float> values) const {
  DeviceVector<uint32_t> outside(queue(), 1);
  queue().Run(&DeviceKernels::all_within, limit, values, outside.span().data);
  return outside.ToHost().front() == 0;
}

void CodecSide::Sum(const Extent& extent, float c,
                    DeviceSpan<const float> difference) {
  // The part of the exchange's fragment that belongs to the summed parameters.
  const size_t from = std::max(extent.offset, summed_.offset);
  const size_t end =
      std::min(extent.offset + extent.size, summed_.offset + summed_.size);
  if (from >= end) return;
  sum_.EnsureSize(queue(), summed_.size, kSum);
  queue().Run(&DeviceKernels::axpy, c,
              difference.subspan(from - extent.offset, end - from),
              sum_.span().subspan(from - summed_.offset, end - from));
}

// ClippedGossip (He, Karimireddy, Jaggi, 2022, algorithm 1).  The increment is
// c·D.  The norm's order of summation is fixed and squares know no sign: the
// factor is the same at both ends.
void CodecSide::Clip(float c, DeviceSpan<float> increment) {
  const auto size = static_cast<double>(increment.size);
  squares_.EnsureSize(queue(), NormSumsOf(increment.size));
  const DeviceSpan<double> squares = squares_.span();
  queue().Run(&DeviceKernels::squared_norm, increment, squares);
  queue().Run(&DeviceKernels::clip, limits_.clip_radius, size, c, squares.data,
              increment);
  lengths_.push_back({Readback<double>(queue(), squares.first(1)), size, c});
  NoteLengths();
}

void CodecSide::NoteLengths() {
  for (; !lengths_.empty() && lengths_.front().squares.ready();
       lengths_.pop_front()) {
    const Length& of = lengths_.front();
    const double length = std::sqrt(of.squares[0] / of.size) / of.c;
    clipping_.longest = std::max(clipping_.longest, length);
    if (length > limits_.clip_radius) ++clipping_.clipped;
  }
}

CodecSide::Saved CodecSide::Save() const {
  const bool shared = codec_->memory() == EdgeMemory::kShared;
  return {std::string(codec_->name()), replica_.ToHost(),
          shared ? shared_ : difference_.ToHost(), sum_.ToHost(), progress_};
}

bool CodecSide::Restore(const Saved& saved) {
  if (saved.codec != codec_->name()) return false;
  const EdgeMemory memory = codec_->memory();
  // A vector is empty if it was never used.  A record comes from a file, so
  // every length is compared with the codec's before anything is taken.
  const auto fits = [this](const std::vector<float>& v, bool kept) {
    return v.empty() || (kept && v.size() == codec_->memory_size());
  };
  const bool replicas = memory == EdgeMemory::kReplicas;
  if (!fits(saved.replica, replicas) ||
      !fits(saved.difference, replicas || memory == EdgeMemory::kShared)) {
    return false;
  }
  if (!saved.sum.empty() && saved.sum.size() != summed_.size) return false;
  if (saved.fragments.size() != progress_.size()) return false;
  replica_ = DeviceVector<float>::Of(queue(), saved.replica, kReplica);
  sum_ = DeviceVector<float>::Of(queue(), saved.sum, kSum);
  if (memory == EdgeMemory::kShared) {
    shared_ = saved.difference;
  } else {
    difference_ =
        DeviceVector<float>::Of(queue(), saved.difference, kDifference);
  }
  progress_ = saved.fragments;
  // The bound of the restored D is not known: the next exchange reads D.
  std::ranges::fill(reach_, std::numeric_limits<float>::infinity());
  return true;
}

}  // namespace gossamer
