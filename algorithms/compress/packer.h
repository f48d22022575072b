// Lossless packing of payloads on the wire: a payload has the size that its
// layout gives; what travels may be shorter.
//
// Packing is between the codec, which encodes, checks and applies payloads of
// exact size, and the frame, which says how its bytes are packed.  A payload
// that would not become shorter travels as it is, so that what arrives is never
// longer than the layout says, and what is unpacked is exactly as long.  Knows
// nothing of frames or of what payloads do.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_PACKER_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_PACKER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/compress/codec.h"

namespace gossamer {

// One thread at a time; its memory is got when it is made.
class Packer {
 public:
  virtual ~Packer() = default;
  // Packs `payload`, which its codec has encoded.  Returns how many bytes of
  // `out` were written, fewer than the payload has; 0 if that cannot be: it
  // travels as it is.  `out` has as many bytes as the payload.
  virtual size_t Pack(const Encoded& payload, std::span<std::byte> out) = 0;
  // Fills `payload`, of the size that the layout gives `format`, with what
  // `packed` holds.  Hostile bytes make it write nothing else and allocate
  // nothing.  False unless they are whole and fill it exactly; what is in it is
  // then still to be validated.
  virtual bool Unpack(WireFormat format, std::span<const std::byte> packed,
                      std::span<std::byte> payload) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_PACKER_H_
