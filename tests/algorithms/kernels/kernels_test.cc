// Every table of kernels against the scalar reference, bit for bit, and the
// reference against the contracts of kernels.h.

#include "algorithms/kernels/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/kernels/reference_kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/algorithms/kernels/device_as_host.h"

namespace gossamer {
namespace kernels_test {

constexpr Coding kCodings[] = {
    Coding::kF32,
    Coding::kBf16,
    Coding::kInt8,
    Coding::kInt4,
    Coding::kLm2,
    Coding::kSign,
    Coding::TopK(1),
    Coding::TopK(64),
    Coding::TopK(1365),
    Coding::TopK(kChunkSize),
    Coding::Qsgd(1, 128, Coding::kMax),
    Coding::Qsgd(7, 256, Coding::kEuclidean),
    Coding::Qsgd(127, 512, Coding::kMax),
    Coding::Unit(0.25f),
};
constexpr uint64_t kKey = 0x0123456789abcdefu;
constexpr AdamStep kStep = {.beta1 = 0.5f,
                            .gain1 = 0.5f,
                            .beta2 = 0.9f,
                            .gain2 = 0.1f,
                            .correction1 = 1.25f,
                            .correction2 = 2.5f,
                            .epsilon = 1e-8f,
                            .rate = 1e-3f};

// Sizes around every vector length and block boundary, and sizes of several
// blocks with a tail.
const std::vector<size_t>& Sizes() {
  static const auto& sizes = *new std::vector<size_t>{
      0,   1,   2,   3,    4,    5,    7,    8,    9,    15,   16,
      17,  31,  32,  33,   63,   64,   65,   127,  128,  129,  255,
      256, 257, 300, 1000, 1024, 1151, 4095, 4096, 4097, 9000, 21000};
  return sizes;
}

std::vector<float> Gaussian(std::string_view name, size_t n) {
  std::vector<float> values(n);
  RngKey(7).Fold(name).Fold(n).FillGaussian(values);
  return values;
}

// Returns Gaussian values with every kind of difficult value among them.
std::vector<float> Difficult(std::string_view name, size_t n) {
  std::vector<float> values = Gaussian(name, n);
  constexpr float kSpecial[] = {0.0f,
                                -0.0f,
                                1e-45f,
                                -1e-40f,
                                0x1p-126f,
                                0x1p-133f,
                                1e-30f,
                                1e30f,
                                -0x1p100f,
                                0x1p101f,
                                std::numeric_limits<float>::max(),
                                -std::numeric_limits<float>::max(),
                                0.5f,
                                -127.0f,
                                3.5f,
                                1e-20f};
  const RngKey key = RngKey(11).Fold(name);
  for (size_t i = 0; i < n; ++i) {
    // Whole blocks of one kind, and blocks of all kinds.
    const uint64_t kind = key.Fold("block").Below(4, i / kBlockSize);
    if (kind == 1) values[i] = kSpecial[key.Below(6, i)];
    if (kind == 2) values[i] = kSpecial[key.Below(std::size(kSpecial), i)];
    if (kind == 3 && i % 37 == 5) values[i] *= 1e6f;
  }
  return values;
}

testing::AssertionResult SameBits(const std::vector<float>& a,
                                  const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return testing::AssertionFailure()
             << "element " << i << " of " << a.size() << ": " << a[i] << " and "
             << b[i];
    }
  }
  return testing::AssertionSuccess();
}

// An array of codes with the scales of its blocks.
struct CodedArray {
  CodedArray(Coding c, size_t n)
      : coding(c), scales(ScaleBytes(c, n)), codes(CodeBytes(c, n)) {}
  CodedSpan span() const { return {coding, scales.data(), codes.data()}; }
  friend bool operator==(const CodedArray&, const CodedArray&) = default;
  Coding coding;
  std::vector<std::byte> scales, codes;
};

CodedArray Encoded(const Kernels& kernels, Coding coding,
                   const std::vector<float>& x) {
  CodedArray coded(coding, x.size());
  kernels.encode(coding, x, {}, kKey, coded.scales.data(), coded.codes.data());
  return coded;
}

std::string Name(Coding coding) {
  return std::to_string(coding.kind) + " of " +
         std::to_string(coding.kept + coding.bucket) + " with " +
         std::to_string(coding.levels);
}

// A table of kernels; spans of a device's may begin at odd places.
struct Tested {
  const Kernels* table;
  size_t misalign = 0;
  bool device = false;
};

std::vector<Tested> AllTables() {
  std::vector<Tested> all;
  for (const Kernels* table : AvailableKernels()) all.push_back({table});
  all.push_back({&TestedDevice(), 0, true});
  all.push_back({&TestedDevice(), 1, true});
  return all;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class KernelsTest : public testing::TestWithParam<Tested> {
 protected:
  KernelsTest() { SetMisalignment(GetParam().misalign); }
  const Kernels& tested() const { return *GetParam().table; }
  const Kernels& reference() const { return ReferenceKernels(); }
  // The sizes to try; under a sanitizer a device's take long.
  std::vector<size_t> sizes() const {
    if (GetParam().device && kSanitized) return {0, 1, 31, 129, 300, 4097};
    return Sizes();
  }
  bool Skips(size_t n) const {
    return GetParam().device && kSanitized && n != 300;
  }
  // A call of a device's takes a while: of many that differ little, it makes
  // one in so many.
  size_t Stride(size_t stride) const { return GetParam().device ? stride : 1; }
};

INSTANTIATE_TEST_SUITE_P(Tables, KernelsTest, testing::ValuesIn(AllTables()),
                         [](const auto& info) {
                           return std::string(info.param.table->name) +
                                  (info.param.misalign > 0 ? "Misaligned" : "");
                         });

TEST(KernelsTableTest, TheHostTableIsFirstAndTheReferenceLast) {
  const auto tables = AvailableKernels();
  ASSERT_GE(tables.size(), 2u);
  EXPECT_EQ(&HostKernels(), tables.front());
  EXPECT_EQ(&ReferenceKernels(), tables.back());
}

TEST_P(KernelsTest, ElementwiseBitsAreThoseOfTheReference) {
  for (const size_t n : sizes()) {
    SCOPED_TRACE(n);
    const auto y = Gaussian("y", n);
    const auto run = [&](const Kernels& k) {
      auto x = Gaussian("x", n);
      auto previous = Gaussian("previous", n);
      k.add(y, x);
      k.scale(0.3f, x);
      k.axpy(-1.7f, y, x);
      auto rest = Gaussian("rest", n);
      k.scale(1e-8f, rest);
      k.compensated_axpy(1e-6f, y, x, rest);
      k.ema(0.005f, y, x);
      k.optimistic(0.02f, 0.01f, y, previous, x);
      x.insert(x.end(), previous.begin(), previous.end());
      x.insert(x.end(), rest.begin(), rest.end());
      return x;
    };
    EXPECT_TRUE(SameBits(run(tested()), run(reference())));
  }
}

TEST_P(KernelsTest, OptimizerBitsAreThoseOfTheReference) {
  for (const size_t n : sizes()) {
    SCOPED_TRACE(n);
    const auto run = [&](const Kernels& k) {
      auto x = Gaussian("x", n), m = Gaussian("m", n), p = Gaussian("p", n);
      std::vector<float> v(n, 0.01f);
      for (int step = 0; step < 3; ++step) {
        auto g = Gaussian("g" + std::to_string(step), n);
        if (n > 4) g[3] = 0, g[4] = 1e-25f;
        k.oadam(kStep, g, m, v, p, x);
        k.adam(kStep, g, m, v, x);
      }
      for (const auto* state : {&m, &v, &p}) {
        x.insert(x.end(), state->begin(), state->end());
      }
      return x;
    };
    EXPECT_TRUE(SameBits(run(tested()), run(reference())));
  }
}

TEST_P(KernelsTest, EncodeBitsAreThoseOfTheReference) {
  for (const size_t n : sizes()) {
    for (const Coding coding : kCodings) {
      SCOPED_TRACE(testing::Message() << n << " coding " << Name(coding));
      const auto x = Difficult("x", n);
      EXPECT_EQ(Encoded(tested(), coding, x), Encoded(reference(), coding, x));
      if (n == 0) continue;

      auto mine = Difficult("replica", n);
      auto expected = mine;
      CodedArray coded(coding, n), wanted(coding, n);
      for (int round = 0; round < 3; ++round) {
        tested().encode(coding, x, mine, kKey, coded.scales.data(),
                        coded.codes.data());
        reference().encode(coding, x, expected, kKey, wanted.scales.data(),
                           wanted.codes.data());
        EXPECT_EQ(coded, wanted);
        EXPECT_TRUE(SameBits(mine, expected));
      }
      EXPECT_TRUE(tested().all_finite(mine));
    }
  }
}

// The search of each chunk begins at the k-th largest value of the one before.
TEST_P(KernelsTest, TopKSelectionDoesNotDependOnWhereItsSearchBegins) {
  constexpr size_t kChunks = 24;
  auto x = Gaussian("x", kChunks * kChunkSize - 100);
  const RngKey key(12);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t chunk = i / kChunkSize;
    const uint64_t kind = key.Fold("kind").Below(6, chunk);
    if (kind == 0) x[i] = 0;
    if (kind == 1) x[i] = i % 3 == 0 ? -1.5f : 1.5f;  // ties
    if (kind == 2) x[i] *= x[i] * x[i];
    if (kind == 3) x[i] = static_cast<float>(key.Uniform(i));
    if (kind == 4) x[i] = std::round(4 * x[i]);  // ties among larger ones
    x[i] *= std::ldexp(1.0f, static_cast<int>(key.Below(30, chunk)) - 15);
  }
  for (const uint16_t k : {1, 7, 64, 700, 4095}) {
    EXPECT_EQ(Encoded(tested(), Coding::TopK(k), x),
              Encoded(reference(), Coding::TopK(k), x))
        << k;
  }
}

TEST_P(KernelsTest, ApplyBitsAreThoseOfTheReferenceForEveryPairOfCodings) {
  for (const size_t n : {size_t{5}, size_t{300}, size_t{4097}}) {
    const auto a = Difficult("a", n), b = Difficult("b", n);
    for (const Coding theirs : kCodings) {
      const CodedArray t = Encoded(reference(), theirs, a);
      const CodedSpan ts = t.span();
      for (const Coding mine : kCodings) {
        const CodedArray m = Encoded(reference(), mine, b);
        const CodedSpan ms = m.span();
        for (const int given : {0, 1, 2, 3, 4}) {
          const auto run = [&](const Kernels& k) {
            auto x = Gaussian("x", n), d = Gaussian("d", n);
            k.apply(given & 1 || given == 4 ? &ts : nullptr,
                    given & 2 || given == 4 ? &ms : nullptr, 0.3f,
                    given == 4 ? std::span<float>() : d, x);
            x.insert(x.end(), d.begin(), d.end());
            return x;
          };
          EXPECT_TRUE(SameBits(run(tested()), run(reference())))
              << Name(theirs) << " and " << Name(mine) << " given " << given
              << " n " << n;
        }
      }
    }
  }
}

TEST_P(KernelsTest, ExchangedRolesNegateEveryIncrement) {
  constexpr size_t kSize = 4500;
  const auto a = Gaussian("a", kSize), b = Gaussian("b", kSize);
  for (size_t f = 0; f < std::size(kCodings); ++f) {
    for (size_t g = f % Stride(5); g < std::size(kCodings); g += Stride(5)) {
      const Coding first = kCodings[f], second = kCodings[g];
      const CodedArray at = Encoded(tested(), first, a);
      const CodedArray bt = Encoded(tested(), second, b);
      const CodedSpan as = at.span(), bs = bt.span();
      std::vector<float> here(kSize), there(kSize), x(kSize), y(kSize);
      for (const auto& [p, q] :
           {std::pair(&as, &bs),
            std::pair<const CodedSpan*, const CodedSpan*>(&as, nullptr),
            std::pair(&bs, &as)}) {
        tested().apply(p, q, 0.3f, here, x);
        tested().apply(q, p, 0.3f, there, y);
      }
      for (size_t i = 0; i < kSize; ++i) {
        ASSERT_EQ(here[i], -there[i]) << i;
        ASSERT_EQ(x[i], -y[i]) << i;
      }
    }
  }
}

TEST_P(KernelsTest, AllWithinSeesOneLargeValueAnywhere) {
  for (const size_t n : sizes()) {
    std::vector<float> x(n, -2.5f);
    EXPECT_TRUE(tested().all_within(2.5f, x)) << n;
    for (size_t i = 0; i<n; i += n> 300 ? Stride(17) * 61 : Stride(13)) {
      for (const float bad :
           {2.5000002f, -1e30f, std::numeric_limits<float>::quiet_NaN()}) {
        const float good = std::exchange(x[i], bad);
        EXPECT_FALSE(tested().all_within(2.5f, x)) << n << " at " << i;
        x[i] = good;
      }
    }
  }
}

TEST_P(KernelsTest, AllFiniteSeesOneBadValueAnywhere) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const size_t n : sizes()) {
    auto x = Difficult("x", n);
    EXPECT_TRUE(tested().all_finite(x)) << n;
    for (size_t i = 0; i<n; i += n> 300 ? Stride(17) * 61 : Stride(13)) {
      for (const float bad :
           {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
            -std::numeric_limits<float>::signaling_NaN()}) {
        const float good = std::exchange(x[i], bad);
        EXPECT_FALSE(tested().all_finite(x)) << n << " at " << i;
        x[i] = good;
      }
    }
  }
}

TEST_P(KernelsTest, ArgmaxAbsIsThatOfTheReference) {
  for (const size_t n : sizes()) {
    for (const size_t chunk : {2, 3, 8, 16, 50, 65, 100, 500, 65536}) {
      SCOPED_TRACE(testing::Message() << n << " in chunks of " << chunk);
      auto x = Difficult("x", n), y = Difficult("y", n);
      for (size_t i = 0; i < n; i += 3) x[i] = i % 2 == 0 ? 9.0f : -9.0f;
      const auto indices = [&](const Kernels& k, std::span<const float> other) {
        std::vector<uint32_t> p((n + chunk - 1) / chunk);
        k.argmax_abs(chunk, x, other, p);
        return p;
      };
      EXPECT_EQ(indices(tested(), {}), indices(reference(), {}));
      EXPECT_EQ(indices(tested(), y), indices(reference(), y));
      for (const uint32_t p : indices(tested(), {})) {
        for (size_t i = p / chunk * chunk;
             i < std::min(n, p / chunk * chunk + chunk); ++i) {
          EXPECT_TRUE(std::abs(x[i]) < std::abs(x[p]) ||
                      (std::abs(x[i]) == std::abs(x[p]) && i >= p));
        }
      }
    }
  }
}

TEST_P(KernelsTest, ValuesThatReachABoundAreThoseOfTheReference) {
  for (const size_t n : sizes()) {
    for (const size_t chunk : {1, 3, 8, 50, 65, 500}) {
      SCOPED_TRACE(testing::Message() << n << " in chunks of " << chunk);
      const auto x = Difficult("x", n), y = Gaussian("y", n);
      std::vector<float> bounds((n + chunk - 1) / chunk);
      for (size_t i = 0; i < bounds.size(); ++i) {
        bounds[i] = static_cast<float>(i % 4);
        // A value that reaches the bound exactly counts.
        if (i % 4 == 3) bounds[i] = std::abs(x[i * chunk] + y[i * chunk]);
      }
      const auto run = [&](const Kernels& k) {
        std::vector<uint32_t> p(n);
        p.resize(k.indices_at_least(chunk, x, y, bounds, p));
        return p;
      };
      const auto indices = run(tested());
      EXPECT_EQ(indices, run(reference()));
      size_t count = 0;
      for (size_t i = 0; i < n; ++i) {
        count += std::abs(x[i] + y[i]) >= bounds[i / chunk];
      }
      EXPECT_EQ(indices.size(), count);
      EXPECT_TRUE(std::ranges::is_sorted(indices));
    }
  }
}

TEST_P(KernelsTest, SquaredNormHasOneOrderOfSummation) {
  for (const size_t n : sizes()) {
    const auto x = Gaussian("x", n);
    const double got = tested().squared_norm(x);
    EXPECT_EQ(std::bit_cast<uint64_t>(got),
              std::bit_cast<uint64_t>(reference().squared_norm(x)));
    long double exact = 0;
    for (const float v : x) exact += static_cast<long double>(v) * v;
    EXPECT_NEAR(got, static_cast<double>(exact), 1e-12 * (1 + n));
  }
  // Chunks of 4096, added pairwise, neighbours first: seven are ((0+1) + (2+3))
  // + ((4+5) + 6).
  const auto x = Gaussian("chunks", 7 * kNormChunk - 5);
  const auto chunk = [&](size_t i) {
    const std::span<const float> all = x;
    const size_t at = i * kNormChunk;
    return tested().squared_norm(
        all.subspan(at, std::min(kNormChunk, x.size() - at)));
  };
  EXPECT_EQ(tested().squared_norm(x),
            ((chunk(0) + chunk(1)) + (chunk(2) + chunk(3))) +
                ((chunk(4) + chunk(5)) + chunk(6)));
  const std::vector<float> huge(100, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(tested().squared_norm(huge)));
}

TEST_P(KernelsTest, SketchesHaveOneOrderOfSummation) {
  constexpr size_t kPart = kSketchBuckets * kSketchRows;
  std::vector<size_t> counts = sizes();
  counts.insert(counts.end(), {0, 257, 2 * kPart + 300});
  for (const size_t n : counts) {
    SCOPED_TRACE(n);
    const auto x = Gaussian("x", n);
    const auto run = [&](const Kernels& k) {
      std::vector<double> sums(kSketchBuckets, 1.0);
      k.sketch(x, kKey, sums);
      return sums;
    };
    const auto got = run(tested());
    EXPECT_EQ(got, run(reference()));
    std::vector<double> exact(kSketchBuckets);
    for (size_t i = 0; i < n; ++i) {
      const auto row = static_cast<uint32_t>(i / kSketchBuckets);
      const uint32_t column = i % kSketchBuckets;
      const bool minus = SketchSigns(kKey, row, column / 32) >> column % 32 & 1;
      exact[(column + SketchRotation(kKey, row)) % kSketchBuckets] +=
          minus ? -x[i] : x[i];
    }
    EXPECT_THAT(got, testing::Pointwise(testing::DoubleNear(1e-9), exact));
  }
}

// The stored scale is rounded to 8 bits, which hides the order of a sum unless
// it decides at the edge between two scales.
TEST_P(KernelsTest, SumsOfABlockHaveOneOrder) {
  constexpr float kEdge = 0x1p24f + 0x1p16f;
  for (size_t lane = 0; lane < kSumLanes; ++lane) {
    for (const Coding coding : {Coding::kSign, Coding::kLm2}) {
      std::vector<float> x(kBlockSize);
      const size_t indices[] = {lane, lane + 16, lane + 32, lane + 48};
      // Each small value is lost beside the large one, but not their sum.
      x[indices[0]] = 0.9f, x[indices[2]] = kEdge, x[indices[3]] = 0.9f;
      const CodedArray in_order = Encoded(tested(), coding, x);
      EXPECT_EQ(in_order, Encoded(reference(), coding, x));
      if (coding.kind != Coding::kSign) continue;
      std::swap(x[indices[2]], x[indices[3]]);
      const CodedArray exchanged = Encoded(tested(), coding, x);
      EXPECT_EQ(exchanged, Encoded(reference(), coding, x));
      EXPECT_NE(in_order.scales, exchanged.scales);
    }
  }
  // The lanes are added halves first: 0 and 8 before 0 and 1.
  std::vector<float> near(kBlockSize), far(kBlockSize);
  near[0] = 0.9f, near[1] = 0.9f, near[8] = kEdge;
  far[0] = 0.9f, far[8] = 0.9f, far[1] = kEdge;
  const CodedArray apart = Encoded(tested(), Coding::kSign, near);
  const CodedArray together = Encoded(tested(), Coding::kSign, far);
  EXPECT_EQ(apart, Encoded(reference(), Coding::kSign, near));
  EXPECT_EQ(together, Encoded(reference(), Coding::kSign, far));
  EXPECT_NE(apart.scales, together.scales);
}

// Values of one kind each, all finite.
enum class Values {
  kNormal,
  kDenormal,
  kHuge,    // around 2^123, so that differences and steps overflow
  kSparse,  // most are zero
  kWide,    // exponents from −100 to 100
  kTies,    // halves, which codes round to even
  kAnyBits,
  kNegativeZero,
};
std::vector<float> ValuesOf(Values kind, std::string_view name, size_t n) {
  std::vector<float> values = Gaussian(name, n);
  const RngKey key = RngKey(13).Fold(name);
  for (size_t i = 0; i < n; ++i) {
    float& v = values[i];
    switch (kind) {
      case Values::kNormal:
        break;
      case Values::kDenormal:
        v *= 1e-38f;
        break;
      case Values::kHuge:
        v *= 1e37f;
        break;
      case Values::kSparse:
        if (key.Below(7, i) != 0) v = 0;
        break;
      case Values::kWide:
        v = std::ldexp(v, static_cast<int>(key.Below(201, i)) - 100);
        break;
      case Values::kTies:
        v = static_cast<float>(key.Below(31, i)) * 0.5f - 7.5f;
        break;
      case Values::kAnyBits:
        v = std::bit_cast<float>(static_cast<uint32_t>(key.Bits(i)));
        if (!std::isfinite(v)) v = 0x1p-149f;
        break;
      case Values::kNegativeZero:
        v = -0.0f;
        break;
    }
  }
  return values;
}
constexpr Values kEveryKind[] = {
    Values::kNormal, Values::kDenormal, Values::kHuge,    Values::kSparse,
    Values::kWide,   Values::kTies,     Values::kAnyBits, Values::kNegativeZero,
};

// The sign and the payload of a NaN are a machine's own.
std::vector<float> WithOneNan(std::vector<float> values) {
  for (float& v : values) {
    if (std::isnan(v)) v = std::numeric_limits<float>::quiet_NaN();
  }
  return values;
}

TEST_P(KernelsTest, EveryKindOfValueIsCodedAsByTheReference) {
  for (const Values kind : kEveryKind) {
    for (const size_t n : {1, 127, 128, 300, 4133}) {
      if (n > 300 && static_cast<size_t>(kind) % Stride(4) != 0) continue;
      if (Skips(n)) continue;
      const auto x = ValuesOf(kind, "x", n), other = ValuesOf(kind, "other", n);
      for (const Coding coding : kCodings) {
        SCOPED_TRACE(testing::Message()
                     << "kind " << static_cast<int>(kind) << " coding "
                     << Name(coding) << " of " << n);
        const auto run = [&](const Kernels& k) {
          // Replicas of finite values stay finite only within kMaxMagnitude.
          auto replica = other;
          k.scale(1e-8f, replica);
          CodedArray coded(coding, n);
          k.encode(coding, x, replica, kKey, coded.scales.data(),
                   coded.codes.data());
          const CodedArray mine = Encoded(k, coding, other);
          const CodedSpan theirs_span = coded.span(), my_span = mine.span();
          auto difference = Gaussian("difference", n), sum = x;
          k.apply(&theirs_span, &my_span, 0.3f, difference, sum);
          sum = WithOneNan(std::move(sum));
          sum.insert(sum.end(), replica.begin(), replica.end());
          sum.insert(sum.end(), difference.begin(), difference.end());
          return std::tuple(coded, mine, sum);
        };
        const auto [coded, mine, values] = run(tested());
        const auto [coded2, mine2, values2] = run(reference());
        EXPECT_EQ(coded, coded2);
        EXPECT_EQ(mine, mine2);
        EXPECT_TRUE(SameBits(values, values2));
      }
    }
  }
}

TEST_P(KernelsTest, EveryKindOfValueIsSteppedAsByTheReference) {
  for (const Values kind : kEveryKind) {
    for (const size_t n : {1, 63, 300, 2051}) {
      SCOPED_TRACE(testing::Message()
                   << "kind " << static_cast<int>(kind) << " of " << n);
      const auto g = ValuesOf(kind, "g", n);
      const auto run = [&](const Kernels& k) {
        auto x = ValuesOf(kind, "x", n), m = ValuesOf(kind, "m", n);
        auto v = ValuesOf(kind, "v", n), p = ValuesOf(kind, "p", n);
        k.oadam(kStep, g, m, v, p, x);
        k.adam(kStep, g, m, v, x);
        k.compensated_axpy(0.7f, g, x, p);
        k.ema(0.01f, x, m);
        k.optimistic(0.02f, 0.01f, g, p, x);
        k.axpy(-0.3f, m, x);
        std::vector<float> all = x;
        for (const auto* state : {&m, &v, &p}) {
          all.insert(all.end(), state->begin(), state->end());
        }
        return WithOneNan(std::move(all));
      };
      EXPECT_TRUE(SameBits(run(tested()), run(reference())));
      EXPECT_EQ(std::bit_cast<uint64_t>(tested().squared_norm(g)),
                std::bit_cast<uint64_t>(reference().squared_norm(g)));
    }
  }
}

TEST_P(KernelsTest, ProductsOfMatricesAreThoseOfTheReference) {
  for (const size_t rows : {1, 2, 5}) {
    for (const size_t columns : sizes()) {
      if (columns > 1000) continue;
      SCOPED_TRACE(testing::Message() << rows << " × " << columns);
      const auto u = Gaussian("u", rows), v = Gaussian("v", columns);
      const auto run = [&](const Kernels& k) {
        auto matrix = Gaussian("matrix", rows * columns);
        k.add_outer(0.3f, u, v, matrix);
        std::vector<float> of_rows(rows), of_columns(columns);
        k.product(matrix, v, of_rows);
        k.transposed_product(matrix, u, of_columns);
        matrix.insert(matrix.end(), of_rows.begin(), of_rows.end());
        matrix.insert(matrix.end(), of_columns.begin(), of_columns.end());
        return matrix;
      };
      const auto got = run(tested());
      EXPECT_TRUE(SameBits(got, run(reference())));
      for (size_t r = 0; r < rows; ++r) {
        double exact = 0;
        for (size_t c = 0; c < columns; ++c) {
          exact += double{got[r * columns + c]} * v[c];
        }
        EXPECT_NEAR(got[rows * columns + r], exact, 1e-5 * (1 + columns));
      }
    }
  }
}

TEST_P(KernelsTest, ValidSeesOneBadCodeAnywhere) {
  for (const size_t n : {size_t{1}, size_t{7}, size_t{128}, size_t{300}}) {
    for (const Coding coding : kCodings) {
      CodedArray coded = Encoded(tested(), coding, Difficult("x", n));
      EXPECT_TRUE(tested().valid(coding, n, coded.codes));
      for (size_t i = 0; i < coded.codes.size(); i += Stride(29)) {
        const std::byte good = coded.codes[i];
        for (int value = 0; value < 256; value += i % 13 == 0 ? 1 : 8) {
          coded.codes[i] = static_cast<std::byte>(value);
          ASSERT_EQ(tested().valid(coding, n, coded.codes),
                    reference().valid(coding, n, coded.codes))
              << "byte " << i << " = " << value;
        }
        coded.codes[i] = good;
      }
    }
  }
}

TEST_P(KernelsTest, ValidRefusesWhatTheEncoderNeverWrites) {
  std::vector<std::byte> codes(512);
  codes[300] = std::byte{0x80};
  EXPECT_FALSE(tested().valid(Coding::kInt8, 512, codes));
  EXPECT_FALSE(tested().valid(Coding::kInt4, 1024, codes));
  codes[300] = std::byte{0x08};
  EXPECT_TRUE(tested().valid(Coding::kInt8, 512, codes));
  EXPECT_FALSE(tested().valid(Coding::kInt4, 1024, codes));
  for (const float bad : {0x1.000002p100f, -0x1.000002p100f,
                          std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<std::byte> values(512);
    std::memcpy(&values[64], &bad, 4);
    EXPECT_FALSE(tested().valid(Coding::kF32, 128, values)) << bad;
  }
}

TEST_P(KernelsTest, ValidWithinSeesOneValueAnywhere) {
  constexpr size_t kSize = 300;
  for (const Coding coding : {Coding::kF32, Coding::kBf16}) {
    const size_t bytes = CodeBytes(coding, kSize) / kSize;
    for (size_t i = 0; i < kSize; i += 7) {
      for (const float value : {-2.5f, 2.5f, 2.0f}) {
        std::vector<std::byte> values(CodeBytes(coding, kSize));
        const uint32_t bits =
            std::bit_cast<uint32_t>(value) >> (32 - 8 * bytes);
        std::memcpy(&values[i * bytes], &bits, bytes);
        EXPECT_EQ(tested().valid_within(coding, kSize, values, 2.0f),
                  value == 2.0f);
        EXPECT_TRUE(tested().valid_within(coding, kSize, values, 2.5f));
      }
    }
  }
}

// Functions that a device has alone, against what the host does of them.
class DeviceOnlyTest : public testing::TestWithParam<size_t> {
 protected:
  DeviceOnlyTest() {
    TestedDevice();
    SetMisalignment(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Alignments, DeviceOnlyTest, testing::Values(0, 1));

TEST_P(DeviceOnlyTest, UnitScalesTheChangeToLengthOne) {
  for (const Values kind : kEveryKind) {
    for (const size_t n : {1, 50, 4096, 9000}) {
      const auto change = ValuesOf(kind, "change", n);
      std::vector<float> unit(n), expected(n);
      NormalizeOnDevice(change, unit);
      uint32_t index = 0;
      ReferenceKernels().argmax_abs(n, change, {}, {&index, 1});
      const double scale =
          UnitScale(ReferenceKernels().squared_norm(change), change[index]);
      for (size_t i = 0; i < n; ++i) {
        expected[i] = static_cast<float>(change[i] * scale);
      }
      EXPECT_TRUE(SameBits(unit, expected));
      if (kind == Values::kNormal) {
        EXPECT_NEAR(ReferenceKernels().squared_norm(unit), 1, 1e-5);
        EXPECT_GT(unit[index], 0);
      }
    }
  }
}

TEST_P(DeviceOnlyTest, AVectorIsClippedOnlyIfLongerThanTheLimit) {
  for (const size_t n : {1, 50, 4096, 9000}) {
    const std::vector<float> x = Gaussian("x", n);
    const double norm = std::sqrt(ReferenceKernels().squared_norm(x));
    for (const double limit : {0.5 * norm, norm, 2 * norm}) {
      std::vector<float> clipped = x, expected = x;
      ClipOnDevice(limit, 1, 1, clipped);
      if (norm > limit) {
        ReferenceKernels().scale(static_cast<float>(limit / norm), expected);
      }
      EXPECT_TRUE(SameBits(clipped, expected)) << limit / norm;
    }
    // A root mean square over a coefficient, as edges have it.
    std::vector<float> clipped = x, expected = x;
    ClipOnDevice(1e-3, static_cast<double>(n), 0.25, clipped);
    const double length =
        std::sqrt(norm * norm / static_cast<double>(n)) / 0.25;
    ReferenceKernels().scale(static_cast<float>(1e-3 / length), expected);
    for (size_t i = 0; i < n; ++i) EXPECT_FLOAT_EQ(clipped[i], expected[i]);
  }
}

TEST_P(DeviceOnlyTest, ScalesAndPaddingAreCheckedAsByTheHost) {
  for (const size_t n : {1, 7, 128, 300, 4200}) {
    for (const Coding coding : kCodings) {
      SCOPED_TRACE(testing::Message() << n << " coding " << Name(coding));
      CodedArray coded = Encoded(ReferenceKernels(), coding, Gaussian("x", n));
      EXPECT_TRUE(ScalesAreValidOnDevice(n, coded.span()));
      uint32_t largest = 0;
      for (size_t i = 0; i < coded.scales.size(); i += 2) {
        largest =
            std::max<uint32_t>(largest, LoadAs<uint16_t>(&coded.scales[i]));
        for (const uint16_t bits : {0x8000, 0x7f80, 0x0001, 0x7fff}) {
          if (i % 6 != 0) continue;
          const auto good = LoadAs<uint16_t>(&coded.scales[i]);
          StoreAs(bits, &coded.scales[i]);
          EXPECT_FALSE(ScalesAreValidOnDevice(n, coded.span())) << bits;
          StoreAs(good, &coded.scales[i]);
        }
      }
      EXPECT_EQ(LargestScaleOnDevice(n, coded.span()), largest);
      const size_t end = coded.codes.size();
      for (size_t i = end - std::min<size_t>(end, 20); i < end; ++i) {
        for (const auto bit :
             {std::byte{1}, std::byte{0x10}, std::byte{0x80}}) {
          coded.codes[i] ^= bit;
          EXPECT_EQ(ScalesAreValidOnDevice(n, coded.span()),
                    PaddingIsZero(coding, n, coded.codes.data()));
          coded.codes[i] ^= bit;
        }
      }
    }
  }
}

TEST(BlockScaleTest, IsBf16RoundedUpAndNeverTooSmall) {
  for (const float levels : {7.0f, 127.0f}) {
    for (uint64_t i = 0; i < 20000; ++i) {
      const auto absmax = static_cast<float>(
          std::ldexp(1 + RngKey(3).Uniform(i),
                     static_cast<int>(RngKey(4).Below(219, i)) - 119));
      const float scale = BlockScale(absmax, levels);
      EXPECT_EQ(std::bit_cast<uint32_t>(scale) & 0xffff, 0u);
      EXPECT_LE(absmax / scale, levels);
      EXPECT_LE(scale, absmax / levels * (1 + 0x1p-7f));
    }
    EXPECT_EQ(BlockScale(0, levels), 0);
    EXPECT_EQ(BlockScale(1e-38f, levels), 0);
    EXPECT_EQ(BlockScale(std::numeric_limits<float>::infinity(), levels),
              BlockScale(kMaxMagnitude, levels));
  }
}

TEST(NearestScaleTest, IsBf16HalfToEvenAndBounded) {
  EXPECT_EQ(NearestScale(1, 1), 1);
  EXPECT_EQ(NearestScale(0x1.01p0f, 1), 0x1.00p0f);
  EXPECT_EQ(NearestScale(0x1.03p0f, 1), 0x1.04p0f);
  EXPECT_EQ(NearestScale(0x1.010002p0f, 1), 0x1.02p0f);
  EXPECT_EQ(NearestScale(1e-39f, 1), 0);
  EXPECT_EQ(NearestScale(0x1p-126f, 1), 0x1p-126f);
  for (const float largest : {1.0f, 10.0f}) {
    EXPECT_EQ(NearestScale(std::numeric_limits<float>::infinity(), largest),
              BlockScale(kMaxMagnitude, largest));
  }
}

TEST(DitherTest, IsUniformAndAFunctionOfKeyAndPlace) {
  constexpr uint32_t kDraws = 1 << 18;
  for (const uint64_t key : {uint64_t{0}, uint64_t{1}, RngKey(5).Bits(0)}) {
    double sum = 0, squares = 0, lagged = 0;
    for (uint32_t i = 0; i < kDraws; ++i) {
      const double u = Dither(key, i);
      ASSERT_GE(u, 0);
      ASSERT_LT(u, 1);
      sum += u, squares += u * u,
          lagged += (u - 0.5) * (Dither(key, i + 1) - 0.5);
    }
    // The tolerance is four standard errors.
    EXPECT_NEAR(sum / kDraws, 0.5, 4 * 0.2887 / 512);
    EXPECT_NEAR(squares / kDraws, 1.0 / 3, 4 * 0.2981 / 512);
    EXPECT_NEAR(lagged / kDraws, 0, 4 / 12.0 / 512);
  }
  EXPECT_NE(Dither(1, 7), Dither(2, 7));
  EXPECT_NE(Dither(1, 7), Dither(uint64_t{1} << 32 | 1, 7));
}

}  // namespace kernels_test
}  // namespace gossamer
