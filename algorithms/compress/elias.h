// Elias's universal codes of positive integers, as streams of bits (Elias,
// IEEE Transactions on Information Theory, 1975).
//
// Gamma: ⌊log2 k⌋ zeros, then k in binary.  Omega, the recursive code that QSGD
// uses: begin with a 0; while k > 1, put k in binary in front and go on with
// k = its length − 1.  Bits fill bytes from the highest.  This header knows
// nothing of what the integers mean.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_H_

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

// The code of k, 1 <= k < 2^32: at most 63 bits.
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

// Appends to `to` what fits; what does not makes it `full` for good.  Nothing
// beyond the span is written, in it also behind what was put.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> to)
      : begin_(to.data()), end_(begin_ + to.size()), at_(begin_) {}

  void Put(BitCode code) {
    if (code.length > 32) {
      Append(code.bits >> 32, code.length - 32);
      Flush();
      code = {code.bits & 0xffffffffu, 32};
    }
    Append(code.bits, code.length);
    Flush();
  }
  // The two halves of Put: at most 56 bits are appended between two flushes.
  void Append(uint64_t bits, uint32_t length) {
    bits_ = bits_ << length | bits;
    held_ += length;
  }
  void Flush() {
    const uint64_t bytes = __builtin_bswap64(bits_ << 1 << (63 - held_));
    // Eight bytes whatever is held, of which the next flush overwrites what is
    // not whole: how many are cannot be foreseen, where the end is can.
    const size_t whole = held_ / 8;
    if (end_ - at_ >= 8) [[likely]] {
      std::memcpy(at_, &bytes, 8);
      at_ += whole;
    } else if (StoreLast(bytes, whole, {at_, end_})) {
      at_ += whole;
    } else {
      full_ = true;
    }
    held_ %= 8;
  }
  bool full() const { return full_; }
  // Bits put so far, unless it is full.
  uint64_t position() const { return 8 * Size() + held_; }
  // Fills the last byte with zeros; returns how many bytes were written.
  size_t Finish() {
    Append(0, (8 - held_ % 8) % 8);
    Flush();
    return Size();
  }

 private:
  // Apart, so that no writer needs an address.
  [[gnu::cold]] static bool StoreLast(uint64_t bytes, size_t whole,
                                      std::span<std::byte> to) {
    if (whole > to.size()) return false;
    std::memcpy(to.data(), &bytes, whole);
    return true;
  }

  size_t Size() const { return static_cast<size_t>(at_ - begin_); }

  std::byte* begin_;
  std::byte* end_;
  std::byte* at_;
  uint64_t bits_ = 0;  // the lowest `held_` are not written yet
  uint32_t held_ = 0;  // under 8 between a flush and an Append
  bool full_ = false;
};

// Reads bits of `from` and zeros after its end.  Bits that are no code, or a
// code that goes past the end, make `ok` false for good; nothing beyond the
// span is touched.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> from)
      : from_(from), end_(8 * from.size()) {}

  uint64_t Bit() { return Take(1); }

  // A number in [1, 2^32); 1 if there is none.
  uint64_t Number(Elias code) {
    return code == Elias::kGamma ? Gamma() : Omega();
  }

  // The next 57 bits or more, from the highest on; and past some of them.
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
  void Skip(size_t bits) { at_ += bits; }
  // The next 128 bits from the byte on that the next one is in.
  struct Ahead {
    uint64_t high = 0, low = 0;
    // 64 of them, behind the first `bits` < 64.
    uint64_t After(size_t bits) const {
      return high << bits | low >> 1 >> (63 - bits);
    }
  };
  Ahead LookAhead() const {
    uint64_t words[2] = {};
    const size_t byte = at_ / 8;
    if (byte + 16 <= from_.size()) [[likely]] {
      std::memcpy(words, from_.data() + byte, 16);
    } else if (byte < from_.size()) {
      std::memcpy(words, from_.data() + byte, from_.size() - byte);
    }
    return {__builtin_bswap64(words[0]), __builtin_bswap64(words[1])};
  }
  // Bits read or skipped so far.
  size_t position() const { return at_; }

  bool ok() const { return !bad_ && at_ <= end_; }
  // All was read but fewer than 8 zeros.
  bool finished() {
    return ok() && end_ - at_ < 8 &&
           Take(static_cast<uint32_t>(end_ - at_)) == 0;
  }

 private:
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

  std::span<const std::byte> from_;
  size_t end_;
  size_t at_ = 0;  // may be beyond end_
  bool bad_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_H_
