#include "algorithms/kernels/reference_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

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

template <typename Op, typename... Values>
void ForEach(size_t n, Op op, Values*... values) {
  for (size_t i = 0; i < n; ++i) op(values[i]...);
}

void Add(std::span<const float> y, std::span<float> x) {
  ForEach(x.size(), AddValue{}, y.data(), x.data());
}

void Scale(float a, std::span<float> x) {
  ForEach(x.size(), ScaleValue{a}, x.data());
}

void Axpy(float a, std::span<const float> y, std::span<float> x) {
  ForEach(x.size(), AxpyValue{a}, y.data(), x.data());
}

void CompensatedAxpy(float a, std::span<const float> y, std::span<float> x,
                     std::span<float> rest) {
  ForEach(x.size(), CompensatedAxpyValue{a}, y.data(), x.data(), rest.data());
}

void Ema(float weight, std::span<const float> x, std::span<float> average) {
  ForEach(x.size(), EmaValue{weight}, x.data(), average.data());
}

void Optimistic(float a, float b, std::span<const float> g,
                std::span<float> previous, std::span<float> x) {
  ForEach(x.size(), OptimisticValue{a, b}, g.data(), previous.data(), x.data());
}

void Adam(const AdamStep& step, std::span<const float> g, std::span<float> m,
          std::span<float> v, std::span<float> x) {
  ForEach(x.size(), AdamValue{step}, g.data(), m.data(), v.data(), x.data());
}

void OAdam(const AdamStep& step, std::span<const float> g, std::span<float> m,
           std::span<float> v, std::span<float> previous, std::span<float> x) {
  ForEach(x.size(), OAdamValue{step}, g.data(), m.data(), v.data(),
          previous.data(), x.data());
}

bool AllWithin(float limit, std::span<const float> x) {
  return std::all_of(x.begin(), x.end(),
                     [limit](float v) { return Within(limit, v); });
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

void Sketch(std::span<const float> x, uint64_t key, std::span<double> sums) {
  constexpr size_t kWord = 32, kPart = kSketchBuckets * kSketchRows;
  std::ranges::fill(sums, 0.0);
  for (size_t first = 0; first < x.size(); first += kPart) {
    const size_t end = std::min(first + kPart, x.size());
    std::array<double, kSketchBuckets> part = {};
    for (size_t at = first; at < end; at += kWord) {
      const auto row = static_cast<uint32_t>(at / kSketchBuckets);
      const size_t column = at % kSketchBuckets;
      const auto word = static_cast<uint32_t>(column / kWord);
      const uint32_t signs = SketchSigns(key, row, word);
      const size_t bucket = column + SketchRotation(key, row);
      for (size_t j = 0; j < std::min(kWord, end - at); ++j) {
        part[(bucket + j) % kSketchBuckets] +=
            Signed(signs >> j & 1, x[at + j]);
      }
    }
    for (size_t b = 0; b < kSketchBuckets; ++b) sums[b] += part[b];
  }
}

void TransposedProduct(std::span<const float> matrix, std::span<const float> u,
                       std::span<float> v) {
  std::fill(v.begin(), v.end(), 0.0f);
  for (size_t r = 0; r < u.size(); ++r) {
    Axpy(u[r], matrix.subspan(r * v.size(), v.size()), v);
  }
}

void Product(std::span<const float> matrix, std::span<const float> v,
             std::span<float> u) {
  const size_t whole = v.size() / kSumLanes * kSumLanes;
  for (size_t r = 0; r < u.size(); ++r) {
    const auto row = matrix.subspan(r * v.size(), v.size());
    ProductLanes lanes{};
    for (size_t i = 0; i < whole; ++i) lanes[i % kSumLanes] += row[i] * v[i];
    u[r] = FinishProduct(lanes, row.subspan(whole), v.subspan(whole));
  }
}

void AddOuter(float a, std::span<const float> u, std::span<const float> v,
              std::span<float> matrix) {
  for (size_t r = 0; r < u.size(); ++r) {
    Axpy(a * u[r], v, matrix.subspan(r * v.size(), v.size()));
  }
}

void ArgmaxAbs(size_t chunk, std::span<const float> x, std::span<const float> y,
               std::span<uint32_t> indices) {
  for (size_t i = 0, at = 0; at < x.size(); ++i, at += chunk) {
    const size_t end = std::min(at + chunk, x.size());
    float largest = -1;
    indices[i] = static_cast<uint32_t>(at);
    for (size_t k = at; k < end; ++k) {
      const float magnitude = std::abs(y.empty() ? x[k] : x[k] + y[k]);
      // Strictly larger, so that of equal ones the first stays; NaN is never
      // larger.
      if (!(magnitude > largest)) continue;
      largest = magnitude;
      indices[i] = static_cast<uint32_t>(k);
    }
  }
}

size_t IndicesAtLeast(size_t chunk, std::span<const float> x,
                      std::span<const float> y, std::span<const float> bounds,
                      std::span<uint32_t> indices) {
  size_t found = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    if (!(std::abs(x[k] + y[k]) >= bounds[k / chunk])) continue;
    indices[found++] = static_cast<uint32_t>(k);
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
    .sketch = Sketch,
    .transposed_product = TransposedProduct,
    .product = Product,
    .add_outer = AddOuter,
    .argmax_abs = ArgmaxAbs,
    .indices_at_least = IndicesAtLeast,
    .encode = ReferenceEncode,
    .apply = ReferenceApply,
    .valid_within = ReferenceValid,
};

}  // namespace

const Kernels& ReferenceKernels() { return kReference; }

float FinishProduct(const ProductLanes& lanes, std::span<const float> row,
                    std::span<const float> v) {
  float sum = 0;
  for (size_t i = 0; i < row.size(); ++i) sum += row[i] * v[i];
  for (const float lane : lanes) sum += lane;
  return sum;
}

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
