#include "algorithms/compress/elias_tables.h"

#include <cassert>
#include <cstdlib>
#include <span>

#include "algorithms/kernels/block_codes.h"

namespace gossamer {
namespace {

BitCode Join(BitCode a, BitCode b) {
  return {a.bits << b.length | b.bits, a.length + b.length};
}

BitCode Sign(int value) { return {value < 0 ? 1u : 0u, 1}; }

}  // namespace

BitCode DenseCode(Elias code, int value) {
  const BitCode level =
      EliasCode(code, static_cast<uint64_t>(std::abs(value)) + 1);
  return value == 0 ? level : Join(level, Sign(value));
}

BitCode SparseCode(Elias code, int value) {
  return Join(Sign(value),
              EliasCode(code, static_cast<uint64_t>(std::abs(value))));
}

EliasWriteTable::EliasWriteTable(Elias code, Coding coding) : code_(code) {
  for (size_t d = 1; d < distances_.size(); ++d) {
    const BitCode made = EliasCode(code, d);
    distances_[d] = {static_cast<uint32_t>(made.bits), made.length};
  }
  for (unsigned group = 0; group < 256; ++group) {
    BitCode dense, sparse;
    bool coded = true;
    Sparse& places = sparse_[group];
    for (size_t k = 0; k < GroupSize(coding); ++k) {
      const int value = CodeInGroup(coding, static_cast<uint8_t>(group), k);
      coded &= std::abs(value) <= coding.levels;
      dense = Join(dense, DenseCode(code, value));
      if (value == 0) continue;
      const auto after = static_cast<uint8_t>(k + 1);
      if (places.after_first == 0) {
        places.after_first = after;
      } else {
        sparse = Join(sparse, EliasCode(code, after - places.after_last));
      }
      sparse = Join(sparse, SparseCode(code, value));
      places.after_last = after;
    }
    if (!coded) continue;  // is not written
    assert(dense.length <= 32 && sparse.length <= 16);
    dense_[group] = {static_cast<uint32_t>(dense.bits), dense.length};
    places.bits = static_cast<uint16_t>(sparse.bits);
    places.length = static_cast<uint8_t>(sparse.length);
    places.dense_excess = static_cast<uint8_t>(
        dense.length - GroupSize(coding) * EliasCode(code, 1).length);
  }
}

EliasReadTable::EliasReadTable(Elias code, Coding coding, Regime regime)
    : code_(code), levels_(coding.levels), regime_(regime) {
  for (uint64_t next = 0; next < 1u << kBits; ++next) {
    Append(next);
  }
}

bool EliasReadTable::Read(BitReader& reader, int8_t& value,
                          uint64_t& distance) const {
  const bool sparse = regime_ == Regime::kSparse;
  uint64_t negative = sparse ? reader.Bit() : 0;
  const uint64_t level = reader.Number(code_) - (sparse ? 0 : 1);
  if (level > levels_) return false;
  if (!sparse && level > 0) negative = reader.Bit();
  const auto magnitude = static_cast<int>(level);
  value = static_cast<int8_t>(negative != 0 ? -magnitude : magnitude);
  distance = sparse ? reader.Number(code_) : 1;
  return true;
}

// A code that goes on behind the bits that the table sees is not counted: the
// reader will see it whole at a later look-up.
void EliasReadTable::Append(uint64_t next) {
  const uint64_t big_endian = __builtin_bswap64(next << (64 - kBits));
  BitReader reader(std::as_bytes(std::span(&big_endian, 1)));
  Values values{};
  int8_t value = 0;
  uint64_t distance = 0, count = 0, length = 0;
  while (count < values.size() && Read(reader, value, distance) &&
         reader.ok() && reader.position() <= kBits) {
    values[count] = value;
    count += distance;
    length = reader.position();
  }
  assert(count <= kMax);
  steps_.push_back({static_cast<uint8_t>(count), static_cast<uint8_t>(length)});
  values_.push_back(values);
}

const EliasTables& EliasTables::Of(Elias code, Coding coding) {
  const auto of = []<Elias kCode>(Coding coding) -> const EliasTables& {
    constexpr uint16_t kBucket = kBlockSize;  // of no account here
    const auto make = [](uint8_t levels) {
      return new EliasTables(kCode,
                             Coding::Qsgd(levels, kBucket, Coding::kMax));
    };
    if (coding.levels == 1) {
      static const EliasTables& one = *make(1);
      return one;
    }
    if (coding.levels == 7) {
      static const EliasTables& seven = *make(7);
      return seven;
    }
    static const EliasTables& most = *make(127);
    return most;
  };
  return code == Elias::kGamma ? of.template operator()<Elias::kGamma>(coding)
                               : of.template operator()<Elias::kOmega>(coding);
}

}  // namespace gossamer
