// The places at which the values of each part of a vector lie in a payload.
//
// The one place that knows the byte layout of README.md above the level of one
// coded array.  This header knows nothing of replicas or of codec policies.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_WIRE_LAYOUT_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_WIRE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// Unless an option says otherwise.
inline constexpr size_t kMinQuantizedSize = 1024;

// A piece of the parameter vector that is coded alike throughout: one quantized
// segment, or a run of neighbouring small ones.
struct Piece {
  Extent extent;
  bool quantized = false;
};

// The pieces of `layout` in order, covering it; the same for every coding.
// Segments below `least` values, and one-dimensional ones, are not quantized.
std::vector<Piece> SplitIntoPieces(const ParameterLayout& layout,
                                   size_t least = kMinQuantizedSize);
// The parts of `pieces` inside `extent`, counted from its beginning.
std::vector<Piece> PiecesWithin(std::span<const Piece> pieces, Extent extent);

class WireLayout {
 public:
  // `name` is what messages call payloads of it.  With a coding without blocks
  // for `quantized` values lie in the order of the vector.
  WireLayout(std::string name, std::span<const Piece> pieces, Coding quantized,
             Coding others);

  struct Place {
    Coding coding;
    size_t scales = 0;  // offsets into the payload
    size_t codes = 0;
  };

  size_t size() const { return size_; }
  // The place of piece `i`.
  const Place& place(size_t i) const { return places_[i]; }
  // Of a payload of size() bytes, in any memory.
  CodedSpan Part(size_t i, const std::byte* payload) const {
    return {places_[i].coding, payload + places_[i].scales,
            payload + places_[i].codes};
  }

  // kDataLoss unless `payload` is one that an encoder can have written.
  absl::Status Validate(std::span<const Piece> pieces,
                        std::span<const std::byte> payload,
                        const Kernels& kernels) const;
  // Codec::MagnitudeBound; `step` is that of Coding::kUnit.
  float MagnitudeBound(std::span<const Piece> pieces,
                       std::span<const std::byte> payload, float step,
                       float limit, const Kernels& kernels) const;

 private:
  std::string name_;
  size_t size_ = 0;
  std::vector<Place> places_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_WIRE_LAYOUT_H_
