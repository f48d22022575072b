#include "algorithms/codec/elias_packer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "algorithms/kernels/block_codes.h"

namespace gossamer {
namespace {

// The two codes of the paper's appendix A.  Sparse, of few values that are not
// 0: of each its distance from the one before, its sign and its level; then the
// distance to the place after the last value.  Dense: of each value its level
// plus one and, unless it is 0, its sign.
enum class Regime : uint8_t { kSparse = 0, kDense = 1 };

// One coded array of the payload.
struct Array {
  Coding coding;
  size_t values = 0;
  size_t codes = 0;  // offset
  // Of the payload being packed.
  Regime regime = Regime::kSparse;
};

class EliasPacker final : public Packer {
 public:
  EliasPacker(Elias code, std::span<const Piece> pieces,
              const WireLayout& layout)
      : code_(code), size_(layout.size()), begin_(size_), end_(0) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (!pieces[i].quantized) continue;
      const WireLayout::Place& place = layout.place(i);
      const size_t values = pieces[i].extent.size;
      arrays_.push_back({place.coding, values, place.codes});
      begin_ = std::min(begin_, place.codes);
      end_ = std::max(end_, place.codes + CodeBytes(place.coding, values));
    }
    end_ = std::max(begin_, end_);
    for (size_t k = 1; k < short_.size(); ++k) short_[k] = EliasCode(code, k);
  }

  size_t Pack(const Encoded& payload, std::span<std::byte> out) override {
    if (payload.format != WireFormat::kQsgd || arrays_.empty()) return 0;
    const size_t kept = size_ - (end_ - begin_);
    uint64_t bits = 0;
    for (Array& a : arrays_) bits += Measure(payload.bytes, a);
    if (kept + (bits + 7) / 8 >= size_) return 0;
    std::memcpy(out.data(), payload.bytes.data(), begin_);
    std::memcpy(out.data() + begin_, payload.bytes.data() + end_, size_ - end_);
    BitWriter writer(out.subspan(kept));
    for (const Array& a : arrays_) Write(a, payload.bytes, writer);
    return kept + writer.Finish();
  }

  bool Unpack(WireFormat format, std::span<const std::byte> packed,
              std::span<std::byte> payload) override {
    const size_t kept = size_ - (end_ - begin_);
    if (format != WireFormat::kQsgd || payload.size() != size_ ||
        packed.size() < kept) {
      return false;
    }
    std::memcpy(payload.data(), packed.data(), begin_);
    std::memcpy(payload.data() + end_, packed.data() + begin_, size_ - end_);
    BitReader reader(packed.subspan(kept));
    for (const Array& a : arrays_) {
      if (!Read(a, reader, payload)) return false;
    }
    return reader.finished();
  }

 private:
  BitCode CodeOf(uint64_t k) const {
    return k < short_.size() ? short_[k] : EliasCode(code_, k);
  }

  // Calls visit(codes, n, first) for each block.
  template <typename Visit>
  static void ForEachBlock(const Array& a, std::span<const std::byte> payload,
                           const Visit& visit) {
    BlockCodes codes;
    for (size_t first = 0; first < a.values; first += kBlockSize) {
      const size_t n = std::min(kBlockSize, a.values - first);
      ReadBlock(a.coding, n,
                payload.data() + a.codes + CodeBytes(a.coding, first), codes);
      visit(codes, n, first);
    }
  }

  // Sets the regime of the fewer bits; returns how many.
  uint64_t Measure(std::span<const std::byte> payload, Array& a) const {
    uint64_t sparse = 0, dense = 0;
    size_t next = 0;  // after the last that is not 0
    ForEachBlock(
        a, payload, [&](const BlockCodes& codes, size_t n, size_t first) {
          for (size_t k = 0; k < n; ++k) {
            const auto level = static_cast<size_t>(std::abs(codes[k]));
            dense += short_[level + 1].length + (level > 0);
            if (level == 0) continue;
            sparse +=
                CodeOf(first + k + 1 - next).length + 1 + short_[level].length;
            next = first + k + 1;
          }
        });
    sparse += CodeOf(a.values + 1 - next).length;
    a.regime = sparse < dense ? Regime::kSparse : Regime::kDense;
    return 1 + std::min(sparse, dense);
  }

  void Write(const Array& a, std::span<const std::byte> payload,
             BitWriter& writer) const {
    writer.Put({static_cast<uint64_t>(a.regime), 1});
    size_t next = 0;
    ForEachBlock(
        a, payload, [&](const BlockCodes& codes, size_t n, size_t first) {
          for (size_t k = 0; k < n; ++k) {
            const auto level = static_cast<size_t>(std::abs(codes[k]));
            const uint64_t negative = codes[k] < 0;
            if (a.regime == Regime::kDense) {
              const BitCode code = short_[level + 1];
              writer.Put(level == 0 ? code
                                    : BitCode{code.bits << 1 | negative,
                                              code.length + 1});
            } else if (level > 0) {
              const BitCode code = short_[level];
              writer.Put(CodeOf(first + k + 1 - next));
              writer.Put(
                  {negative << code.length | code.bits, code.length + 1});
              next = first + k + 1;
            }
          }
        });
    if (a.regime == Regime::kSparse) writer.Put(CodeOf(a.values + 1 - next));
  }

  bool Read(const Array& a, BitReader& reader,
            std::span<std::byte> payload) const {
    const bool sparse = reader.Bit() == static_cast<uint64_t>(Regime::kSparse);
    // Place of the next that is not 0; a.values if there is none.
    uint64_t next = sparse ? reader.Number(code_) - 1 : 0;
    BlockCodes codes;
    for (size_t first = 0; first < a.values; first += kBlockSize) {
      const size_t n = std::min(kBlockSize, a.values - first);
      codes.fill(0);
      for (size_t k = 0; k < n && !sparse; ++k) {
        const uint64_t level = reader.Number(code_) - 1;
        if (level > a.coding.levels) return false;
        if (level > 0) codes[k] = Signed(reader.Bit(), level);
      }
      while (next < first + n && sparse) {
        const uint64_t negative = reader.Bit();
        const uint64_t level = reader.Number(code_);
        if (level > a.coding.levels) return false;
        codes[next - first] = Signed(negative, level);
        next += reader.Number(code_);
        if (!reader.ok()) return false;
      }
      if (!reader.ok()) return false;
      WriteBlock(a.coding, n, codes,
                 payload.data() + a.codes + CodeBytes(a.coding, first));
    }
    return !sparse || next == a.values;
  }

  static int8_t Signed(uint64_t negative, uint64_t level) {
    const auto magnitude = static_cast<int>(level);
    return static_cast<int8_t>(negative != 0 ? -magnitude : magnitude);
  }

  const Elias code_;
  const size_t size_;   // of a payload
  size_t begin_, end_;  // of its codes; before are scales, after raw values
  std::vector<Array> arrays_;
  std::array<BitCode, 256> short_;  // short_[k]: of k; levels are below
};

}  // namespace

std::unique_ptr<Packer> MakeEliasPacker(Elias code,
                                        std::span<const Piece> pieces,
                                        const WireLayout& layout) {
  return std::make_unique<EliasPacker>(code, pieces, layout);
}

}  // namespace gossamer
