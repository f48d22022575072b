// The variable-length coding of QSGD (Alistarh, Grubic, Li, Tomioka, Vojnović,
// NIPS 2017, section 3 and appendix A): mostly small levels in mostly few bits.
//
// Knows nothing of scales, values or draws: it recodes the codes of a payload.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_PACKER_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_PACKER_H_

#include <cstddef>
#include <memory>
#include <span>

#include "algorithms/compress/elias.h"
#include "algorithms/compress/packer.h"
#include "algorithms/compress/wire_layout.h"

namespace gossamer {

// A packer of payloads of kQsgd in `layout`; others travel as they are.
std::unique_ptr<Packer> MakeEliasPacker(Elias code,
                                        std::span<const Piece> pieces,
                                        const WireLayout& layout);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_ELIAS_PACKER_H_
