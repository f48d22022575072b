#include "algorithms/kernels/reference_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace gossamer {
namespace {

static_assert(std::endian::native == std::endian::little,
              "payloads are little-endian and written in place");

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void Store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(T));
}

float FromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Round half to even; |value| is at most kMaxMagnitude, so no carry can reach
// infinity.
uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
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

void Ema(float weight, std::span<const float> x, std::span<float> average) {
  for (size_t i = 0; i < x.size(); ++i) {
    average[i] = average[i] + weight * (x[i] - average[i]);
  }
}

void Optimistic(float a, float b, std::span<const float> g,
                std::span<float> previous, std::span<float> x) {
  for (size_t i = 0; i < x.size(); ++i) {
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

bool AllFinite(std::span<const float> x) {
  return std::all_of(x.begin(), x.end(), [](float v) {
    return std::abs(v) <= std::numeric_limits<float>::max();
  });
}

double SquaredNorm(std::span<const float> x) {
  NormLanes lanes{};
  const size_t whole = x.size() / kNormLanes * kNormLanes;
  for (size_t i = 0; i < whole; ++i) {
    const double value = x[i];
    lanes[i % kNormLanes] += value * value;
  }
  return FinishSquaredNorm(lanes, x.subspan(whole));
}

// One block: n values, n <= kBlockSize.  Its codes lie in words of 32/bits
// values: value k is number k / words of word k mod words, lowest bits first.
void EncodeBlock(int bits, std::span<const float> x, std::span<float> replica,
                 std::byte* scale_out, std::byte* codes) {
  const size_t n = x.size();
  const float levels = bits == 8 ? 127 : 7;
  float values[kBlockSize];
  float absmax = 0;
  for (size_t k = 0; k < n; ++k) {
    values[k] = replica.empty() ? x[k] : x[k] - replica[k];
    absmax = std::max(absmax, std::abs(values[k]));
  }
  const float scale = BlockScale(absmax, levels);
  const float inverse = scale > 0 ? 1 / scale : 0;
  Store(ToBf16(scale), scale_out);

  const size_t words = (n * bits + 31) / 32;
  uint32_t packed[kBlockSize / 4] = {};
  for (size_t k = 0; k < n; ++k) {
    const auto code = static_cast<int32_t>(
        std::nearbyint(std::clamp(values[k] * inverse, -levels, levels)));
    if (!replica.empty()) {
      replica[k] = replica[k] + static_cast<float>(code) * scale;
    }
    const uint32_t field = static_cast<uint32_t>(code) & ((1u << bits) - 1);
    packed[k % words] |= field << (k / words * bits);
  }
  std::memcpy(codes, packed, words * 4);
}

void Encode(Coding coding, std::span<const float> x, std::span<float> replica,
            std::byte* scales, std::byte* codes) {
  if (coding == Coding::kInt8 || coding == Coding::kInt4) {
    for (size_t i = 0; i < x.size(); i += kBlockSize) {
      const size_t n = std::min(kBlockSize, x.size() - i);
      EncodeBlock(coding == Coding::kInt8 ? 8 : 4, x.subspan(i, n),
                  replica.empty() ? replica : replica.subspan(i, n),
                  scales + ScaleBytes(coding, i), codes + CodeBytes(coding, i));
    }
    return;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    float q = std::clamp(replica.empty() ? x[i] : x[i] - replica[i],
                         -kMaxMagnitude, kMaxMagnitude);
    if (coding == Coding::kBf16) {
      const uint16_t bits = ToBf16(q);
      Store(bits, codes + 2 * i);
      q = FromBf16(bits);
    } else {
      Store(q, codes + 4 * i);
    }
    if (!replica.empty()) replica[i] = replica[i] + q;
  }
}

// Value i of `n` coded ones.
float Decode(const CodedSpan& from, size_t i, size_t n) {
  if (from.coding == Coding::kF32) return Load<float>(from.codes + 4 * i);
  if (from.coding == Coding::kBf16) {
    return FromBf16(Load<uint16_t>(from.codes + 2 * i));
  }
  const int bits = from.coding == Coding::kInt8 ? 8 : 4;
  const size_t start = i / kBlockSize * kBlockSize;
  const size_t words = (std::min(kBlockSize, n - start) * bits + 31) / 32;
  const size_t k = i - start;
  const auto word = Load<uint32_t>(from.codes + CodeBytes(from.coding, start) +
                                   4 * (k % words));
  const uint32_t field = word >> (k / words * bits) & ((1u << bits) - 1);
  const int code =
      static_cast<int>(field) - (field >> (bits - 1) == 1 ? 1 << bits : 0);
  const float scale =
      FromBf16(Load<uint16_t>(from.scales + 2 * (i / kBlockSize)));
  return static_cast<float>(code) * scale;
}

void Apply(const CodedSpan* theirs, const CodedSpan* mine, float c,
           std::span<float> difference, std::span<float> x) {
  const bool both = theirs != nullptr && mine != nullptr;
  const size_t n = difference.empty() ? x.size() : difference.size();
  for (size_t i = 0; i < n; ++i) {
    float d = (theirs != nullptr ? Decode(*theirs, i, n) : 0.0f) -
              (mine != nullptr ? Decode(*mine, i, n) : 0.0f);
    if (!difference.empty()) d = difference[i] = difference[i] + d;
    if (both) x[i] = x[i] + c * d;
  }
}

bool Valid(Coding coding, std::span<const std::byte> codes) {
  const auto bounded = [](float v) { return std::abs(v) <= kMaxMagnitude; };
  for (size_t i = 0; i < codes.size();) {
    const auto byte = std::to_integer<uint8_t>(codes[i]);
    switch (coding) {
      case Coding::kInt8:
        if (byte == 0x80) return false;
        i += 1;
        break;
      case Coding::kInt4:
        if (byte >> 4 == 8 || (byte & 15) == 8) return false;
        i += 1;
        break;
      case Coding::kBf16:
        if (codes.size() - i < 2) return false;
        if (!bounded(FromBf16(Load<uint16_t>(&codes[i])))) return false;
        i += 2;
        break;
      case Coding::kF32:
        if (codes.size() - i < 4) return false;
        if (!bounded(Load<float>(&codes[i]))) return false;
        i += 4;
        break;
    }
  }
  return true;
}

constexpr Kernels kReference = {
    .name = "reference",
    .add = Add,
    .scale = Scale,
    .axpy = Axpy,
    .ema = Ema,
    .optimistic = Optimistic,
    .adam = Adam,
    .oadam = OAdam,
    .all_finite = AllFinite,
    .squared_norm = SquaredNorm,
    .encode = Encode,
    .apply = Apply,
    .valid = Valid,
};

}  // namespace

const Kernels& ReferenceKernels() { return kReference; }

double FinishSquaredNorm(NormLanes& lanes, std::span<const float> rest) {
  for (size_t i = 0; i < rest.size(); ++i) {
    const double value = rest[i];
    lanes[i] += value * value;
  }
  for (size_t half = kNormLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

float BlockScale(float absmax, float levels) {
  const float exact = std::min(absmax, kMaxMagnitude) / levels;
  if (!(exact >= std::numeric_limits<float>::min())) return 0;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(exact) + 0xffff) &
                              0xffff0000u);
}

}  // namespace gossamer
