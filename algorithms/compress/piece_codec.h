// The codec of payloads whose layout splits the vector into pieces: large
// segments, which are quantized, and runs of small ones, which are not.
//
// A policy says which format when, with a replica or without, at which γ; the
// codec calls one kernel per piece.  This header knows nothing of names and of
// options as text: a compressor of this folder fills the policy.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_PIECE_CODEC_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_PIECE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/shrinking_step.h"
#include "algorithms/compress/wire_layout.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// Both ends of an edge need the same: sizes of payloads follow from it.
struct PiecePolicy {
  EdgeMemory memory = EdgeMemory::kNone;
  WireFormat format = WireFormat::kDenseF32;
  WireFormat first_format = WireFormat::kDenseF32;
  WireFormat resync_format = WireFormat::kDenseF32;
  float gamma = 1;
  float largest_gamma = 1;
  // Codec::choices, of static storage, and what RelativeGamma is of each; null:
  // 1 of all.
  std::span<const WireFormat> choices = {};
  float (*relative_gamma)(WireFormat) = nullptr;
  uint16_t kept = 64;       // k: values that kTopK keeps of every 4096
  ShrinkingStep unit = {};  // of kUnit
  // Segments below `least` values, and one-dimensional ones, are not quantized.
  size_t least = kMinQuantizedSize;
  int fragments = 1;
};

// kInvalidArgument if the layout has too few parameters for the fragments.
absl::StatusOr<std::shared_ptr<const Codec>> MakePieceCodec(
    std::string_view name, const PiecePolicy& policy,
    const ParameterLayout& layout, const DeviceQueue& queue);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_PIECE_CODEC_H_
