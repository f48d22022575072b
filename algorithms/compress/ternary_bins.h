// The payload of AdaComp: which indices of which bins are sent, with signs.
//
// Little-endian, of L layers with large segments:
//   L scales, f32
//   the values of small and one-dimensional segments, f32
//   of every bin, layer by layer, a byte: how many are sent (0 to 63), and in
//     the upper two bits how often the layer's scale is halved
//   of every value that is sent, bin by bin, its index in the bin, rising, and
//     its sign in the highest bit: one byte in bins of at most 128, else two
// This header knows nothing of residues or of what is worth sending.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_TERNARY_BINS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_TERNARY_BINS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/base/parameter_layout.h"
#include "algorithms/collective/all_reduce_form.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

inline constexpr uint32_t kMaxPerBin = 63;
inline constexpr uint32_t kMaxHalvings = 3;
inline constexpr size_t kLargestBin = 1 << 15;

// A large segment, cut into bins, the last shorter.
struct BinnedLayer {
  Extent extent;
  size_t bin = 0;
  size_t bins() const { return (extent.size + bin - 1) / bin; }
  // Values in bin b.
  size_t size(size_t b) const {
    return b + 1 < bins() ? bin : extent.size - b * bin;
  }
  size_t entry_bytes() const { return bin <= 128 ? 1 : 2; }
};

class TernaryBins final : public PayloadFormat {
 public:
  // Bins of `conv` values in segments of four dimensions or more, else `dense`;
  // if `flat`, bins of `dense` over the vector as a whole: one layer.
  TernaryBins(const ParameterLayout& layout, size_t dense, size_t conv,
              bool flat, const Kernels& kernels);

  std::span<const BinnedLayer> layers() const { return layers_; }
  std::span<const Extent> small() const { return small_; }

  // Writes a payload from front to back: all scales are known beforehand.
  class Writer {
   public:
    // `gradient` may be empty: zeros.  `most`: bytes that all indices take at
    // most.
    Writer(const TernaryBins& format, std::span<const float> scales,
           std::span<const float> gradient, size_t most);
    // The next bin, of `layer`: at `indices` (in the bin, rising, at most
    // kMaxPerBin) are sgn(x) · value, value = scale · 2^−halvings.  They are
    // taken from x.
    void Bin(const BinnedLayer& layer, uint32_t halvings,
             std::span<const uint32_t> indices, float value, float* x);
    SharedBytes Finish();

   private:
    std::vector<std::byte> bytes_;
    size_t count_;  // where the next bin's is
    size_t end_;    // of the indices so far
  };

  absl::StatusOr<SharedBytes> Accept(SharedBytes bytes) const override;
  void Add(std::span<const std::byte> payload,
           std::span<float> sum) const override;

 private:
  size_t floats() const { return layers_.size() + small_floats_; }
  size_t fixed_bytes() const { return floats() * sizeof(float) + bins_; }

  const Kernels& kernels_;
  std::vector<BinnedLayer> layers_;
  std::vector<Extent> small_;
  size_t small_floats_ = 0;
  size_t bins_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_TERNARY_BINS_H_
