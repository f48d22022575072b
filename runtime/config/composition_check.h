// Which parts of a run do not go together: algorithm, schedule, codec, overlap,
// optimizer.
//
// Each field has been found possible by itself.  This header knows nothing of
// files.

#ifndef GOSSAMER_RUNTIME_CONFIG_COMPOSITION_CHECK_H_
#define GOSSAMER_RUNTIME_CONFIG_COMPOSITION_CHECK_H_

#include <string>
#include <vector>

#include "proto/run.pb.h"
#include "runtime/config/run_config_check.h"

namespace gossamer {

// With mixing.clip_radius every peer mixes with so many others: of fewer, one
// liar is too large a part.
constexpr int kMinClippedDegree = 4;

// Of a resolved configuration whose parts have no problems of their own.
Problems FindConflicts(const RunConfig& config);

// Why peers of a resolved configuration compute on the CPU whatever their
// machines have, and what to take instead; empty: they may be on GPUs.
std::string WhyOnHost(const RunConfig& config);

// Fields of a resolved configuration that differ from their defaults, though
// its algorithm does not look at them.  No error: runs to be compared share a
// file.
std::vector<std::string> FindUnused(const RunConfig& config);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_COMPOSITION_CHECK_H_
