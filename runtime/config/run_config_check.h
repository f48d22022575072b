// Finds every problem of a configuration.
//
// Knows nothing of files: a problem names its field.

#ifndef GOSSAMER_RUNTIME_CONFIG_RUN_CONFIG_CHECK_H_
#define GOSSAMER_RUNTIME_CONFIG_RUN_CONFIG_CHECK_H_

#include <string>
#include <vector>

#include "proto/run.pb.h"

namespace gossamer {

struct Problem {
  std::string field;  // "mixing.codec"
  std::string what;   // goes on after it: "is \"x\"; known: ..."
};

// Of a resolved configuration.
std::vector<Problem> FindProblems(const RunConfig& config);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_RUN_CONFIG_CHECK_H_
