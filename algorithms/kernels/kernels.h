// The few fused loops that everything else in algorithms/ is made of.
//
// One table of functions per instruction set.  All tables give the same bits:
// no fused multiply-add, the same order of operations, round half to even
// everywhere, a fixed order of summation.  So a run does not depend on the
// machine's vector unit, and tests compare the tables with each other.  This
// header knows nothing of optimizers' schedules, payload layouts, peers or
// threads.  DeviceKernels (device_kernels.h) has the device form of most of
// them.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_KERNELS_H_
#define GOSSAMER_ALGORITHMS_KERNELS_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/kernels/coding.h"

namespace gossamer {

// The coefficients of one Adam or OAdam step, already rounded to float.
struct AdamStep {
  float beta1, gain1;              // β₁, 1 − β₁
  float beta2, gain2;              // β₂, 1 − β₂
  float correction1, correction2;  // 1/(1 − β₁^t), 1/(1 − β₂^t)
  float epsilon;
  float rate;  // η
};

inline constexpr size_t kSketchBuckets = 256;
inline constexpr size_t kSketchRows = 256;

// Spans of one call have the same size unless said otherwise and do not
// overlap.
struct Kernels {
  std::string_view name;  // "AVX2", "reference"

  // x += y.
  void (*add)(std::span<const float> y, std::span<float> x);
  // x ← a·x.
  void (*scale)(float a, std::span<float> x);
  // x += a·y.
  void (*axpy)(float a, std::span<const float> y, std::span<float> x);
  // x + rest += a·y in twice the digits (two-sum: Knuth, TAOCP 2, 4.2.2):
  // `rest` keeps what x has no room for, at most half a unit of its last place.
  void (*compensated_axpy)(float a, std::span<const float> y,
                           std::span<float> x, std::span<float> rest);
  // average += weight·(x − average); weight = 1 − decay.
  void (*ema)(float weight, std::span<const float> x, std::span<float> average);

  // x += b·previous − a·g, then previous ← g: the increment of OGDA (a = 2η,
  // b = η) and of OSG (a = b = η).
  void (*optimistic)(float a, float b, std::span<const float> g,
                     std::span<float> previous, std::span<float> x);
  // m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², p = (m/(1−β₁^t)) /
  // (√(v/(1−β₂^t)) + ε), x += −η·p (Kingma, Ba, ICLR 2015, algorithm 1).
  void (*adam)(const AdamStep& step, std::span<const float> g,
               std::span<float> m, std::span<float> v, std::span<float> x);
  // The same p, then x += η·previous − 2η·p and previous ← p (Daskalakis,
  // Ilyas, Syrgkanis, Zeng, ICLR 2018, algorithm 1).
  void (*oadam)(const AdamStep& step, std::span<const float> g,
                std::span<float> m, std::span<float> v,
                std::span<float> previous, std::span<float> x);

  // False if any |x| is above `limit`, a finite number, or if any x is NaN.
  bool (*all_within)(float limit, std::span<const float> x);
  bool all_finite(std::span<const float> x) const {
    return all_within(std::numeric_limits<float>::max(), x);
  }
  // Σ x², in double, in an order that any machine can take.  Of each chunk of
  // 4096 values, value i is added to partial sum i mod 16, in order of i; the
  // 16 are then added pairwise, halves first.  The chunks' sums are added
  // pairwise, neighbours first; one without a neighbour is carried on.
  double (*squared_norm)(std::span<const float> x);
  // A count-sketch (Charikar, Chen, Farach-Colton, ICALP 2002) into
  // kSketchBuckets sums: value 256·r + c is added to, or subtracted from,
  // bucket (c + SketchRotation(key, r)) mod 256, as SketchSigns says
  // (values.h).  Rows are added in order in each part of kSketchRows, and then
  // the parts.
  void (*sketch)(std::span<const float> x, uint64_t key,
                 std::span<double> sums);

  // Of a matrix by rows, u.size() × v.size():
  // v ← matrixᵀu, rows added in order.
  void (*transposed_product)(std::span<const float> matrix,
                             std::span<const float> u, std::span<float> v);
  // u ← matrix·v: of each row, product i is added to partial sum i mod 16, in
  // order of i; the last products, fewer than 16, are added by themselves, and
  // to them the 16 in order.
  void (*product)(std::span<const float> matrix, std::span<const float> v,
                  std::span<float> u);
  // matrix += (a·u)vᵀ.
  void (*add_outer)(float a, std::span<const float> u, std::span<const float> v,
                    std::span<float> matrix);

  // Of every chunk of `chunk` values, the last shorter, the index in x of the
  // largest |x + y|, of equal ones the first; y may be empty.  One index per
  // chunk.
  void (*argmax_abs)(size_t chunk, std::span<const float> x,
                     std::span<const float> y, std::span<uint32_t> indices);
  // The indices, rising, where |x + y| is at least the bound of its chunk, of
  // which there is one each.  Returns how many; `indices` has room for all of
  // x.
  size_t (*indices_at_least)(size_t chunk, std::span<const float> x,
                             std::span<const float> y,
                             std::span<const float> bounds,
                             std::span<uint32_t> indices);

  // q = code of x − replica, replica += decoded q; with an empty `replica`, q =
  // code of x.  Writes all ScaleBytes and CodeBytes.  x and replica are finite.
  // `key` chooses the draws of a coding that rounds at random; others ignore
  // it.
  void (*encode)(Coding coding, std::span<const float> x,
                 std::span<float> replica, uint64_t key, std::byte* scales,
                 std::byte* codes);
  // With a difference: D += decoded theirs − decoded mine, a null one counting
  // as 0; if both are given, then x += c·D.  With an empty `difference`: x +=
  // c·(theirs − mine), if both are given.  Exchanging the roles negates every
  // increment exactly.
  void (*apply)(const CodedSpan* theirs, const CodedSpan* mine, float c,
                std::span<float> difference, std::span<float> x);
  // False unless every code and index is one that `encode` can write for `n`
  // values: codes in range, values without scales finite and at most `largest`,
  // which is not negative, indices rising and inside.  Scales and padding are
  // the caller's to check.  `codes` has CodeBytes(coding, n).
  bool (*valid_within)(Coding coding, size_t n,
                       std::span<const std::byte> codes, float largest);
  bool valid(Coding coding, size_t n, std::span<const std::byte> codes) const {
    return valid_within(coding, n, codes, kMaxMagnitude);
  }
};

// The best table for this machine.
const Kernels& HostKernels();

// Every table that this machine can run, the best first; the last is the
// plain scalar reference, which defines what the others must give.
std::vector<const Kernels*> AvailableKernels();

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_KERNELS_H_
