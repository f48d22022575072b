#include <algorithm>
#include <cmath>
#include <cstdint>

#include "algorithms/kernels/reference_kernels.h"

namespace gossamer {
namespace {

// Value i of `n` coded ones, one of those that top-k may keep.
float DecodeTopK(const CodedSpan& from, size_t i, size_t n) {
  const size_t start = i / kChunkSize * kChunkSize;
  const size_t kept = KeptOf(from.coding, std::min(kChunkSize, n - start));
  const std::byte* codes = from.codes + CodeBytes(from.coding, start);
  // Indices rise, so the place is found by halving.
  size_t low = 0, high = kept;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (TopKIndex(codes + kept, middle) < i - start) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == kept || TopKIndex(codes + kept, low) != i - start) return 0;
  return LoadAs<int8_t>(codes + low) *
         FromBf16(LoadAs<uint16_t>(from.scales + 2 * (start / kChunkSize)));
}

// The first plane has the signs.  The second, of two bits, has what is of the
// larger magnitude; the smaller is 3 of kLm2 and 0 of kQsgd.
int DecodePlanes(Coding coding, const std::byte* codes, size_t k, size_t n) {
  const auto bit = [&](size_t plane) {
    return LoadAs<uint32_t>(codes + 4 * (plane * ((n + 31) / 32) + k / 32)) >>
               k % 32 &
           1;
  };
  const int largest = LargestCode(coding);
  const int other =
      coding.kind == Coding::kLm2 ? static_cast<int>(kLm2Small) : 0;
  const int magnitude = CodeBits(coding) == 1 || bit(1) != 0 ? largest : other;
  return bit(0) != 0 ? -magnitude : magnitude;
}

int DecodeWords(Coding coding, const std::byte* codes, size_t k, size_t n) {
  const size_t bits = CodeBits(coding);
  const size_t words = BlockWords(bits, n);
  const auto word = LoadAs<uint32_t>(codes + 4 * (k % words));
  const uint32_t field = word >> (k / words * bits) & ((1u << bits) - 1);
  // Fields are in two's complement.
  return static_cast<int>(field) - (field >> (bits - 1) == 1 ? 1 << bits : 0);
}

// Value i of `n` coded ones.
float Decode(const CodedSpan& from, size_t i, size_t n) {
  const Coding coding = from.coding;
  if (coding.kind == Coding::kF32) return LoadAs<float>(from.codes + 4 * i);
  if (coding.kind == Coding::kBf16) {
    return FromBf16(LoadAs<uint16_t>(from.codes + 2 * i));
  }
  if (coding.kind == Coding::kTopK) return DecodeTopK(from, i, n);
  const size_t start = i / kBlockSize * kBlockSize;
  const std::byte* codes = from.codes + CodeBytes(coding, start);
  const int code = (CodeBits(coding) <= 2 ? DecodePlanes : DecodeWords)(
      coding, codes, i - start, std::min(kBlockSize, n - start));
  const float scale =
      HasScales(coding)
          ? FromBf16(LoadAs<uint16_t>(from.scales + 2 * (i / UnitSize(coding))))
          : coding.step;
  return static_cast<float>(code) * scale;
}

}  // namespace

// The order of operations is part of the result: D first, then c·D, then the
// sum with x, each rounded by itself.  Exchanged roles then negate every
// increment exactly, which is what keeps the mean (PROTOCOL.md 7.2).
void ApplyFrom(size_t start, const CodedSpan* theirs, const CodedSpan* mine,
               float c, std::span<float> difference, std::span<float> x) {
  const bool both = theirs != nullptr && mine != nullptr;
  if (difference.empty() && !both) return;
  const size_t n = difference.empty() ? x.size() : difference.size();
  for (size_t i = start; i < n; ++i) {
    float d = (theirs != nullptr ? Decode(*theirs, i, n) : 0.0f) -
              (mine != nullptr ? Decode(*mine, i, n) : 0.0f);
    if (!difference.empty()) d = difference[i] = difference[i] + d;
    if (both) x[i] = x[i] + c * d;
  }
}

// An index that repeats would add twice at one place, and one outside would
// write beyond the chunk.
bool ValidTopK(Coding coding, size_t n, std::span<const std::byte> codes) {
  for (size_t start = 0; start < n; start += kChunkSize) {
    const size_t size = std::min(kChunkSize, n - start);
    const size_t kept = KeptOf(coding, size);
    const std::byte* const values = &codes[CodeBytes(coding, start)];
    const std::byte* const indices = values + kept;
    size_t next = 0;  // the smallest index that may come
    for (size_t i = 0; i < kept; ++i) {
      const size_t index = TopKIndex(indices, i);
      if (values[i] == std::byte{0x80} || index < next || index >= size) {
        return false;
      }
      next = index + 1;
    }
    // Four bits belong to no index of an odd number; the encoder writes 0.
    if (kept % 2 == 1 && values[TopKBytes(kept) - 1] >= std::byte{0x10}) {
      return false;
    }
  }
  return true;
}

bool ValidCodes(Coding coding, std::span<const std::byte> codes,
                float largest) {
  // NaN compares as false, so it is refused as well.
  const auto bounded = [=](float v) { return std::abs(v) <= largest; };
  const size_t value_bytes = coding.kind == Coding::kF32    ? 4
                             : coding.kind == Coding::kBf16 ? 2
                                                            : 1;
  if (codes.size() % value_bytes != 0) return false;
  for (size_t i = 0; i < codes.size(); i += value_bytes) {
    const auto byte = std::to_integer<uint8_t>(codes[i]);
    if (coding.kind == Coding::kF32) {
      if (!bounded(LoadAs<float>(&codes[i]))) return false;
    } else if (coding.kind == Coding::kBf16) {
      if (!bounded(FromBf16(LoadAs<uint16_t>(&codes[i])))) return false;
    } else if (CodeBits(coding) == 8) {
      // −128 and −8 are never written: without them codes are symmetric, and
      // negation is exact.
      if (byte == 0x80) return false;
    } else if (CodeBits(coding) == 4) {
      if (byte >> 4 == 8 || (byte & 15) == 8) return false;
    }
  }
  return true;
}

}  // namespace gossamer
