// Finds every problem of a configuration.
//
// Each part checks its own settings; this asks them all, and names the key of
// the configuration that a setting was made of.  This header knows nothing of
// files.

#ifndef GOSSAMER_RUNTIME_CONFIG_RUN_CONFIG_CHECK_H_
#define GOSSAMER_RUNTIME_CONFIG_RUN_CONFIG_CHECK_H_

#include "algorithms/base/problems.h"
#include "proto/run.pb.h"

namespace gossamer {

// Of a resolved configuration.
Problems FindProblems(const RunConfig& config);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_RUN_CONFIG_CHECK_H_
