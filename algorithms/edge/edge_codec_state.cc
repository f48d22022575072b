#include "algorithms/edge/edge_codec_state.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
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

EdgeMessage SnapshotCache::Encode(const Codec& codec, ExchangeId id,
                                  const PartFormats& formats,
                                  DeviceSpan<const float> x,
                                  DeviceSpan<float> replica) {
  const DeviceQueue& queue = codec.queue();
  const DueParts due = codec.Due(RoundOf(id));
  const size_t size = PayloadSize(codec, due, formats);
  EdgeMessage message = {.format = codec.joint() ? WireFormat::kJoint
                                                 : formats.front()};
  std::shared_ptr<std::byte[]> owner;
  // The exchange's id is the same at both ends, and at a replay.
  if (queue.on_host()) {
    owner = pool_->Get(size);
    EncodeParts(codec, due, formats, x, replica, id, {owner.get(), size});
  } else {
    auto coded = DeviceVector<std::byte>::Unset(queue, size, "a payload");
    EncodeParts(codec, due, formats, x, replica, id, coded);
    owner = queue.Download(coded);
    message.ready = queue.RecordFence();
  }
  const std::span<const std::byte> bytes(owner.get(), size);
  message.bytes = SharedBytes(bytes, std::move(owner));
  return message;
}

DeviceSpan<float> SnapshotCache::Zeros(const DeviceQueue& queue, size_t size) {
  // Parts differ in size.
  if (zeros_.size() < size) {
    zeros_ = DeviceVector<float>::Unset(queue, size, "zeros");
  }
  const DeviceSpan<float> zeros = zeros_.span().first(size);
  queue.Clear(zeros);
  return zeros;
}

EdgeMessage SnapshotCache::Encode(const Codec& codec, ExchangeId id,
                                  DeviceSpan<const float> x, float limit) {
  // All edges with a stateless codec send the same bytes, so the first edge of
  // the round encodes for the others.
  if (id != id_) {
    PartFormats formats;
    for (const int i : codec.Due(RoundOf(id))) {
      formats.push_back(codec.part(i).codec->format());
    }
    message_ = Encode(codec, id, formats, x, {});
    // A device's bytes are not there yet.
    if (std::isfinite(limit) && codec.queue().on_host()) {
      message_.magnitude_bound =
          MagnitudeBoundOfParts(codec, message_.encoded(id), limit);
    }
    id_ = id;
  }
  return message_;
}

EdgeCodecState::EdgeCodecState(std::shared_ptr<const Codec> codec,
                               DeviceSpan<float> x,
                               std::shared_ptr<SnapshotCache> cache,
                               uint64_t edge_hash, bool upper)
    : codec_(std::move(codec)),
      x_(x),
      cache_(std::move(cache)),
      format_(codec_->format()),
      offset_(edge_hash % kResyncRounds),
      upper_(upper),
      difference_bounds_(static_cast<size_t>(codec_->parts())),
      progress_(static_cast<size_t>(codec_->parts())) {}

uint64_t EdgeCodecState::ResyncInterval(ExchangeId id) const {
  return (RoundOf(id) + offset_) / kResyncRounds;
}

void EdgeCodecState::OnEnd() {
  if (sum_.empty()) return;
  if (!SeededBug("keep-duals")) {
    for (CorrectionObserver* o : observers_) o->OnEdgeEnd(sum_);
  }
  // An edge that was given up may still begin an incarnation, and OnReset comes
  // here again; the sum counts once.
  sum_ = {};
}

void EdgeCodecState::OnReset() {
  // Before anything is cleared: an observer gets the sum of the incarnation
  // that has just ended.
  OnEnd();
  for (CorrectionObserver* o : observers_) o->OnReset();
  replica_.Clear();
  if (!SeededBug("keep-difference")) {
    difference_.Clear();
    std::ranges::fill(shared_, 0.0f);
  }
  std::ranges::fill(progress_, Progress());
  std::ranges::fill(difference_bounds_, 0.0f);
}

absl::StatusOr<EdgeMessage> EdgeCodecState::Receive(ExchangeId id,
                                                    WireFormat format, float c,
                                                    SharedBytes bytes) const {
  EdgeMessage message{.format = format, .c = c, .bytes = std::move(bytes)};
  GOSSAMER_RETURN_IF_ERROR(Validate(message.encoded(id)));
  if (bounds_differences()) {
    message.magnitude_bound = MagnitudeBoundOf(&message, id);
  }
  return message;
}

EdgeMessage EdgeCodecState::OnEmit(ExchangeId id) {
  EdgeMessage message;
  float relative = 1;
  switch (codec_->memory()) {
    case EdgeMemory::kNone:
      message = cache_->Encode(*codec_, id, x_, limits_.largest / 2);
      break;
    case EdgeMemory::kShared:
      shared_.resize(codec_->memory_size());
      message = cache_->Encode(*codec_, id, {codec_->FormatFor(shared_)}, x_,
                               shared_);
      break;
    case EdgeMemory::kReplicas: {
      replica_.EnsureSize(queue(), x_.size, kReplica);
      PartFormats formats;
      for (const int i : codec_->Due(RoundOf(id))) {
        formats.push_back(BeginPayload(i, id));
      }
      message = cache_->Encode(*codec_, id, formats, x_, replica_);
      // A format that loses less allows a larger step, and another one a
      // smaller.
      relative = codec_->RelativeGamma(message.format);
    }
  }
  message.c = c_ * relative;
  return message;
}

WireFormat EdgeCodecState::BeginPayload(int i, ExchangeId id) {
  const CodecPart part = codec_->part(i);
  const Codec& codec = *part.codec;
  if (!codec.needs_replica()) return codec.format();
  Progress& progress = progress_[static_cast<size_t>(i)];
  // The other end requests a format of the parts that have a choice.
  const bool chooses = !codec_->joint() || !codec.choices().empty();
  WireFormat format = chooses ? format_ : codec.format();
  const uint64_t interval = ResyncInterval(id);
  // PROTOCOL.md 4.9.  The replica of a new incarnation is zero already; behind
  // a resync boundary it is set to zero here.  In both cases the innovation is
  // x itself, for which the codec names a format.
  if (progress.first) {
    format = codec.first_format();
  } else if (interval != progress.emit_interval) {
    format = codec.resync_format();
    queue().Clear(
        replica_.span().subspan(part.extent.offset, part.extent.size));
  }
  progress.first = false;
  progress.emit_interval = interval;
  return format;
}

void EdgeCodecState::OnComplete(ExchangeId id, const EdgeMessage* mine,
                                const EdgeMessage* theirs) {
  if (SeededBug("skip-at-one-end") && upper_ && RoundOf(id) % 8 == 3) {
    return;
  }
  // Callers wait for it where a wait blocks nobody.
  if (mine != nullptr && !DeviceFence(mine->ready).done()) {
    queue().Wait().IgnoreError();
  }
  for (CorrectionObserver* o : observers_) o->OnExchange(id, mine, theirs);
  // Both ends use the smaller coefficient, whichever view each had
  // (PROTOCOL.md 4.4).
  float c = mine && theirs ? std::min(mine->c, theirs->c) : 0.0f;
  if (SeededBug("own-coefficient") && mine && theirs) c = mine->c;
  if (SeededBug("apply-nothing")) c = 0;
  // Both have been validated: this end encoded the one, and the other was
  // received, or restored.
  PartPayloads m, t;
  if (mine) m = *SplitPayload(*codec_, mine->encoded(id));
  if (theirs) t = *SplitPayload(*codec_, theirs->encoded(id));
  const float magnitude_bound =
      MagnitudeBoundOf(mine, id) + MagnitudeBoundOf(theirs, id);
  const DueParts due = codec_->Due(RoundOf(id));
  for (size_t k = 0; k < due.size(); ++k) {
    const CodecPart part = codec_->part(due[k]);
    Exchanged exchanged = {.id = id,
                           .mine = mine ? &m[k] : nullptr,
                           .theirs = theirs ? &t[k] : nullptr,
                           .c = c,
                           .magnitude_bound = magnitude_bound};
    if (codec_->joint() && exchanged.met()) {
      exchanged.c *=
          part.gamma * std::min(part.codec->RelativeGamma(m[k].format),
                                part.codec->RelativeGamma(t[k].format));
    }
    const auto [offset, size] = part.extent;
    DeviceSpan<float> memory;
    if (codec_->memory() == EdgeMemory::kShared) {
      shared_.resize(codec_->memory_size());
      memory = shared_;
    } else if (part.codec->needs_replica()) {
      difference_.EnsureSize(queue(), x_.size, kDifference);
      memory = difference_.span().subspan(offset, size);
    }
    CompletePart(due[k], exchanged, memory);
  }
}

void EdgeCodecState::CompletePart(int i, const Exchanged& exchanged,
                                  DeviceSpan<float> memory) {
  const CodecPart part = codec_->part(i);
  const Codec& codec = *part.codec;
  const auto [id, mine, theirs, c, magnitude_bound] = exchanged;
  if (codec.needs_replica()) {
    Progress& progress = progress_[static_cast<size_t>(i)];
    const uint64_t interval = ResyncInterval(id);
    // The interval follows from the exchange's id, so both ends set D to zero
    // before the same exchange (PROTOCOL.md 4.9).
    if (interval != progress.complete_interval) {
      queue().Clear(memory);
      progress.complete_interval = interval;
    }
  }
  // Called for skips too: D changes by a single payload as well, and its bound
  // grows with it.
  const bool may_exceed_limit = MayExceedLimit(i, exchanged);
  if (codec.memory() == EdgeMemory::kShared || limits_.clip_radius > 0 ||
      may_exceed_limit || (summed_.size > 0 && memory.empty())) {
    return CompleteApart(i, exchanged, memory, may_exceed_limit);
  }
  const DeviceSpan<float> x = x_.subspan(part.extent.offset, part.extent.size);
  codec.Complete(mine, theirs, c, memory, x);
  if (SeededBug("apply-twice") && c > 0) {
    codec.Complete(mine, theirs, c, memory, x);
  }
  if (!exchanged.met()) return;
  ++corrections_;
  Sum(part.extent, c, memory);
  for (CorrectionObserver* o : observers_) {
    o->OnCorrection({id, part, *mine, *theirs, c, memory});
  }
}

// The increment is formed in a vector of zeros first.  It can then be measured
// and shortened before it reaches x, and observers are given exactly what was
// added, bit for bit.
void EdgeCodecState::CompleteApart(int i, const Exchanged& exchanged,
                                   DeviceSpan<float> memory,
                                   bool may_exceed_limit) {
  const CodecPart part = codec_->part(i);
  const auto [id, mine, theirs, c, magnitude_bound] = exchanged;
  const auto [offset, size] = part.extent;
  const DeviceSpan<float> increment = cache_->Zeros(queue(), size);
  part.codec->Complete(mine, theirs, c, memory, increment);
  // A single payload may change D and never x (PROTOCOL.md 4.4).
  if (!exchanged.met()) return;
  if (may_exceed_limit && ExceedsLimit(i, c, memory, increment)) {
    ++clipping_.left_out;
    return;
  }
  ++corrections_;
  if (limits_.clip_radius > 0) Clip(c, increment);
  queue().Run(&DeviceKernels::axpy, 1.0f, increment, x_.subspan(offset, size));
  // If D was only looked at, the correction is the ordinary one.
  const bool looked = part.codec->needs_replica() && limits_.clip_radius == 0;
  const float factor = looked ? c : 1;
  const DeviceSpan<const float> difference = looked ? memory : increment;
  Sum(part.extent, factor, difference);
  for (CorrectionObserver* o : observers_) {
    o->OnCorrection({id, part, *mine, *theirs, factor, difference});
  }
}

float EdgeCodecState::MagnitudeBoundOf(const EdgeMessage* message,
                                       ExchangeId id) const {
  if (message == nullptr || !bounds_differences()) return 0;
  if (message->magnitude_bound) return *message->magnitude_bound;
  // Two payloads within half of it are no further apart.
  return MagnitudeBoundOfParts(*codec_, message->encoded(id),
                               limits_.largest / 2);
}

// A bound on D is kept from the payloads' own bounds, so that D is read only
// where the bound does not settle it.
bool EdgeCodecState::MayExceedLimit(int i, const Exchanged& exchanged) {
  if (!bounds_differences()) return false;
  // Sums of so many floats as there are exchanges between two resyncs.
  constexpr float kRounding = 1 + 1e-6f;
  float bound = exchanged.magnitude_bound;
  if (codec_->part(i).codec->needs_replica()) {
    float& all = difference_bounds_[static_cast<size_t>(i)];
    all = kRounding * (all + bound);
    bound = all;
  }
  return exchanged.met() && bound > limits_.largest;
}

// The test reads D itself of codecs with replicas, and c·D of the others.
// Either is the same at both ends up to its sign, so both ends leave the
// correction out or neither does.
bool EdgeCodecState::ExceedsLimit(int i, float c,
                                  DeviceSpan<const float> memory,
                                  DeviceSpan<const float> increment) {
  if (!codec_->part(i).codec->needs_replica()) {
    return !Within(c * limits_.largest, increment);
  }
  float& bound = difference_bounds_[static_cast<size_t>(i)];
  // The bound that was found replaces the grown one.  A small bound spares many
  // reads; one of exactly the limit would make the next exchange read D again.
  for (const float part : {1 / 1024.0f, 1 / 32.0f, 1.0f}) {
    if (!Within(part * limits_.largest, memory)) continue;
    bound = part * limits_.largest;
    return false;
  }
  return true;
}

// The host waits for the answer, on which it depends whether x changes. Healthy
// peers ask once in the very many rounds in which the bound grows to the limit.
bool EdgeCodecState::Within(float limit, DeviceSpan<const float> values) const {
  DeviceVector<uint32_t> outside(queue(), 1);
  queue().Run(&DeviceKernels::all_within, limit, values, outside.span().data);
  return outside.ToHost().front() == 0;
}

void EdgeCodecState::Sum(const Extent& extent, float c,
                         DeviceSpan<const float> difference) {
  // The overlap of the part and the summed parameters.
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
void EdgeCodecState::Clip(float c, DeviceSpan<float> increment) {
  const auto size = static_cast<double>(increment.size);
  squares_.EnsureSize(queue(), NormSumsOf(increment.size));
  const DeviceSpan<double> squares = squares_.span();
  queue().Run(&DeviceKernels::squared_norm, increment, squares);
  queue().Run(&DeviceKernels::clip, limits_.clip_radius, size, c, squares.data,
              increment);
  lengths_.push_back({Readback<double>(queue(), squares.first(1)), size, c});
  NoteLengths();
}

void EdgeCodecState::NoteLengths() {
  for (; !lengths_.empty() && lengths_.front().squares.ready();
       lengths_.pop_front()) {
    const Length& of = lengths_.front();
    const double length = std::sqrt(of.squares[0] / of.size) / of.c;
    clipping_.longest = std::max(clipping_.longest, length);
    if (length > limits_.clip_radius) ++clipping_.clipped;
  }
}

EdgeCodecState::Saved EdgeCodecState::Save(Saved spare) const {
  spare.codec = std::string(codec_->name());
  spare.replica = replica_.ToHost(std::move(spare.replica));
  if (codec_->memory() == EdgeMemory::kShared) {
    spare.difference = shared_;
  } else {
    spare.difference = difference_.ToHost(std::move(spare.difference));
  }
  spare.sum = sum_.ToHost(std::move(spare.sum));
  spare.progress = progress_;
  return spare;
}

EdgeCodecState::Saved EdgeCodecState::Room() const {
  const EdgeMemory memory = codec_->memory();
  const size_t size = codec_->memory_size();
  Saved room;
  if (memory == EdgeMemory::kReplicas) room.replica.reserve(size);
  if (memory != EdgeMemory::kNone) room.difference.reserve(size);
  room.sum.reserve(summed_.size);
  return room;
}

bool EdgeCodecState::Restore(const Saved& saved) {
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
  if (saved.progress.size() != progress_.size()) return false;
  replica_ = DeviceVector<float>::Of(queue(), saved.replica, kReplica);
  sum_ = DeviceVector<float>::Of(queue(), saved.sum, kSum);
  if (memory == EdgeMemory::kShared) {
    shared_ = saved.difference;
  } else {
    difference_ =
        DeviceVector<float>::Of(queue(), saved.difference, kDifference);
  }
  progress_ = saved.progress;
  // The bound of the restored D is not known: the next exchange reads D.
  std::ranges::fill(difference_bounds_, std::numeric_limits<float>::infinity());
  return true;
}

}  // namespace gossamer
