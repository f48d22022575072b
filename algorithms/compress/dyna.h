// The options of Dyna-COLD's codec: one bit of a step that all peers know and
// that shrinks by itself.
//
// This header knows nothing of the dual variable that needs it.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_DYNA_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_DYNA_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/compress/options.h"
#include "algorithms/compress/shrinking_step.h"
#include "algorithms/compress/wire_layout.h"

namespace gossamer {

struct DynaOptions {
  ShrinkingStep step = {};
  size_t least = kMinQuantizedSize;
};
std::vector<Option> FieldsOf(DynaOptions& options);
// kInvalidArgument unless the step begins above its floor.
absl::Status CheckOptions(const DynaOptions& options);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_DYNA_H_
