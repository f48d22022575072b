// Optimizer steps, sums and norms for one Highway target; included once per
// target by kernels.cc.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_ELEMENTWISE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_ELEMENTWISE_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_ELEMENTWISE_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_ELEMENTWISE_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/kernels/kernels.h"
#include "algorithms/kernels/reference_kernels.h"
#include "algorithms/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

void Add(std::span<const float> y, std::span<float> x) {
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const auto sum = hn::Add(hn::LoadU(kFloats, &x[i]),  //
                             hn::LoadU(kFloats, &y[i]));
    hn::StoreU(sum, kFloats, &x[i]);
  }
  ReferenceKernels().add(y.subspan(i), x.subspan(i));
}

void Scale(float a, std::span<float> x) {
  const auto factor = hn::Set(kFloats, a);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    hn::StoreU(hn::Mul(factor, hn::LoadU(kFloats, &x[i])), kFloats, &x[i]);
  }
  ReferenceKernels().scale(a, x.subspan(i));
}

// A product and a sum, here and below: a fused multiply-add rounds once, and
// not every instruction set has one.
void Axpy(float a, std::span<const float> y, std::span<float> x) {
  const auto factor = hn::Set(kFloats, a);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const auto product = hn::Mul(factor, hn::LoadU(kFloats, &y[i]));
    hn::StoreU(hn::Add(hn::LoadU(kFloats, &x[i]), product), kFloats, &x[i]);
  }
  ReferenceKernels().axpy(a, y.subspan(i), x.subspan(i));
}

void CompensatedAxpy(float a, std::span<const float> y, std::span<float> x,
                     std::span<float> rest) {
  const auto factor = hn::Set(kFloats, a);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const auto old = hn::LoadU(kFloats, &x[i]);
    const auto step = hn::Mul(factor, hn::LoadU(kFloats, &y[i]));
    const auto sum = hn::Add(old, step);
    const auto added = hn::Sub(sum, old);
    const auto lost = hn::Add(hn::Sub(old, hn::Sub(sum, added)),  //
                              hn::Sub(step, added));
    const auto small = hn::Add(hn::LoadU(kFloats, &rest[i]), lost);
    const auto whole = hn::Add(sum, small);
    hn::StoreU(whole, kFloats, &x[i]);
    hn::StoreU(hn::Sub(small, hn::Sub(whole, sum)), kFloats, &rest[i]);
  }
  ReferenceKernels().compensated_axpy(a, y.subspan(i), x.subspan(i),
                                      rest.subspan(i));
}

void Ema(float weight, std::span<const float> x, std::span<float> average) {
  const auto factor = hn::Set(kFloats, weight);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const auto old = hn::LoadU(kFloats, &average[i]);
    const auto change =
        hn::Mul(factor, hn::Sub(hn::LoadU(kFloats, &x[i]), old));
    hn::StoreU(hn::Add(old, change), kFloats, &average[i]);
  }
  ReferenceKernels().ema(weight, x.subspan(i), average.subspan(i));
}

void Optimistic(float a, float b, std::span<const float> g,
                std::span<float> previous, std::span<float> x) {
  const auto va = hn::Set(kFloats, a);
  const auto vb = hn::Set(kFloats, b);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const auto vg = hn::LoadU(kFloats, &g[i]);
    const auto change =
        hn::Sub(hn::Mul(vb, hn::LoadU(kFloats, &previous[i])), hn::Mul(va, vg));
    hn::StoreU(hn::Add(hn::LoadU(kFloats, &x[i]), change), kFloats, &x[i]);
    hn::StoreU(vg, kFloats, &previous[i]);
  }
  ReferenceKernels().optimistic(a, b, g.subspan(i), previous.subspan(i),
                                x.subspan(i));
}

// The coefficients of a step in every lane.
struct StepVectors {
  explicit HWY_INLINE StepVectors(const AdamStep& s)
      : beta1(hn::Set(kFloats, s.beta1)),
        gain1(hn::Set(kFloats, s.gain1)),
        beta2(hn::Set(kFloats, s.beta2)),
        gain2(hn::Set(kFloats, s.gain2)),
        correction1(hn::Set(kFloats, s.correction1)),
        correction2(hn::Set(kFloats, s.correction2)),
        epsilon(hn::Set(kFloats, s.epsilon)),
        rate(hn::Set(kFloats, s.rate)) {}
  FloatVector beta1, gain1, beta2, gain2, correction1, correction2, epsilon,
      rate;
};

// Updates the moments at m and v; returns p.
HWY_INLINE FloatVector Direction(const StepVectors& s, FloatVector g, float* m,
                                 float* v) {
  const auto vm =
      hn::Add(hn::Mul(s.beta1, hn::LoadU(kFloats, m)), hn::Mul(s.gain1, g));
  const auto vv = hn::Add(hn::Mul(s.beta2, hn::LoadU(kFloats, v)),
                          hn::Mul(s.gain2, hn::Mul(g, g)));
  hn::StoreU(vm, kFloats, m);
  hn::StoreU(vv, kFloats, v);
  const auto root = hn::Sqrt(hn::Mul(vv, s.correction2));
  return hn::Div(hn::Mul(vm, s.correction1), hn::Add(root, s.epsilon));
}

void Adam(const AdamStep& step, std::span<const float> g, std::span<float> m,
          std::span<float> v, std::span<float> x) {
  const StepVectors s(step);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const auto p = Direction(s, hn::LoadU(kFloats, &g[i]), &m[i], &v[i]);
    const auto old = hn::LoadU(kFloats, &x[i]);
    hn::StoreU(hn::Sub(old, hn::Mul(s.rate, p)), kFloats, &x[i]);
  }
  ReferenceKernels().adam(step, g.subspan(i), m.subspan(i), v.subspan(i),
                          x.subspan(i));
}

void OAdam(const AdamStep& step, std::span<const float> g, std::span<float> m,
           std::span<float> v, std::span<float> previous, std::span<float> x) {
  const StepVectors s(step);
  const auto twice = hn::Set(kFloats, 2 * step.rate);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    const auto p = Direction(s, hn::LoadU(kFloats, &g[i]), &m[i], &v[i]);
    const auto before = hn::Mul(s.rate, hn::LoadU(kFloats, &previous[i]));
    const auto change = hn::Sub(before, hn::Mul(twice, p));
    hn::StoreU(hn::Add(hn::LoadU(kFloats, &x[i]), change), kFloats, &x[i]);
    hn::StoreU(p, kFloats, &previous[i]);
  }
  ReferenceKernels().oadam(step, g.subspan(i), m.subspan(i), v.subspan(i),
                           previous.subspan(i), x.subspan(i));
}

bool AllWithin(float limit, std::span<const float> x) {
  // Without their sign bits floats are in the order of their bits, NaN last.
  const auto magnitude = hn::Set(kWords, 0x7fffffffu);
  const auto most = hn::Set(kWords, std::bit_cast<uint32_t>(limit));
  auto worst = hn::Zero(kWords);
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    PrefetchAhead(&x[i]);
    const auto bits = hn::BitCast(kWords, hn::LoadU(kFloats, &x[i]));
    worst = hn::Max(worst, hn::And(bits, magnitude));
  }
  const hn::RebindToSigned<Words> ints;  // unsigned Gt is not everywhere
  return hn::AllFalse(
             ints, hn::Gt(hn::BitCast(ints, worst), hn::BitCast(ints, most))) &&
         ReferenceKernels().all_within(limit, x.subspan(i));
}

double SquaredNorm(std::span<const float> x) {
  PairwiseSum total;
  for (size_t i = 0; i < x.size();) {
    const size_t end = std::min(i + kNormChunk, x.size());
    NormSums sums;
    for (; i + kNormLanes <= end; i += kNormLanes) {
      PrefetchAhead(&x[i]);
      sums.Add(&x[i]);
    }
    total.Add(sums.Finish(x.subspan(i, end - i)));
    i = end;
  }
  return total.Total();
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
  constexpr size_t kVectors = kSumLanes / kLanes;
  for (size_t r = 0; r < u.size(); ++r) {
    const auto row = matrix.subspan(r * v.size(), v.size());
    FloatVector sums[kVectors];
    for (auto& sum : sums) sum = hn::Zero(kFloats);
    size_t i = 0;
    for (; i + kSumLanes <= v.size(); i += kSumLanes) {
      for (size_t k = 0; k < kVectors; ++k) {
        const size_t at = i + k * kLanes;
        sums[k] = hn::Add(sums[k], hn::Mul(hn::LoadU(kFloats, &row[at]),
                                           hn::LoadU(kFloats, &v[at])));
      }
    }
    ProductLanes lanes;
    for (size_t k = 0; k < kVectors; ++k) {
      hn::StoreU(sums[k], kFloats, lanes.data() + k * kLanes);
    }
    u[r] = FinishProduct(lanes, row.subspan(i), v.subspan(i));
  }
}

void AddOuter(float a, std::span<const float> u, std::span<const float> v,
              std::span<float> matrix) {
  for (size_t r = 0; r < u.size(); ++r) {
    Axpy(a * u[r], v, matrix.subspan(r * v.size(), v.size()));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_ELEMENTWISE_INL_H_
