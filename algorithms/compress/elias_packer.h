// The variable-length coding of QSGD (Alistarh, Grubic, Li, Tomioka, Vojnović,
// NIPS 2017, section 3 and appendix A): mostly small levels in mostly few bits.
//
// A packer recodes the codes of a payload and loses nothing.  This header knows
// nothing of scales, values or draws.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_PACKER_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_PACKER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/compress/elias.h"
#include "algorithms/compress/elias_tables.h"
#include "algorithms/compress/wire_layout.h"
#include "algorithms/kernels/coding.h"

namespace gossamer {

// Immutable, for payloads in one layout whose quantized pieces are kQsgd.
class EliasPacker {
 public:
  EliasPacker(Elias code, std::span<const Piece> pieces,
              const WireLayout& layout);

  // Packs `payload`, of the layout's size.  Returns how many bytes of `out`
  // were written, fewer than the payload has; 0 if that cannot be: the payload
  // then travels as it is.  `out` has as many bytes as the payload.
  size_t Pack(std::span<const std::byte> payload,
              std::span<std::byte> out) const;
  // Fills `payload`, of the layout's size, with what `packed` holds.  Hostile
  // bytes make it write nothing else and allocate nothing.  False unless they
  // are whole and fill it exactly; what is in it is then still to be validated.
  bool Unpack(std::span<const std::byte> packed,
              std::span<std::byte> payload) const;

 private:
  // One coded array of the payload.
  struct Array {
    size_t values = 0;
    size_t codes = 0;  // offset
  };

  // These take and return the writer by value, so that it stays in registers:
  // no byte that is written can be part of it.

  // Sets `dense` to the bits of the other regime; both with the one that says
  // which it is.
  BitWriter WriteSparse(size_t values, const std::byte* codes, BitWriter writer,
                        uint64_t& dense) const;
  template <size_t kBits>
  BitWriter WriteSparseOf(size_t values, const std::byte* codes,
                          BitWriter writer, uint64_t& dense) const;
  BitWriter WriteDense(size_t values, const std::byte* codes,
                       BitWriter writer) const;
  bool Read(size_t values, BitReader& from, std::byte* to) const;

  Elias code_;
  Coding coding_;
  const EliasTables* tables_;
  size_t size_;             // of a payload
  size_t begin_, end_ = 0;  // of its codes; before are scales, after raw values
  std::vector<Array> arrays_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_PACKER_H_
