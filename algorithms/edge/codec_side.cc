#include "algorithms/edge/codec_side.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

// The draw shifts a cycle as a whole, so that each fragment comes once in `p`
// rounds while the order differs between cycles.
int FragmentOf(ExchangeId id, int fragments) {
  const auto p = static_cast<uint64_t>(fragments);
  const uint64_t cycle = RoundOf(id) / p;
  return static_cast<int>((RoundOf(id) + RngKey(cycle).Below(p, 0)) % p);
}

EdgeMessage SnapshotCache::Encode(const Codec& codec, ExchangeId id,
                                  WireFormat format, std::span<const float> x,
                                  std::span<float> replica) {
  const size_t size = codec.EncodedSize(format);
  std::shared_ptr<std::byte[]> owner = pool_->Get(size);
  const std::span<std::byte> bytes(owner.get(), size);
  // The exchange's id is the same at both ends, and at a replay.
  codec.Encode(format, x, replica, id, bytes);
  return {.format = format, .bytes = Payload(bytes, std::move(owner))};
}

EdgeMessage SnapshotCache::Encode(const Codec& codec, ExchangeId id,
                                  std::span<const float> x, float limit) {
  // All edges with a stateless codec send the same bytes, so the first edge of
  // the round encodes for the others.
  if (id != id_) {
    message_ = Encode(codec, id, codec.format(), x, {});
    if (std::isfinite(limit)) {
      message_.reach = codec.Reach(message_.encoded(id), limit);
    }
    id_ = id;
  }
  return message_;
}

CodecSide::CodecSide(std::shared_ptr<const Codec> codec, std::span<float> x,
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
  sum_.clear();
}

void CodecSide::OnZero() {
  // Before anything is cleared: an observer gets the sum of the incarnation
  // that has just ended.
  OnEnd();
  for (CorrectionObserver* o : observers_) o->OnZero();
  std::fill(replica_.begin(), replica_.end(), 0.0f);
  if (!SeededBug("keep-difference")) {
    std::fill(difference_.begin(), difference_.end(), 0.0f);
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
    difference_.resize(codec.memory_size());
    EdgeMessage message = cache_->Encode(
        codec, id, codec.FormatFor(difference_), x_, difference_);
    message.c = c_;
    return message;
  }
  const auto [offset, size] = codec.extent();
  const std::span<const float> x = x_.subspan(offset, size);
  if (codec.memory() == EdgeMemory::kNone) {
    EdgeMessage message = cache_->Encode(codec, id, x, limits_.largest / 2);
    message.c = c_;
    return message;
  }
  replica_.resize(x_.size());
  const std::span<float> replica = std::span(replica_).subspan(offset, size);
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
    std::ranges::fill(replica, 0.0f);
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
  for (CorrectionObserver* o : observers_) o->OnExchange(id, mine, theirs);
  const Codec& codec = CodecOf(id);
  const auto [offset, size] = codec.extent();
  std::span<float> difference;
  if (codec.memory() == EdgeMemory::kShared) {
    difference_.resize(codec.memory_size());
    difference = difference_;
  }
  if (codec.needs_replica()) {
    difference_.resize(x_.size());
    difference = std::span(difference_).subspan(offset, size);
    Progress& progress = ProgressOf(id);
    const uint64_t interval = ResyncInterval(id);
    // The interval follows from the exchange's id, so both ends set D to zero
    // before the same exchange (PROTOCOL.md 4.9).
    if (interval != progress.complete_interval) {
      std::ranges::fill(difference, 0.0f);
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
  const std::span<float> x = x_.subspan(offset, size);
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
                              std::span<float> memory, bool may_be_far) {
  const Codec& codec = CodecOf(id);
  const auto [offset, size] = codec.extent();
  const std::span<float> increment = cache_->Zeros(size);
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
  HostKernels().axpy(1, increment, x_.subspan(offset, size));
  ++corrections_;
  // If D was only looked at, the correction is the ordinary one.
  const bool looked = codec.needs_replica() && limits_.clip_radius == 0;
  const float factor = looked ? c : 1;
  const std::span<const float> difference = looked ? memory : increment;
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
bool CodecSide::Far(ExchangeId id, float c, std::span<const float> memory,
                    std::span<const float> increment) {
  if (!codec_->needs_replica()) {
    return !HostKernels().all_within(c * limits_.largest, increment);
  }
  float& reach =
      reach_[static_cast<size_t>(FragmentOf(id, codec_->fragments()))];
  // The bound that was found replaces the grown one.  A small bound spares many
  // reads; one of exactly the limit would make the next exchange read D again.
  for (const float part : {1 / 1024.0f, 1 / 32.0f, 1.0f}) {
    if (!HostKernels().all_within(part * limits_.largest, memory)) continue;
    reach = part * limits_.largest;
    return false;
  }
  return true;
}

void CodecSide::Sum(const Extent& extent, float c,
                    std::span<const float> difference) {
  // The part of the exchange's fragment that belongs to the summed parameters.
  const size_t from = std::max(extent.offset, summed_.offset);
  const size_t end =
      std::min(extent.offset + extent.size, summed_.offset + summed_.size);
  if (from >= end) return;
  sum_.resize(summed_.size);
  HostKernels().axpy(
      c, difference.subspan(from - extent.offset, end - from),
      std::span(sum_).subspan(from - summed_.offset, end - from));
}

// ClippedGossip (He, Karimireddy, Jaggi, 2022, algorithm 1).  The increment is
// c·D.  The norm's order of summation is fixed and squares know no sign: the
// factor is the same at both ends.
void CodecSide::Clip(float c, std::span<float> increment) {
  const double length = std::sqrt(HostKernels().squared_norm(increment) /
                                  static_cast<double>(increment.size())) /
                        c;
  clipping_.longest = std::max(clipping_.longest, length);
  if (!(length > limits_.clip_radius)) return;
  ++clipping_.clipped;
  HostKernels().scale(static_cast<float>(limits_.clip_radius / length),
                      increment);
}

CodecSide::Saved CodecSide::Save() const {
  return {std::string(codec_->name()), replica_, difference_, sum_, progress_};
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
  replica_ = saved.replica;
  difference_ = saved.difference;
  sum_ = saved.sum;
  progress_ = saved.fragments;
  // The bound of the restored D is not known: the next exchange reads D.
  std::ranges::fill(reach_, std::numeric_limits<float>::infinity());
  return true;
}

}  // namespace gossamer
