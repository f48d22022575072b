// The options of Moniqua: codes modulo a range that differences of peers stay
// within.
//
// Knows nothing of what happens when they do not.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_MONIQUA_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_MONIQUA_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/options.h"

namespace gossamer {

struct ModuloOptions {
  double theta = 0.1;  // the most by which values of two peers differ
  int bits = 8;        // 4 or 8
  int zstd = 0;
  size_t least = kMinQuantizedSize;
};
std::vector<Option> FieldsOf(ModuloOptions& options);

// The options in the text of a codec ("moniqua:theta=2"); nullopt: it is
// another codec.
std::optional<ModuloOptions> ModuloOptionsOf(std::string_view text);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_MONIQUA_H_
