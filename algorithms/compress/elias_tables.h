// Look-up tables of the two codes of QSGD (appendix A of the paper): a writer
// looks up the finished bits of a group of values, a reader the values that the
// next bits begin with.
//
// A code that is too long for a table is written and read by elias.h.  This
// header knows nothing of payloads or of where codes lie in them.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_TABLES_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "algorithms/compress/elias.h"
#include "algorithms/kernels/coding.h"

namespace gossamer {

// Sparse, of few values that are not 0: of each its distance from the one
// before, its sign and its level; then the distance to the place after the last
// value.  Dense: of each value its level plus one and, unless it is 0, its
// sign.
enum class Regime : uint8_t { kSparse = 0, kDense = 1 };

// The code of one value: in the dense regime; in the sparse one without the
// distance before it, of a value that is not 0.
BitCode DenseCode(Elias code, int value);
BitCode SparseCode(Elias code, int value);

// Groups are those of algorithms/kernels/block_codes.h.
class EliasWriteTable {
 public:
  EliasWriteTable(Elias code, Coding coding);

  // All values of a group, at most 32 bits.
  struct Dense {
    uint32_t bits = 0;
    uint32_t length = 0;
  };
  // From the first value that is not 0 on, without the distance before it, at
  // most 15 bits; the places of the group that are behind it and behind the
  // last such value.
  struct Sparse {
    uint16_t bits = 0;
    uint8_t length = 0;
    uint8_t after_first = 0;
    uint8_t after_last = 0;
    // How many bits more than a group of zeros it takes in the dense regime.
    uint8_t dense_excess = 0;
  };
  const Dense& dense(uint8_t group) const { return dense_[group]; }
  const Sparse& sparse(uint8_t group) const { return sparse_[group]; }

  // Appends a group that is not all 0, behind the code of d >= 1, the distance
  // to its first value that is not; and flushes.
  void PutSparse(uint64_t d, const Sparse& group, BitWriter& writer) const {
    if (d < distances_.size()) [[likely]] {
      const Dense& distance = distances_[d];
      writer.Append(uint64_t{distance.bits} << group.length | group.bits,
                    distance.length + group.length);
      writer.Flush();
    } else {
      writer.Put(EliasCode(code_, d));
      writer.Put({group.bits, group.length});
    }
  }

 private:
  const Elias code_;
  std::array<Dense, 256> dense_, distances_;
  std::array<Sparse, 256> sparse_;
};

class EliasReadTable {
 public:
  // How many of the next bits a table sees.
  static constexpr uint32_t kBits = 14;
  // No more values than this are in so few bits.
  static constexpr size_t kMax = 63;
  // The values that are within the next bits: `count`, at most kMax, in
  // `length` bits; 0: they are too long, or no code.  Of the sparse regime they
  // begin with one that is not 0, and end where the next such one must be.
  struct Step {
    uint8_t count = 0;
    uint8_t length = 0;
  };
  // The first of them, as they are; all others are 0.
  using Values = std::array<int8_t, 8>;

  EliasReadTable(Elias code, Coding coding, Regime regime);

  // `next` as BitReader::Peek has it.  A reader cannot go on before it knows
  // where the next code begins; so steps lie apart from values, in a few cache
  // lines.
  Step StepOf(uint64_t next) const { return steps_[next >> (64 - kBits)]; }
  const Values& ValuesOf(uint64_t next) const {
    return values_[next >> (64 - kBits)];
  }

  // Bit by bit, one value and, of the sparse regime, the distance to the next;
  // the dense one's is 1.  False if a level is above those of the coding; what
  // else is wrong, the reader knows.
  bool Read(BitReader& reader, int8_t& value, uint64_t& distance) const;

 private:
  void Append(uint64_t next);

  const Elias code_;
  const uint64_t levels_;
  const Regime regime_;
  std::vector<Step> steps_;
  std::vector<Values> values_;
};

// The tables of one code and coding, made once.
struct EliasTables {
  EliasTables(Elias code, Coding coding)
      : write(code, coding),
        sparse(code, coding, Regime::kSparse),
        dense(code, coding, Regime::kDense) {}
  // `coding` is one of kQsgd.
  static const EliasTables& Of(Elias code, Coding coding);

  EliasWriteTable write;
  EliasReadTable sparse, dense;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_TABLES_H_
