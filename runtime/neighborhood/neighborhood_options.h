// The options of a peer's neighbourhood, and a row as it takes it.
//
// This header has plain values and knows nothing of edges.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_NEIGHBORHOOD_OPTIONS_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_NEIGHBORHOOD_OPTIONS_H_

#include <cstdint>
#include <string>

#include "algorithms/base/ids.h"
#include "algorithms/edge/edge_codec_state.h"
#include "runtime/neighborhood/deadline.h"

namespace gossamer {

struct NeighborhoodOptions {
  PeerId self;
  std::string run_id;
  uint64_t epoch = 0;  // MakeEpoch
  int window = 1;  // the largest overlap that a view may ask for, at least 1
  uint64_t layout = 0;
  DeadlinePolicy deadline;
  Extent summed = {};            // CommonState::extent
  CorrectionLimits limits = {};  // the same at all peers
};

// A neighbour in one round's row.
struct RowEntry {
  PeerId peer;
  float coefficient = 0;  // γ·w
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_NEIGHBORHOOD_OPTIONS_H_
