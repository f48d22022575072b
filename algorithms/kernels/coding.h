// The codings of an array of floats in memory and their sizes.
// README.md has the layout bit by bit.
//
// This header knows nothing of instruction sets, payloads or replicas.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_CODING_H_
#define GOSSAMER_ALGORITHMS_KERNELS_CODING_H_

#include <cstddef>
#include <cstdint>

namespace gossamer {

// Values per scale, for most codings.  The last block of an array may be
// shorter.
inline constexpr size_t kBlockSize = 128;
// The number of neighbouring values of which top-k keeps the largest: as many
// as 12 bits of index reach.
inline constexpr size_t kChunkSize = 4096;

// Encoders clamp to ±this, and nothing larger passes `valid`.  A sum of such
// values never reaches infinity: at 2^126, an increment of twice the bound is
// under half a unit in the last place.
inline constexpr float kMaxMagnitude = 0x1p100f;

// A coding by its kind and the parameters that some kinds have.  Two ends that
// hold equal values of this type read each other's bytes.
struct Coding {
  enum Kind : uint8_t {
    kF32,   // the value
    kBf16,  // the value rounded to 8 bits of significand, half to even
    // A step that both ends know, the same for all values, times a code:
    kUnit,  // code ±1
    // A scale (bf16) per block times a code per value:
    kInt8,  // code in ±127
    kInt4,  // code in ±7
    kLm2,   // code ±3 or ±10: Lloyd and Max's four levels for a Gaussian
    kSign,  // code ±1
    // The `kept` largest of each chunk, as int8 with a scale per chunk, and
    // where they are; the others are 0.
    kTopK,
    // code in ±levels, rounded at random without bias; a scale per bucket.
    kQsgd,
  };
  // The value of which a bucket's scale is a fraction.
  enum Norm : uint8_t { kMax, kEuclidean };

  constexpr Coding() = default;
  // Implicit: most kinds have no parameters.
  constexpr Coding(Kind k) : kind(k) {}  // NOLINT(google-explicit-constructor)
  static constexpr Coding TopK(uint16_t kept) {
    Coding coding(kTopK);
    coding.kept = kept;
    return coding;
  }
  static constexpr Coding Qsgd(uint8_t levels, uint16_t bucket, Norm norm) {
    Coding coding(kQsgd);
    coding.levels = levels;
    coding.bucket = bucket;
    coding.norm = norm;
    return coding;
  }
  // `step` is a bf16, so that step · code is exact.
  static constexpr Coding Unit(float step) {
    Coding coding(kUnit);
    coding.step = step;
    return coding;
  }
  friend bool operator==(const Coding&, const Coding&) = default;

  Kind kind = kF32;
  uint8_t levels = 0;   // kQsgd: s, one of 1, 7, 127
  Norm norm = kMax;     // kQsgd; only an encoder needs it
  uint16_t bucket = 0;  // kQsgd: values per scale, a multiple of kBlockSize
  uint16_t kept = 0;    // kTopK: 1 to kChunkSize
  float step = 0;       // kUnit
};

// Values are coded in blocks, and not one by one; with a scale each.
constexpr bool HasBlocks(Coding coding) { return coding.kind >= Coding::kUnit; }
constexpr bool HasScales(Coding coding) { return coding.kind >= Coding::kInt8; }

// Values that share a scale; encoders work through an array by these.
constexpr size_t UnitSize(Coding coding) {
  return coding.kind == Coding::kTopK   ? kChunkSize
         : coding.kind == Coding::kQsgd ? coding.bucket
                                        : kBlockSize;
}

// The largest magnitude of a code.
constexpr int LargestCode(Coding coding) {
  switch (coding.kind) {
    case Coding::kInt4:
      return 7;
    case Coding::kLm2:
      return 10;
    case Coding::kUnit:
    case Coding::kSign:
      return 1;
    case Coding::kQsgd:
      return coding.levels;
    default:
      return 127;
  }
}

// Bits of a code that lies by itself; codes of 4 and 8 bits are packed into
// words, those of 1 and 2 lie in bit planes.
constexpr size_t CodeBits(Coding coding) {
  switch (coding.kind) {
    case Coding::kInt4:
      return 4;
    case Coding::kLm2:
      return 2;
    case Coding::kUnit:
    case Coding::kSign:
      return 1;
    case Coding::kQsgd:
      return coding.levels == 1 ? 2 : coding.levels == 7 ? 4 : 8;
    default:
      return 8;
  }
}

// The number of values that top-k keeps of a chunk of `n`: at least one.
constexpr size_t KeptOf(Coding coding, size_t n) {
  return (n * coding.kept + kChunkSize - 1) / kChunkSize;
}
// Bytes of `kept` codes of one byte and then as many indices of 12 bits.
constexpr size_t TopKBytes(size_t kept) { return kept + (3 * kept + 1) / 2; }

// 32-bit words of the codes of a block of n <= kBlockSize values.
constexpr size_t BlockWords(size_t bits, size_t n) {
  return bits <= 2 ? bits * ((n + 31) / 32) : (n * bits + 31) / 32;
}

// Bytes of the scales and of the codes of `n` values.
constexpr size_t ScaleBytes(Coding coding, size_t n) {
  const size_t unit = UnitSize(coding);
  return HasScales(coding) ? (n + unit - 1) / unit * 2 : 0;
}
constexpr size_t CodeBytes(Coding coding, size_t n) {
  if (coding.kind == Coding::kF32) return n * 4;
  if (coding.kind == Coding::kBf16) return n * 2;
  if (coding.kind == Coding::kTopK) {
    return n / kChunkSize * TopKBytes(coding.kept) +
           TopKBytes(KeptOf(coding, n % kChunkSize));
  }
  const size_t bits = CodeBits(coding);
  return 4 * (n / kBlockSize * BlockWords(bits, kBlockSize) +
              BlockWords(bits, n % kBlockSize));
}

// A coded array.  No alignment is asked of either pointer.
struct CodedSpan {
  Coding coding;
  const std::byte* scales = nullptr;  // ScaleBytes(coding, n)
  const std::byte* codes = nullptr;   // CodeBytes(coding, n)
};

// A draw of 32 bits: a pure function of (key, i).  32 bits wide throughout, so
// that vector units compute it (lowbias32 of C. Wellons).
constexpr uint32_t DrawWord(uint64_t key, uint32_t i) {
  uint32_t z = i * 0x9e3779b9u + static_cast<uint32_t>(key);
  z = (z ^ (z >> 16)) * 0x21f0aaadu + static_cast<uint32_t>(key >> 32);
  z = (z ^ (z >> 15)) * 0x735a2d97u;
  return z ^ (z >> 15);
}
// A draw from [0, 1), of 24 bits.
constexpr float Dither(uint64_t key, uint32_t i) {
  return static_cast<float>(DrawWord(key, i) >> 8) * 0x1p-24f;
}

// The threshold between the two magnitudes of kLm2 in means of a block's
// magnitudes: 0.98160 of a Gaussian's root mean square (Max, IRE Transactions
// on Information Theory, 1960), which is 0.79788 means.  Its levels 0.45278 and
// 1.51042 are as 3 to 10 to within a thousandth.
inline constexpr float kLm2Threshold = 1.23026f;
inline constexpr float kLm2Small = 3;
inline constexpr float kLm2Large = 10;

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CODING_H_
