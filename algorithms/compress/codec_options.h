// What may follow a codec's name: "innov-topk:k=128",
// "qsgd:levels=127,norm=l2".
//
// Knows nothing of what the options mean beyond their ranges.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_CODEC_OPTIONS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_CODEC_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "algorithms/compress/codec.h"
#include "algorithms/kernels/coding.h"

namespace gossamer {

// Unless an option says otherwise.
inline constexpr size_t kMinQuantizedSize = 1024;

// The step of kUnit in a round, the same on every machine: Dyna-COLD's s_k / 2
// with s_k = max(scale · decay^round, floor), as a bf16.  The floor stays above
// the resolution of floats: a step that no longer moves x̂ would leave D where
// it is, and the dual would follow it for ever.
struct ShrinkingStep {
  double scale = 1;
  double decay = 0.99;
  double floor = 1e-5;
  float StepOf(uint64_t round) const;
};

// Both ends of an edge need the same: sizes of payloads follow from these.
struct CodecOptions {
  uint16_t kept = 64;  // k: values that top-k keeps of every 4096
  // QSGD: s, values per scale, and what of these the scale is a fraction of.
  uint8_t levels = 7;
  uint16_t bucket = 512;
  Coding::Norm norm = Coding::kMax;
  // Segments below `least` values, and one-dimensional ones, travel as `raw`.
  size_t least = kMinQuantizedSize;
  Coding::Kind raw = Coding::kBf16;
  Packing packing = Packing::kNone;
  int zstd_level = 1;
  int fragments = 1;
  ShrinkingStep unit;
  // Moniqua: the most by which values of two peers differ, and bits, 4 or 8.
  double theta = 0.1;
  int bits = 8;
};

// Reads `text`, "key=value,...", for a codec that has the options `known`.
// kInvalidArgument names these, or the values that one may have.
absl::StatusOr<CodecOptions> ParseCodecOptions(
    std::string_view codec, std::span<const std::string_view> known,
    std::string_view text);

// Those of the codec of this name if it is one with a range
// ("moniqua:theta=2"), else none.
std::optional<CodecOptions> ModuloOptions(std::string_view name);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_CODEC_OPTIONS_H_
