// The state of the codec at one end of an edge, between the protocol and the
// parameters: the replica x̂ and the difference D (PROTOCOL.md 2, 4.4).
//
// Vectors lie on the device of the codec's queue; payloads come and go in the
// host's memory.  This header knows nothing of frames or connections.  x
// belongs to the caller and is touched inside OnEmit and OnComplete only.

#ifndef GOSSAMER_ALGORITHMS_EDGE_EDGE_CODEC_STATE_H_
#define GOSSAMER_ALGORITHMS_EDGE_EDGE_CODEC_STATE_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/buffer_pool.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/joint_payload.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

// One encoded snapshot with its coefficient c = γ·w.
struct EdgeMessage {
  WireFormat format = WireFormat::kDenseF32;
  float c = 0;
  // Codec::MagnitudeBound, once it is known.
  std::optional<float> magnitude_bound = {};
  SharedBytes bytes = {};
  // A device has encoded `bytes` once this fence is done.
  DeviceFence ready = {};

  // `id` is that of its exchange.
  Encoded encoded(ExchangeId id) const { return {format, bytes.bytes(), id}; }
};

// Shared by the edges of a peer: a stateless codec's snapshot, encoded once for
// all of a round (there is at most one such codec), and the memory of payloads.
// Sets all of a message but its coefficient.
class SnapshotCache {
 public:
  // `limit` as in Codec::MagnitudeBound; infinity: no bound is needed.
  EdgeMessage Encode(const Codec& codec, ExchangeId id,
                     DeviceSpan<const float> x, float limit);
  // For one edge alone, the parts that are due in these formats; the replica
  // becomes what the other end will have.
  EdgeMessage Encode(const Codec& codec, ExchangeId id,
                     const PartFormats& formats, DeviceSpan<const float> x,
                     DeviceSpan<float> replica);
  // For increments of x, on this queue's device; until the next call.
  DeviceSpan<float> Zeros(const DeviceQueue& queue, size_t size);

 private:
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  ExchangeId id_ = 0;
  EdgeMessage message_;
  DeviceVector<float> zeros_;
};

// The increment that an exchange has just added to one part of x, min(c)·D.
struct Correction {
  ExchangeId id = 0;
  // The part and its codec, and what each end sent of it.
  CodecPart part = {};
  Encoded mine = {}, theirs = {};
  float c = 0;
  // D of the part, empty with a stateless codec; of one with shared memory, and
  // where corrections are clipped, it is the increment itself, and c is 1.
  DeviceSpan<const float> difference = {};
};

// Gets every correction as it is applied; for checkers and metrics.
class CorrectionObserver {
 public:
  virtual ~CorrectionObserver() = default;
  virtual void OnCorrection(const Correction& correction) = 0;
  // Called before OnCorrection with the payloads of both ends, also if one end
  // sent none (null) and no correction follows.
  virtual void OnExchange(ExchangeId id, const EdgeMessage* mine,
                          const EdgeMessage* theirs) {}
  // An incarnation of the edge begins: replica and difference are zero.
  virtual void OnReset() {}
  // An incarnation of the edge has ended, whether or not another one follows:
  // `sum` is all that its corrections have added to the parameters of
  // set_summed().
  virtual void OnEdgeEnd(DeviceSpan<const float> sum) {}
};

// Clipping on an edge: lengths are root mean squares, so that a part's and a
// whole vector's compare.  The lengths of a device count once the host
// knows them.
struct Clipping {
  uint64_t clipped = 0;   // corrections so far that were shortened
  uint64_t left_out = 0;  // or left out
  double longest = 0;     // the longest D since it was last taken
};

// The limits on corrections of a peer that is broken or hostile.  Both
// ends have D up to its sign, and so do the same to the bit; they must have the
// same limits.
struct CorrectionLimits {
  // ClippedGossip (He, Karimireddy, Jaggi, 2022, algorithm 1): a correction is
  // c·D·min(1, clip_radius/‖D‖), ‖D‖ being the root mean square of D.  0: no
  // clipping.
  double clip_radius = 0;
  // A correction with a value of D beyond it is left out, unless it is clipped:
  // the other end's parameters are nonsense, or this one's.  Above 0; infinity:
  // never.
  float largest = std::numeric_limits<float>::infinity();
};

class EdgeCodecState {
 public:
  using Token = EdgeMessage;

  EdgeCodecState() = default;
  // `x`, on the device of the codec's queue, outlives this object and does not
  // move; `cache` may be shared by the edges of one peer.
  // `edge_hash` is the same at both ends: it spreads resyncs (PROTOCOL.md 4.9).
  // `upper` differs; planted bugs use it alone.
  EdgeCodecState(std::shared_ptr<const Codec> codec, DeviceSpan<float> x,
                 std::shared_ptr<SnapshotCache> cache, uint64_t edge_hash,
                 bool upper = false);

  // Weight γ·w of the next emission.
  void set_coefficient(float c) { c_ = c; }
  // The format of the next emissions, one of the codec's choices.
  void set_format(WireFormat format) { format_ = format; }
  WireFormat format() const { return format_; }
  // From here on; the same at both ends.
  void set_limits(const CorrectionLimits& limits) { limits_ = limits; }
  // The parameters whose corrections are summed up for OnEdgeEnd; memory of as
  // many floats from the first correction on.
  void set_summed(const Extent& extent) { summed_ = extent; }
  const Clipping& clipping() const { return clipping_; }
  double TakeLongest() {
    NoteLengths();
    return std::exchange(clipping_.longest, 0);
  }
  // The observer outlives this object.
  void add_observer(CorrectionObserver* o) { observers_.push_back(o); }
  const Codec& codec() const { return *codec_; }
  // Of parts of x.
  uint64_t corrections() const { return corrections_; }

  // A message of the other end as it arrived, validated.  kDataLoss if it is
  // none of this codec.
  absl::StatusOr<EdgeMessage> Receive(ExchangeId id, WireFormat format, float c,
                                      SharedBytes bytes) const;
  // kDataLoss unless `payload` may belong to the exchange of its key.
  absl::Status Validate(const Encoded& payload) const {
    return ValidateParts(*codec_, payload);
  }

  // The edge is given up: observers get the sum of its corrections.
  void OnEnd();

  // For EdgeEnd.
  void OnReset();
  EdgeMessage OnEmit(ExchangeId id);
  void OnComplete(ExchangeId id, const EdgeMessage* mine,
                  const EdgeMessage* theirs);

  // The state of a part.
  struct Progress {
    bool first = true;  // next payload is the first of its incarnation
    uint64_t emit_interval = 0;
    uint64_t complete_interval = 0;
    friend bool operator==(const Progress&, const Progress&) = default;
  };
  // The part that a checkpoint keeps.
  struct Saved {
    std::string codec;  // its name: payloads of two may look alike
    std::vector<float> replica;
    std::vector<float> difference;
    std::vector<float> sum;
    std::vector<Progress> progress = std::vector<Progress>(1);  // by part

    // Its vectors, by name.
    std::array<std::pair<std::string_view, std::vector<float>*>, 3> Vectors() {
      return {
          {{"replica", &replica}, {"difference", &difference}, {"sum", &sum}}};
    }
  };
  Saved Save() const { return Save(Saved()); }
  // Into the memory of `spare`, as far as that fits.
  Saved Save(Saved spare) const;
  // Vectors for Save() without values: memory of which no page is there yet.
  Saved Room() const;
  // False if it is of another codec or size; nothing changes then.
  bool Restore(const Saved& saved);

 private:
  // An exchange as one part of x sees it.
  struct Exchanged {
    ExchangeId id = 0;
    // Null: a skip.
    const Encoded* mine = nullptr;
    const Encoded* theirs = nullptr;
    float c = 0;
    float magnitude_bound = 0;  // of both payloads together, at most

    bool met() const { return mine != nullptr && theirs != nullptr; }
  };

  // The format of the next payload of part `i`, whose replica is cleared if
  // that begins anew.
  WireFormat BeginPayload(int i, ExchangeId id);
  // One part of an exchange; `memory` is D of that part, or the shared memory.
  void CompletePart(int i, const Exchanged& exchanged,
                    DeviceSpan<float> memory);
  void CompleteApart(int i, const Exchanged& exchanged,
                     DeviceSpan<float> memory, bool may_exceed_limit);
  // A correction is left out if D is too long; one that is clipped is not.
  bool bounds_differences() const {
    return std::isfinite(limits_.largest) && limits_.clip_radius <= 0;
  }
  // False: D is within the limit for sure.  True: D has to be read.
  bool MayExceedLimit(int i, const Exchanged& exchanged);
  float MagnitudeBoundOf(const EdgeMessage* message, ExchangeId id) const;
  bool ExceedsLimit(int i, float c, DeviceSpan<const float> memory,
                    DeviceSpan<const float> increment);
  bool Within(float limit, DeviceSpan<const float> values) const;
  void Clip(float c, DeviceSpan<float> increment);
  void NoteLengths();
  // c times `difference`, of `extent`, has been added.
  void Sum(const Extent& extent, float c, DeviceSpan<const float> difference);
  // B(id): rounds between two resyncs, staggered over edges.
  uint64_t ResyncInterval(ExchangeId id) const;
  const DeviceQueue& queue() const { return codec_->queue(); }

  std::shared_ptr<const Codec> codec_;
  DeviceSpan<float> x_;
  std::shared_ptr<SnapshotCache> cache_;
  WireFormat format_ = WireFormat::kDenseF32;
  uint64_t offset_ = 0;
  bool upper_ = false;
  std::vector<CorrectionObserver*> observers_;
  float c_ = 0;
  uint64_t corrections_ = 0;
  CorrectionLimits limits_;
  std::vector<float> difference_bounds_;  // of D, by part
  Clipping clipping_;
  // The squared norm of an increment, and those that the host does not know
  // yet.
  DeviceVector<double> squares_;
  struct Length {
    Readback<double> squares;
    double size = 0, c = 0;
  };
  std::deque<Length> lengths_;
  // Empty with a codec of another memory, and until first used.
  DeviceVector<float> replica_;
  DeviceVector<float> difference_;
  std::vector<float> shared_;
  std::vector<Progress> progress_;  // by part
  Extent summed_;
  DeviceVector<float> sum_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_EDGE_EDGE_CODEC_STATE_H_
