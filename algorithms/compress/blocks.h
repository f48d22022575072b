// The options that the codecs of quantized blocks share, and the policies by
// which an edge uses a format.
//
// This header knows nothing of names.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_BLOCKS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_BLOCKS_H_

#include <cstddef>
#include <vector>

#include "algorithms/compress/compressor.h"
#include "algorithms/compress/options.h"
#include "algorithms/compress/piece_codec.h"

namespace gossamer {

struct BlockOptions {
  int fragments = 1;
  size_t least = kMinQuantizedSize;
};
std::vector<Option> FieldsOf(BlockOptions& options);
Option LeastField(size_t& least);
Option FragmentsField(int& fragments);

// Values themselves, with no memory: the error is one of x, not of differences,
// so γ = 1 is stable.
PiecePolicy StatelessPolicy(WireFormat format);
// Innovations against a replica.  The first messages carry whole parameters,
// which in int4 would be off by a fourteenth of the block's largest, and in
// less by more: they are int8.  A format that keeps at least 0.85 of what it
// codes, in the mean square, mixes stably with γ = 1; CHOCO diverges only for
// cruder ones.
PiecePolicy InnovationPolicy(WireFormat format);
// Sets of `policy` what the options say.
void ApplyOptions(const BlockOptions& options, PiecePolicy& policy);

// A codec of `policy` whose options are BlockOptions.
MadeCodec MakeBlocks(const CompressorText& text, PiecePolicy policy,
                     const ParameterLayout& layout, const DeviceQueue& queue);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_BLOCKS_H_
