// The scalar table: what every kernel means, and the tails of the vectorized
// ones, which do whole vectors and blocks and leave the rest to it.
//
// This header knows nothing of instruction sets.  reference_kernels.cc has the
// elementwise part, reference_codings.cc what encodes, reference_decodings.cc
// what decodes, applies and checks.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_REFERENCE_KERNELS_H_
#define GOSSAMER_ALGORITHMS_KERNELS_REFERENCE_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/kernels/coded_bytes.h"
#include "algorithms/kernels/kernels.h"
#include "algorithms/kernels/values.h"

namespace gossamer {

const Kernels& ReferenceKernels();

// The partial sums of a chunk of squared_norm.
inline constexpr size_t kNormLanes = 16;
inline constexpr size_t kNormChunk = 4096;
using NormLanes = std::array<double, kNormLanes>;

// Adds the squares of `rest` (rest[0] belongs to lane 0), then the lanes.
double FinishSquaredNorm(NormLanes& lanes, std::span<const float> rest);

// The sum of the chunks' sums, pairwise, neighbours first: in each pass 2i and
// 2i + 1 become i, and a last one without a neighbour is carried on.  Each pass
// can be taken by as many threads as there are pairs.
class PairwiseSum {
 public:
  void Add(double value) {
    // Bit i of the count says whether a sum of 2^i chunks waits for its
    // neighbour.
    size_t level = 0;
    for (; count_ >> level & 1; ++level) value = waiting_[level] + value;
    waiting_[level] = value;
    ++count_;
  }
  double Total() const {
    double total = 0;
    bool first = true;
    for (size_t level = 0; level < waiting_.size(); ++level) {
      if ((count_ >> level & 1) == 0) continue;
      total = first ? waiting_[level] : waiting_[level] + total;
      first = false;
    }
    return total;
  }

 private:
  std::array<double, 64> waiting_{};
  uint64_t count_ = 0;
};

// A block's sums of floats: value k is added to lane k mod 16, in order of k;
// the lanes are then added pairwise, halves first.
inline constexpr size_t kSumLanes = 16;
using SumLanes = std::array<float, kSumLanes>;
inline float AddLanes(SumLanes& lanes) {
  for (size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// `encode` and `apply` for the values from `start` on, a multiple of the
// coding's unit and of kBlockSize; pointers and spans are those of the whole
// array.
void EncodeFrom(size_t start, Coding coding, std::span<const float> x,
                std::span<float> replica, uint64_t key, std::byte* scales,
                std::byte* codes);
void ApplyFrom(size_t start, const CodedSpan* theirs, const CodedSpan* mine,
               float c, std::span<float> difference, std::span<float> x);

// `valid` for kTopK, and for all others: whole codes, as many as there are.
bool ValidTopK(Coding coding, size_t n, std::span<const std::byte> codes);
bool ValidCodes(Coding coding, std::span<const std::byte> codes, float largest);

// A row times v, the order of `product`: `lanes` has the whole sixteens, the
// rest are the last products' factors.
using ProductLanes = std::array<float, 16>;
float FinishProduct(const ProductLanes& lanes, std::span<const float> row,
                    std::span<const float> v);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_REFERENCE_KERNELS_H_
