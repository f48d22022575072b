#include "algorithms/gossip/codec_side.h"

#include <algorithm>
#include <utility>

namespace gossamer {
namespace {

// D drifts from x̂_theirs − x̂_mine by rounding, 1e-5 of |x| after this many
// exchanges (EDGE 9); a fleet's edges resync in different rounds.
constexpr uint64_t kResyncRounds = 65536;

}  // namespace

Payload SnapshotCache::Encode(const Codec& codec, ExchangeId id,
                              WireFormat format, std::span<const float> x,
                              std::span<float> replica) {
  const size_t size = codec.EncodedSize(format);
  std::shared_ptr<std::byte[]> owner = pool_->Get(size);
  const std::span<std::byte> bytes(owner.get(), size);
  // The exchange's id is the same at all peers, and at a replay.
  codec.Encode(format, x, replica, id, bytes);
  return Payload(bytes, std::move(owner));
}

Payload SnapshotCache::Encode(const Codec& codec, ExchangeId id,
                              std::span<const float> x) {
  if (id != id_) {
    payload_ = Encode(codec, id, codec.format(), x, {});
    id_ = id;
  }
  return payload_;
}

CodecSide::CodecSide(std::shared_ptr<const Codec> codec, std::span<float> x,
                     std::shared_ptr<SnapshotCache> cache, uint64_t edge_hash)
    : codec_(std::move(codec)),
      x_(x),
      cache_(std::move(cache)),
      format_(codec_->format()),
      offset_(edge_hash % kResyncRounds) {}

uint64_t CodecSide::ResyncInterval(ExchangeId id) const {
  return (RoundOf(id) + offset_) / kResyncRounds;
}

void CodecSide::OnZero() {
  std::fill(replica_.begin(), replica_.end(), 0.0f);
  std::fill(difference_.begin(), difference_.end(), 0.0f);
  first_ = true;
}

EdgeMessage CodecSide::OnEmit(ExchangeId id) {
  if (!codec_->needs_replica()) {
    return {codec_->format(), c_, cache_->Encode(*codec_, id, x_)};
  }
  replica_.resize(x_.size());
  WireFormat format = format_;
  const uint64_t interval = ResyncInterval(id);
  if (first_) {
    format = codec_->first_format();
  } else if (interval != emit_interval_) {
    format = codec_->resync_format();
    std::fill(replica_.begin(), replica_.end(), 0.0f);
  }
  first_ = false;
  emit_interval_ = interval;
  return {format, c_ * codec_->RelativeGamma(format),
          cache_->Encode(*codec_, id, format, x_, replica_)};
}

void CodecSide::OnComplete(ExchangeId id, const EdgeMessage* mine,
                           const EdgeMessage* theirs) {
  if (codec_->needs_replica()) {
    difference_.resize(x_.size());
    const uint64_t interval = ResyncInterval(id);
    if (interval != complete_interval_) {
      std::fill(difference_.begin(), difference_.end(), 0.0f);
      complete_interval_ = interval;
    }
  }
  Encoded m, t;
  if (mine) m = mine->encoded();
  if (theirs) t = theirs->encoded();
  // Both ends use the smaller coefficient, whichever view each had (EDGE 10).
  const float c = mine && theirs ? std::min(mine->c, theirs->c) : 0.0f;
  codec_->Complete(mine ? &m : nullptr, theirs ? &t : nullptr, c, difference_,
                   x_);
  if (mine && theirs) {
    ++corrections_;
    if (observer_) observer_->OnCorrection(id, *mine, *theirs, c, difference_);
  }
}

CodecSide::Saved CodecSide::Save() const {
  return {replica_, difference_, first_, emit_interval_, complete_interval_};
}

bool CodecSide::Restore(const Saved& saved) {
  for (const std::vector<float>* v : {&saved.replica, &saved.difference}) {
    const bool fits = v->empty() || v->size() == x_.size();
    if (!fits || (!v->empty() && !codec_->needs_replica())) return false;
  }
  replica_ = saved.replica;
  difference_ = saved.difference;
  first_ = saved.first;
  emit_interval_ = saved.emit_interval;
  complete_interval_ = saved.complete_interval;
  return true;
}

}  // namespace gossamer
