// The options of the largest values of every 4096 (kTopK), and reading them.
//
// Knows nothing of what is sent with them.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_INNOV_TOPK_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_INNOV_TOPK_H_

#include <cstdint>
#include <vector>

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/options.h"

namespace gossamer {

struct TopKOptions {
  uint16_t kept = 64;  // k: values that are sent of every 4096
  BlockOptions blocks = {};
};
std::vector<Option> FieldsOf(TopKOptions& options);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_INNOV_TOPK_H_
