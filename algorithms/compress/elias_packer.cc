#include "algorithms/compress/elias_packer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "algorithms/kernels/block_codes.h"

namespace gossamer {
namespace {

// All arrays are coded alike.
Coding CodingOf(std::span<const Piece> pieces, const WireLayout& layout) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].quantized) return layout.place(i).coding;
  }
  return Coding::Qsgd(1, kBlockSize, Coding::kMax);
}

// Has the top bit of each byte that is not 0.
uint64_t NonZeroTops(uint64_t bytes) {
  constexpr uint64_t kTops = 0x8080808080808080u;
  return (((bytes & ~kTops) + ~kTops) | bytes) & kTops;
}

}  // namespace

EliasPacker::EliasPacker(Elias code, std::span<const Piece> pieces,
                         const WireLayout& layout)
    : code_(code),
      coding_(CodingOf(pieces, layout)),
      tables_(&EliasTables::Of(code, coding_)),
      size_(layout.size()),
      begin_(size_) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].quantized) continue;
    const size_t values = pieces[i].extent.size;
    const size_t codes = layout.place(i).codes;
    arrays_.push_back({values, codes});
    begin_ = std::min(begin_, codes);
    end_ = std::max(end_, codes + CodeBytes(coding_, values));
  }
  end_ = std::max(begin_, end_);
}

size_t EliasPacker::Pack(std::span<const std::byte> payload,
                         std::span<std::byte> out) const {
  if (arrays_.empty()) return 0;
  const size_t kept = size_ - (end_ - begin_);
  std::memcpy(out.data(), payload.data(), begin_);
  std::memcpy(out.data() + begin_, payload.data() + end_, size_ - end_);
  BitWriter writer(out.subspan(kept, size_ - kept));
  for (const Array& a : arrays_) {
    const std::byte* const codes = payload.data() + a.codes;
    // The regime of the fewer bits.  How many the sparse one takes, writing
    // it tells as fast as anything else would.
    uint64_t dense = 0;
    const BitWriter sparse = WriteSparse(a.values, codes, writer, dense);
    const bool shorter =
        !sparse.full() && sparse.position() - writer.position() < dense;
    writer = shorter ? sparse : WriteDense(a.values, codes, writer);
    if (writer.full()) return 0;
  }
  const size_t packed = kept + writer.Finish();
  return writer.full() || packed >= size_ ? 0 : packed;
}

bool EliasPacker::Unpack(std::span<const std::byte> packed,
                         std::span<std::byte> payload) const {
  const size_t kept = size_ - (end_ - begin_);
  if (payload.size() != size_ || packed.size() < kept) return false;
  std::memcpy(payload.data(), packed.data(), begin_);
  std::memcpy(payload.data() + end_, packed.data() + begin_, size_ - end_);
  BitReader reader(packed.subspan(kept));
  for (const Array& a : arrays_) {
    if (!Read(a.values, reader, payload.data() + a.codes)) return false;
  }
  return reader.finished();
}

template <size_t kBits>
BitWriter EliasPacker::WriteSparseOf(size_t values, const std::byte* codes,
                                     BitWriter writer, uint64_t& dense) const {
  constexpr size_t kGroup = 8 / kBits;
  const EliasWriteTable& table = tables_->write;
  writer.Put({static_cast<uint64_t>(Regime::kSparse), 1});
  size_t next = 0;  // after the last that is not 0
  uint64_t excess = 0;
  for (size_t first = 0; first < values; first += kBlockSize) {
    const size_t n = std::min(kBlockSize, values - first);
    BlockGroups groups;
    if (n < kBlockSize) groups.fill(0);
    ReadGroups(coding_, n, codes + CodeBytes(coding_, first), groups);
    for (size_t k = 0; k < n; k += 8 * kGroup) {
      uint64_t eight;
      std::memcpy(&eight, groups.data() + k / kGroup, 8);
      for (uint64_t tops = NonZeroTops(eight); tops != 0; tops &= tops - 1) {
        const auto shift = static_cast<size_t>(std::countr_zero(tops)) - 7;
        const EliasWriteTable::Sparse& group =
            table.sparse(static_cast<uint8_t>(eight >> shift));
        const size_t at = first + k + shift / kBits;
        table.PutSparse(at + group.after_first - next, group, writer);
        next = at + group.after_last;
        excess += group.dense_excess;
      }
    }
  }
  writer.Put(EliasCode(code_, values + 1 - next));
  dense = 1 + excess + values * DenseCode(code_, 0).length;
  return writer;
}

BitWriter EliasPacker::WriteSparse(size_t values, const std::byte* codes,
                                   BitWriter writer, uint64_t& dense) const {
  switch (CodeBits(coding_)) {
    case 2:
      return WriteSparseOf<2>(values, codes, writer, dense);
    case 4:
      return WriteSparseOf<4>(values, codes, writer, dense);
    default:
      return WriteSparseOf<8>(values, codes, writer, dense);
  }
}

BitWriter EliasPacker::WriteDense(size_t values, const std::byte* codes,
                                  BitWriter writer) const {
  const EliasWriteTable& table = tables_->write;
  const size_t group_size = GroupSize(coding_);
  writer.Put({static_cast<uint64_t>(Regime::kDense), 1});
  for (size_t first = 0; first < values; first += kBlockSize) {
    const size_t n = std::min(kBlockSize, values - first);
    BlockGroups groups;
    ReadGroups(coding_, n, codes + CodeBytes(coding_, first), groups);
    const size_t whole = n / group_size;
    size_t i = 0;
    for (; i + 2 <= whole; i += 2) {
      const EliasWriteTable::Dense& a = table.dense(groups[i]);
      const EliasWriteTable::Dense& b = table.dense(groups[i + 1]);
      writer.Append(uint64_t{a.bits} << b.length | b.bits, a.length + b.length);
      writer.Flush();
    }
    for (size_t k = i * group_size; k < n; ++k) {
      const int value =
          CodeInGroup(coding_, groups[k / group_size], k % group_size);
      writer.Put(DenseCode(code_, value));
    }
  }
  return writer;
}

bool EliasPacker::Read(size_t values, BitReader& from, std::byte* to) const {
  BitReader reader = from;
  const bool sparse = reader.Bit() == static_cast<uint64_t>(Regime::kSparse);
  const EliasReadTable& table = sparse ? tables_->sparse : tables_->dense;
  // So many entries of the table are within what Peek sees, and end within
  // the first 64 bits from a byte on.
  constexpr size_t kAtOnce = 57 / EliasReadTable::kBits;
  static_assert(7 + kAtOnce * EliasReadTable::kBits < 64);
  constexpr size_t kStretch = 8 * kBlockSize;
  constexpr size_t kBehind = kAtOnce * EliasReadTable::kMax;
  // Values of a stretch and, few, behind it; 0 where none was read.
  std::array<int8_t, kStretch + kBehind> read{};
  // The place of the next value, counted from `first`.
  size_t at = sparse ? reader.Number(code_) - 1 : 0;
  uint64_t next = reader.Peek();
  for (size_t first = 0; first < values; first += kStretch) {
    const size_t left = values - first, n = std::min(kStretch, left);
    while (at < n) {
      // Loaded before it is known how many bits will have been used.
      const BitReader::Ahead ahead = reader.LookAhead();
      const size_t unaligned = reader.position() % 8, before = at;
      size_t used = unaligned;
      const auto look = [&] {
        const EliasReadTable::Step step = table.StepOf(next);
        std::memcpy(read.data() + at, table.ValuesOf(next).data(),
                    sizeof(EliasReadTable::Values));
        at += step.count;
        next <<= step.length;
        used += step.length;
      };
      if (left - at >= kBehind) [[likely]] {
        for (size_t i = 0; i < kAtOnce; ++i) look();
      } else if (left - at >= EliasReadTable::kMax) {
        look();
      }
      if (at > before) {
        reader.Skip(used - unaligned);
        next = ahead.After(used);
        continue;
      }
      uint64_t distance = 0;
      if (!table.Read(reader, read[at], distance) || !reader.ok()) {
        return false;
      }
      at += distance;
      next = reader.Peek();
    }
    if (!reader.ok()) return false;
    for (size_t k = 0; k < n; k += kBlockSize) {
      WriteBlock(
          coding_, std::min(kBlockSize, n - k),
          std::span<const int8_t, kBlockSize>(read.data() + k, kBlockSize),
          to + CodeBytes(coding_, first + k));
    }
    at -= n;
    std::memcpy(read.data(), read.data() + kStretch, kBehind);
    std::memset(read.data() + kBehind, 0, kStretch);
  }
  from = reader;
  return at == 0;
}

}  // namespace gossamer
