// The rules for one value: in an optimizer's step, in a sum, as a code.
//
// The scalar reference and the CUDA kernels are both made of these functions,
// so the two can differ in the order of sums only, and kernels.h fixes that.
// This header knows nothing of arrays, blocks or the bytes that codes lie in.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_VALUES_H_
#define GOSSAMER_ALGORITHMS_KERNELS_VALUES_H_

#include <math.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "algorithms/kernels/coding.h"
#include "algorithms/kernels/host_device.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// One function object for each elementwise kernel of kernels.h, which has the
// formulas.  Arguments are in the order of the kernel's spans.

struct AddValue {
  GOSSAMER_HOST_DEVICE void operator()(const float& y, float& x) const {
    x = x + y;
  }
};

struct ScaleValue {
  float a;
  GOSSAMER_HOST_DEVICE void operator()(float& x) const { x = a * x; }
};

struct AxpyValue {
  float a;
  GOSSAMER_HOST_DEVICE void operator()(const float& y, float& x) const {
    x = x + a * y;
  }
};

struct CompensatedAxpyValue {
  float a;
  GOSSAMER_HOST_DEVICE void operator()(const float& y, float& x,
                                       float& rest) const {
    const float step = a * y;
    const float sum = x + step;
    // `added` is the part of the step that the sum has taken in; the two
    // differences below are what rounding has taken from x and from the step
    // (two-sum: Knuth, TAOCP 2, 4.2.2).
    const float added = sum - x;
    rest = rest + ((x - (sum - added)) + (step - added));
    // The rest goes back into x as soon as it makes up a unit of x's last
    // place; the remainder is kept.
    x = sum + rest;
    rest = rest - (x - sum);
  }
};

struct EmaValue {
  float weight;
  GOSSAMER_HOST_DEVICE void operator()(const float& x, float& average) const {
    average = average + weight * (x - average);
  }
};

struct OptimisticValue {
  float a, b;
  GOSSAMER_HOST_DEVICE void operator()(const float& g, float& previous,
                                       float& x) const {
    // The increment is formed first: adding the two parts to x one by one would
    // round twice at the size of x.
    x = x + (b * previous - a * g);
    previous = g;
  }
};

// Updates one parameter's moments; returns the preconditioned direction p.
GOSSAMER_HOST_DEVICE float AdamDirection(const AdamStep& s, float g, float& m,
                                         float& v) {
  m = s.beta1 * m + s.gain1 * g;
  v = s.beta2 * v + s.gain2 * (g * g);
  return m * s.correction1 / (sqrtf(v * s.correction2) + s.epsilon);
}

struct AdamValue {
  AdamStep step;
  GOSSAMER_HOST_DEVICE void operator()(const float& g, float& m, float& v,
                                       float& x) const {
    x = x - step.rate * AdamDirection(step, g, m, v);
  }
};

struct OAdamValue {
  AdamStep step;
  GOSSAMER_HOST_DEVICE void operator()(const float& g, float& m, float& v,
                                       float& previous, float& x) const {
    const float p = AdamDirection(step, g, m, v);
    x = x + (step.rate * previous - 2 * step.rate * p);
    previous = p;
  }
};

// PowerGossip's next direction is the change times this, in double: of length
// 1, and the first of its largest values, `largest`, is positive; 0 if there is
// next to no change.  `squares` is the change's squared norm.
GOSSAMER_HOST_DEVICE double UnitScale(double squares, float largest) {
  const double length = sqrt(squares);
  return length > 1e-30 ? (largest < 0 ? -1 : 1) / length : 0;
}

// The factor by which a vector of `squares`, its squared norm, gets no longer
// than `limit`; its length is √(squares / n) / c.
GOSSAMER_HOST_DEVICE float ClipFactor(double limit, double n, double c,
                                      double squares) {
  const double length = sqrt(squares / n) / c;
  return length > limit ? static_cast<float>(limit / length) : 1.0f;
}

// A sketch takes values in rows of kSketchBuckets.  A row is rotated by a draw
// of its own, so that its values meet those of other rows in any bucket and
// each other in none, and a draw of each value is its sign.
GOSSAMER_HOST_DEVICE uint32_t SketchRotation(uint64_t key, uint32_t row) {
  constexpr uint32_t kWords = kSketchBuckets / 32 + 1;
  return DrawWord(key, row * kWords + kWords - 1) % uint32_t{kSketchBuckets};
}
// The signs of 32 neighbours: bit j is set where value 32 · word + j of the row
// is subtracted.
GOSSAMER_HOST_DEVICE uint32_t SketchSigns(uint64_t key, uint32_t row,
                                          uint32_t word) {
  constexpr uint32_t kWords = kSketchBuckets / 32 + 1;
  return DrawWord(key, row * kWords + word);
}
GOSSAMER_HOST_DEVICE float Signed(uint32_t minus, float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ minus << 31);
}

// False for a NaN, which compares as false with every limit.
GOSSAMER_HOST_DEVICE bool Within(float limit, float v) {
  return fabsf(v) <= limit;
}

// The rest is about codes.

GOSSAMER_HOST_DEVICE float FromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
// Rounds half to even; |value| is at most kMaxMagnitude, so no carry can reach
// infinity.
GOSSAMER_HOST_DEVICE uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Values beyond the bound are coded as the bound, so that a peer whose
// parameters explode sends payloads that its neighbours accept (kMaxMagnitude).
GOSSAMER_HOST_DEVICE float Clamped(float value) {
  return std::clamp(value, -kMaxMagnitude, float{kMaxMagnitude});
}

// The scale of a block whose largest magnitude is `absmax`: absmax / levels,
// rounded up to bf16 so that no code exceeds ±levels.  0 if that is below the
// normal range; the block is then all zeros.
GOSSAMER_HOST_DEVICE float BlockScale(float absmax, float levels) {
  const float exact = std::min(absmax, float{kMaxMagnitude}) / levels;
  // Below the normal range the inverse could overflow; the negation also sends
  // NaN here.
  if (!(exact >= std::numeric_limits<float>::min())) return 0;
  // Adding all bits below bf16's rounds up whatever is not exact.
  return std::bit_cast<float>((std::bit_cast<uint32_t>(exact) + 0xffff) &
                              0xffff0000u);
}

// The scale whose codes, at most `largest`, come nearest to a block: `exact`
// rounded half to even to bf16, and no larger than keeps decoded values within
// kMaxMagnitude.  0 as above.
GOSSAMER_HOST_DEVICE float NearestScale(float exact, float largest) {
  const float scale = FromBf16(ToBf16(std::min(exact, float{kMaxMagnitude})));
  if (!(scale >= std::numeric_limits<float>::min())) return 0;
  return std::min(scale, BlockScale(kMaxMagnitude, largest));
}

// Values are multiplied by the inverse of their scale, as in the vector tables:
// a division would round some of them to another code.
GOSSAMER_HOST_DEVICE float InverseOf(float scale) {
  return scale > 0 ? 1 / scale : 0;
}

// kInt8, kInt4 and kTopK: rounded half to even.
GOSSAMER_HOST_DEVICE int NearestCode(float value, float inverse, float levels) {
  return static_cast<int>(
      nearbyintf(std::clamp(value * inverse, -levels, levels)));
}
// kQsgd (Alistarh et al., NIPS 2017): ⌊v / scale + u⌋, so that its expectation
// is v / scale.  `i` is the value's place in the array and not in the bucket,
// so that no two values share a draw.
GOSSAMER_HOST_DEVICE int RandomCode(float value, float inverse, float levels,
                                    uint64_t key, uint32_t i) {
  const float u = Dither(key, i);
  return static_cast<int>(
      std::clamp(floorf(value * inverse + u), -levels, levels));
}
// kLm2 and kSign: the magnitude of the code.  `threshold` is 0 with kSign.
GOSSAMER_HOST_DEVICE float LevelOf(bool two_magnitudes, float magnitude,
                                   float threshold) {
  return !two_magnitudes ? 1 : magnitude > threshold ? kLm2Large : kLm2Small;
}
// The code of such a magnitude; a scale of 0 has only codes 0, since ±1 times 0
// could add a negative zero to the replica.
GOSSAMER_HOST_DEVICE int LevelCode(float value, float level, float scale) {
  return scale == 0 ? 0 : static_cast<int>(value < 0 ? -level : level);
}
// kUnit.
GOSSAMER_HOST_DEVICE int SignCode(float value) { return value < 0 ? -1 : 1; }

// The replica gets what a decoder gets: code times the stored scale, and not
// the value that was coded.
GOSSAMER_HOST_DEVICE float Follow(float replica, int code, float scale) {
  return replica + static_cast<float>(code) * scale;
}

// An exchange adds to the difference and then to x, each rounded by itself:
// exchanged roles then negate every increment exactly, which is what keeps the
// mean (PROTOCOL.md 7.2).  Null: there is none.
GOSSAMER_HOST_DEVICE void ApplyValue(float theirs, float mine, float c,
                                     float* difference, float* x) {
  float d = theirs - mine;
  if (difference != nullptr) d = *difference = *difference + d;
  if (x != nullptr) *x = *x + c * d;
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_VALUES_H_
