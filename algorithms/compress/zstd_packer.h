// Payloads packed by zstd, a general entropy coder: worth its time where codes
// are far from uniform and links are slow (README.md has what it measures).
//
// Knows nothing of formats: bytes in, bytes out.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_ZSTD_PACKER_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_ZSTD_PACKER_H_

#include <memory>

#include "algorithms/compress/packer.h"

namespace gossamer {

// A packer of a level from 1 to 9.  It allocates all its memory here.
std::unique_ptr<Packer> MakeZstdPacker(int level);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_ZSTD_PACKER_H_
