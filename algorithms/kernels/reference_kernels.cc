#include "algorithms/kernels/reference_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gossamer {
namespace {

void ReferenceEncode(Coding coding, std::span<const float> x,
                     std::span<float> replica, uint64_t key, std::byte* scales,
                     std::byte* codes) {
  EncodeFrom(0, coding, x, replica, key, scales, codes);
}

void ReferenceApply(const CodedSpan* theirs, const CodedSpan* mine, float c,
                    std::span<float> difference, std::span<float> x) {
  ApplyFrom(0, theirs, mine, c, difference, x);
}

bool ReferenceValid(Coding coding, size_t n, std::span<const std::byte> codes,
                    float largest) {
  return coding.kind == Coding::kTopK ? ValidTopK(coding, n, codes)
                                      : ValidCodes(coding, codes, largest);
}

void Add(std::span<const float> y, std::span<float> x) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] + y[i];
}

void Scale(float a, std::span<float> x) {
  for (float& value : x) value = a * value;
}

void Axpy(float a, std::span<const float> y, std::span<float> x) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] + a * y[i];
}

void CompensatedAxpy(float a, std::span<const float> y, std::span<float> x,
                     std::span<float> rest) {
  for (size_t i = 0; i < x.size(); ++i) {
    const float step = a * y[i];
    const float sum = x[i] + step;
    // `added` is the part of the step that the sum has taken in; the two
    // differences below are what rounding has taken from x and from the step
    // (two-sum: Knuth, TAOCP 2, 4.2.2).
    const float added = sum - x[i];
    rest[i] = rest[i] + ((x[i] - (sum - added)) + (step - added));
    // The rest goes back into x as soon as it makes up a unit of x's last
    // place; the remainder is kept.
    x[i] = sum + rest[i];
    rest[i] = rest[i] - (x[i] - sum);
  }
}

void Ema(float weight, std::span<const float> x, std::span<float> average) {
  for (size_t i = 0; i < x.size(); ++i) {
    average[i] = average[i] + weight * (x[i] - average[i]);
  }
}

void Optimistic(float a, float b, std::span<const float> g,
                std::span<float> previous, std::span<float> x) {
  for (size_t i = 0; i < x.size(); ++i) {
    // The increment is formed first, in every table alike: adding the two parts
    // to x one by one would round twice at the size of x.
    x[i] = x[i] + (b * previous[i] - a * g[i]);
    previous[i] = g[i];
  }
}

// Updates one parameter's moments; returns the preconditioned direction p.
float Direction(const AdamStep& s, float g, float& m, float& v) {
  m = s.beta1 * m + s.gain1 * g;
  v = s.beta2 * v + s.gain2 * (g * g);
  return m * s.correction1 / (std::sqrt(v * s.correction2) + s.epsilon);
}

void Adam(const AdamStep& step, std::span<const float> g, std::span<float> m,
          std::span<float> v, std::span<float> x) {
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = x[i] - step.rate * Direction(step, g[i], m[i], v[i]);
  }
}

void OAdam(const AdamStep& step, std::span<const float> g, std::span<float> m,
           std::span<float> v, std::span<float> previous, std::span<float> x) {
  const float twice = 2 * step.rate;
  for (size_t i = 0; i < x.size(); ++i) {
    const float p = Direction(step, g[i], m[i], v[i]);
    x[i] = x[i] + (step.rate * previous[i] - twice * p);
    previous[i] = p;
  }
}

bool AllWithin(float limit, std::span<const float> x) {
  // NaN compares as false with every limit.
  return std::all_of(x.begin(), x.end(),
                     [limit](float v) { return std::abs(v) <= limit; });
}

double SquaredNorm(std::span<const float> x) {
  PairwiseSum sum;
  for (size_t at = 0; at < x.size(); at += kNormChunk) {
    NormLanes lanes{};
    const auto chunk = x.subspan(at, std::min(kNormChunk, x.size() - at));
    // Value i belongs to lane i mod 16 whatever the vector's width, so that
    // every table adds in one order.
    const size_t whole = chunk.size() / kNormLanes * kNormLanes;
    for (size_t i = 0; i < whole; ++i) {
      const double value = chunk[i];
      lanes[i % kNormLanes] += value * value;
    }
    sum.Add(FinishSquaredNorm(lanes, chunk.subspan(whole)));
  }
  return sum.Total();
}

void Largest(size_t chunk, std::span<const float> x, std::span<const float> y,
             std::span<uint32_t> places) {
  for (size_t i = 0, at = 0; at < x.size(); ++i, at += chunk) {
    const size_t end = std::min(at + chunk, x.size());
    float largest = -1;
    places[i] = static_cast<uint32_t>(at);
    for (size_t k = at; k < end; ++k) {
      const float magnitude = std::abs(y.empty() ? x[k] : x[k] + y[k]);
      // Strictly larger, so that of equal ones the first stays; NaN is never
      // larger.
      if (!(magnitude > largest)) continue;
      largest = magnitude;
      places[i] = static_cast<uint32_t>(k);
    }
  }
}

size_t Reaching(size_t chunk, std::span<const float> x,
                std::span<const float> y, std::span<const float> bounds,
                std::span<uint32_t> places) {
  size_t found = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    if (!(std::abs(x[k] + y[k]) >= bounds[k / chunk])) continue;
    places[found++] = static_cast<uint32_t>(k);
  }
  return found;
}

constexpr Kernels kReference = {
    .name = "reference",
    .add = Add,
    .scale = Scale,
    .axpy = Axpy,
    .compensated_axpy = CompensatedAxpy,
    .ema = Ema,
    .optimistic = Optimistic,
    .adam = Adam,
    .oadam = OAdam,
    .all_within = AllWithin,
    .squared_norm = SquaredNorm,
    .largest = Largest,
    .reaching = Reaching,
    .encode = ReferenceEncode,
    .apply = ReferenceApply,
    .valid_within = ReferenceValid,
};

}  // namespace

const Kernels& ReferenceKernels() { return kReference; }

double FinishSquaredNorm(NormLanes& lanes, std::span<const float> rest) {
  for (size_t i = 0; i < rest.size(); ++i) {
    const double value = rest[i];
    lanes[i] += value * value;
  }
  // Halves onto halves: the order in which a vector unit can fold its lanes.
  for (size_t half = kNormLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

}  // namespace gossamer
