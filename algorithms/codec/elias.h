// Elias's universal codes of positive integers, as streams of bits (Elias,
// IEEE Transactions on Information Theory, 1975).
//
// Gamma: ⌊log2 k⌋ zeros, then k in binary.  Omega, the recursive code that
// QSGD uses: begin with a 0; while k > 1, put k in binary in front and go on
// with k = its length − 1.  Bits fill bytes from the highest.  Knows nothing of
// what the integers mean.

#ifndef GOSSAMER_ALGORITHMS_CODEC_ELIAS_H_
#define GOSSAMER_ALGORITHMS_CODEC_ELIAS_H_

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gossamer {

enum class Elias : uint8_t { kGamma, kOmega };

// A code of `length` bits, in the lowest of `bits`.
struct BitCode {
  uint64_t bits = 0;
  uint32_t length = 0;
};

// Of 1 <= k < 2^32: at most 63 bits.
constexpr BitCode EliasCode(Elias code, uint64_t k) {
  assert(k >= 1 && k >> 32 == 0);
  if (code == Elias::kGamma) {
    return {k, 2 * static_cast<uint32_t>(std::bit_width(k)) - 1};
  }
  BitCode out{0, 1};
  while (k > 1) {
    const auto width = static_cast<uint32_t>(std::bit_width(k));
    out.bits |= k << out.length;
    out.length += width;
    k = width - 1;
  }
  return out;
}

// Appends to `to`, which is large enough for all that is put.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> to) : to_(to) {}

  void Put(BitCode code) {
    if (code.length > 32) {
      PutShort({code.bits >> 32, code.length - 32});
      code = {code.bits & 0xffffffffu, 32};
    }
    PutShort(code);
  }
  // Fills the last byte with zeros; returns how many bytes were written.
  size_t Finish() {
    PutShort({0, (8 - held_ % 8) % 8});
    for (; held_ > 0; held_ -= 8) {
      to_[size_++] = static_cast<std::byte>(bits_ >> (held_ - 8) & 0xff);
    }
    return size_;
  }

 private:
  void PutShort(BitCode code) {
    bits_ = bits_ << code.length | code.bits;
    held_ += code.length;
    if (held_ < 32) return;
    held_ -= 32;
    const auto word = static_cast<uint32_t>(bits_ >> held_);
    const uint32_t big_endian = __builtin_bswap32(word);
    assert(size_ + 4 <= to_.size());
    std::memcpy(to_.data() + size_, &big_endian, 4);
    size_ += 4;
  }

  const std::span<std::byte> to_;
  size_t size_ = 0;
  uint64_t bits_ = 0;  // the lowest `held_` are not written yet
  uint32_t held_ = 0;  // under 32 between two calls
};

// Reads bits of `from` and zeros after its end.  What is no code, or goes past
// the end, makes `ok` false for good; nothing beyond the span is touched.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> from)
      : from_(from), end_(8 * from.size()) {}

  uint64_t Bit() { return Take(1); }

  // A number in [1, 2^32); 1 if there is none.
  uint64_t Number(Elias code) {
    return code == Elias::kGamma ? Gamma() : Omega();
  }

  bool ok() const { return !bad_ && at_ <= end_; }
  // All was read but fewer than 8 zeros.
  bool finished() {
    return ok() && end_ - at_ < 8 &&
           Take(static_cast<uint32_t>(end_ - at_)) == 0;
  }

 private:
  // The next 57 bits or more, from the highest on.
  uint64_t Peek() const {
    uint64_t word = 0;
    const size_t byte = at_ / 8;
    if (byte + 8 <= from_.size()) {
      std::memcpy(&word, from_.data() + byte, 8);
    } else if (byte < from_.size()) {
      std::memcpy(&word, from_.data() + byte, from_.size() - byte);
    }
    return __builtin_bswap64(word) << at_ % 8;
  }
  // At most 33.
  uint64_t Take(uint32_t bits) {
    const uint64_t taken = bits == 0 ? 0 : Peek() >> (64 - bits);
    at_ += bits;
    return taken;
  }
  uint64_t Fail() {
    bad_ = true;
    return 1;
  }
  uint64_t Gamma() {
    const auto zeros = static_cast<uint32_t>(std::countl_zero(Peek()));
    if (zeros > 31 || !ok()) return Fail();
    at_ += zeros;
    return Take(zeros + 1);
  }
  uint64_t Omega() {
    uint64_t k = 1;
    while (ok() && Peek() >> 63 == 1) {
      if (k > 31) return Fail();
      k = Take(static_cast<uint32_t>(k) + 1);
    }
    ++at_;
    return ok() ? k : Fail();
  }

  const std::span<const std::byte> from_;
  const size_t end_;
  size_t at_ = 0;  // at most a code beyond end_
  bool bad_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_CODEC_ELIAS_H_
