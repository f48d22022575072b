// The places at which the values of each part of the parameter vector lie in a
// payload of each wire format.
//
// The one place that knows the byte layout of README.md above the level of one
// coded array.  Knows nothing of replicas or of codec policies.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_WIRE_LAYOUT_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_WIRE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/codec.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// Unless an option says otherwise.
inline constexpr size_t kMinQuantizedSize = 1024;

// The options of wire formats.
struct FormatOptions {
  uint16_t kept = 64;  // k: values that top-k keeps of every 4096
  // QSGD: s, values per scale, and what of these the scale is a fraction of.
  uint8_t levels = 7;
  uint16_t bucket = 512;
  Coding::Norm norm = Coding::kMax;
  Coding::Kind raw = Coding::kBf16;  // of pieces that are not quantized
};

// A piece of the parameter vector that is coded alike throughout: one quantized
// segment, or a run of neighbouring small ones.
struct Piece {
  Extent extent;
  bool quantized = false;
};

// The pieces of `layout` in order, covering it; the same for every format.
// Segments below `least` values, and one-dimensional ones, are not quantized.
std::vector<Piece> SplitIntoPieces(const ParameterLayout& layout,
                                   size_t least = kMinQuantizedSize);
// The parts of `pieces` inside `extent`, counted from its beginning.
std::vector<Piece> PiecesWithin(std::span<const Piece> pieces, Extent extent);

class WireLayout {
 public:
  WireLayout(WireFormat format, std::span<const Piece> pieces,
             const FormatOptions& options);

  struct Place {
    Coding coding;
    size_t scales = 0;  // offsets into the payload
    size_t codes = 0;
  };

  WireFormat format() const { return format_; }
  size_t size() const { return size_; }
  // The place of piece `i`.
  const Place& place(size_t i) const { return places_[i]; }
  CodedSpan Part(size_t i, std::span<const std::byte> payload) const {
    return {places_[i].coding, payload.data() + places_[i].scales,
            payload.data() + places_[i].codes};
  }

  // kDataLoss unless `payload` is one that an encoder can have written.
  absl::Status Validate(std::span<const Piece> pieces,
                        std::span<const std::byte> payload,
                        const Kernels& kernels) const;
  // Codec::Reach; `step` is that of Coding::kUnit.
  float Reach(std::span<const Piece> pieces, std::span<const std::byte> payload,
              float step, float limit, const Kernels& kernels) const;

 private:
  WireFormat format_;
  size_t size_ = 0;
  std::vector<Place> places_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_WIRE_LAYOUT_H_
