// Codecs: what a snapshot becomes on the wire and how two of them make a
// correction.
//
// A codec is a policy over wire formats.  A wire format maps a span of floats
// to bytes of a size known from the layout alone.  An innovation codec codes x
// − x̂ and adds what it coded to the replica x̂; a stateless one codes x. Large
// segments are quantized; small (by default under 1024 parameters) and
// one-dimensional ones travel in bf16 inside the same payload, so that one
// coefficient acts on all. This header knows nothing of edges, frames or
// networks. Source: research on compressed gossip (CHOCO, Koloskova, Stich,
// Jaggi, ICML 2019), in difference form with one replica per edge.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_CODEC_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

// The wire format byte of a frame header.  Values never change.
enum class WireFormat : uint8_t {
  kDenseF32 = 1,
  kDenseBf16 = 2,
  kInt8 = 3,
  kInt4 = 4,
  kLm2 = 5,
  kSign = 6,
  kTopK = 7,
  // 8 was QSGD's.
  kUnit = 9,  // Dyna-COLD's
  // 10 was Moniqua's.
  kPowerColumns = 11,  // PowerGossip's
  kPowerRows = 12,
  // 13 and 14 were masked averages'.
  kJoint = 15,  // of several parts (joint_payload.h)
};
// The last format that codes values by itself; each of the others belongs to
// one codec.
inline constexpr int kLastWireFormat = 9;
// Whether a number is a format that codes values by itself.
constexpr bool IsValueFormat(uint64_t number) {
  switch (number) {
    case static_cast<uint64_t>(WireFormat::kDenseF32):
    case static_cast<uint64_t>(WireFormat::kDenseBf16):
    case static_cast<uint64_t>(WireFormat::kInt8):
    case static_cast<uint64_t>(WireFormat::kInt4):
    case static_cast<uint64_t>(WireFormat::kLm2):
    case static_cast<uint64_t>(WireFormat::kSign):
    case static_cast<uint64_t>(WireFormat::kTopK):
    case static_cast<uint64_t>(WireFormat::kUnit):
      return true;
    default:
      return false;
  }
}

// The state that a codec has the ends of an edge keep between exchanges.
enum class EdgeMemory : uint8_t {
  kNone,
  kReplicas,  // a sender's replica x̂, and at each end the difference D
  kShared,    // what both ends have made of the exchanges completed so far
};

class Codec;

// A part of a vector and its codec, which knows nothing of the others: it codes
// that extent as if there were no more.
struct CodecPart {
  Extent extent;
  const Codec* codec = nullptr;
  float gamma = 1;  // of a joint payload: times its coefficient
};
using DueParts = absl::InlinedVector<int, kMaxPlayers>;

// The part of `parts` that is due in a round: each once in as many rounds,
// in an order that begins anew at a random one, so that no schedule with a
// period of its own meets some of them only.  All phases of a round concern the
// same one.
int DuePart(uint64_t round, int parts);

// An encoded snapshot, in the host's memory, and how to read it.
struct Encoded {
  WireFormat format = WireFormat::kDenseF32;
  std::span<const std::byte> bytes;
  uint64_t key = 0;  // what Encode was given
};

// Immutable once made; one serves all edges of a peer.  Snapshots, replicas and
// differences lie on the device of its queue, in the order of which they are
// read and written; payloads that have been encoded lie there, too, until they
// are downloaded, and those that are read come from the host.
class Codec {
 public:
  // The compressor of edges of this name, with its options: "innov-int4",
  // "innov-topk:k=64" (registry.h).  kInvalidArgument names the known ones.
  static absl::StatusOr<std::shared_ptr<const Codec>> Create(
      std::string_view name, const ParameterLayout& layout,
      const DeviceQueue& queue = DeviceQueue::Host());
  static std::vector<std::string_view> Names();

  virtual ~Codec() = default;
  // The name as it was given to Create.
  virtual std::string_view name() const = 0;
  virtual const DeviceQueue& queue() const = 0;
  virtual EdgeMemory memory() const = 0;
  // Number of floats of memory: that of the parameters, or with kShared one of
  // the codec's own, which lies in the host's memory.
  virtual size_t memory_size() const { return size(); }
  bool needs_replica() const { return memory() == EdgeMemory::kReplicas; }
  // The consensus step size γ at which mixing with this codec is stable.
  virtual float gamma() const = 0;
  // The largest γ, gamma() at least, up to which disagreement shrinks on every
  // graph; above, on some it grows from round to round, or ends above half of
  // what it began with (measured: README.md, "How far γ may go").
  virtual float largest_gamma() const = 0;
  // Number of parameters.
  virtual size_t size() const = 0;

  // Parts of the vector with a state of their own at both ends of an edge, as
  // fragments of it or players have.  A codec of several parts codes nothing
  // itself: what it says of formats and γ is true of each part unless its
  // payloads are joint, and its EncodedSize is that of the largest payload.
  virtual int parts() const { return 1; }
  virtual CodecPart part(int i) const { return {{0, size()}, this}; }
  // The parts that the exchanges of a round concern, in rising order; the same
  // at both ends.  Empty: the round has none.
  virtual DueParts Due(uint64_t round) const { return {0}; }
  // The most rounds in a row in which no part is due.
  virtual int idle_rounds() const { return 0; }
  // A payload holds those of all parts that are due, each with a format of its
  // own (joint_payload.h); otherwise it is that of the one part.
  virtual bool joint() const { return false; }

  // The format of every payload but the first after a reset or resync.
  virtual WireFormat format() const = 0;
  // The format of the first payload of an incarnation, and of the first after
  // a resync boundary (PROTOCOL.md 4.9).  Stateless codecs have but one format.
  virtual WireFormat first_format() const = 0;
  virtual WireFormat resync_format() const = 0;

  // With kShared: that of the next payload.
  virtual WireFormat FormatFor(std::span<const float> memory) const {
    return format();
  }

  // The formats among which each end of an edge chooses anew for every payload,
  // the widest first, `format()` among them; empty: there is no choice.
  virtual std::span<const WireFormat> choices() const = 0;
  // γ with this format over γ with `format()`.
  virtual float RelativeGamma(WireFormat format) const = 0;

  // Bytes of a payload, exact.  0 for a value that is no format, so that the
  // byte of a received header may be asked for as it is.
  virtual size_t EncodedSize(WireFormat format) const = 0;
  // With `memory` as in memory():
  //   kReplicas  x̂: q = C(x − x̂), x̂ += q
  //   kShared       q = C(x; memory), which only Complete changes
  //   empty         q = C(x)
  // Writes q to `out` (EncodedSize(format) bytes).  x is finite: the caller has
  // checked.  A value beyond ±kMaxMagnitude is coded as that bound.  `key` is
  // the exchange's id, the same at both ends: kUnit has a step of its round.
  virtual void Encode(WireFormat format, DeviceSpan<const float> x,
                      DeviceSpan<float> memory, uint64_t key,
                      DeviceSpan<std::byte> out) const = 0;
  // kDataLoss unless Complete can read `payload`: known format, exact size,
  // scales and values in range, so that D stays finite however many payloads
  // come.  For bytes from outside, before anything else.
  virtual absl::Status Validate(const Encoded& payload) const = 0;

  // An upper bound of |decode(payload)|, of a payload that has been validated;
  // cheap.  Of values without scales it is known only whether they are within
  // `limit`: infinity, if not.  Infinity with kShared.
  virtual float MagnitudeBound(const Encoded& payload, float limit) const {
    return std::numeric_limits<float>::infinity();
  }

  // One completed exchange, in order (PROTOCOL.md 4.4).  Payloads have been
  // validated; null is a skip, which counts as 0.
  // With a replica: D += decode(theirs) − decode(mine); if both are there,
  // x += c·D.  Stateless (`difference` empty): x += c·(decode(theirs) −
  // decode(mine)) if both are there.  With kShared, `difference` is the memory;
  // if both are there it and x change, x by opposite increments at both ends.
  virtual void Complete(const Encoded* mine, const Encoded* theirs, float c,
                        DeviceSpan<float> difference,
                        DeviceSpan<float> x) const = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_CODEC_H_
