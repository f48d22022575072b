// The part of a configuration that algorithm datalens reads: its settings, the
// rounds that its budget pays for, and what hinders it.
//
// This header knows nothing of networks or files.

#ifndef GOSSAMER_RUNTIME_CONFIG_DATALENS_CONFIG_H_
#define GOSSAMER_RUNTIME_CONFIG_DATALENS_CONFIG_H_

#include "algorithms/base/problems.h"
#include "algorithms/privacy/settings.h"
#include "proto/run.pb.h"

namespace gossamer {

DataLensSettings DataLensSettingsOf(const RunConfig& config);

// Sets what an algorithm that learns from votes has by default: its game, and
// the rounds that the whole budget pays for.
void ResolveVotes(RunConfig& config);

// Of a resolved configuration: problems of game.datalens, and an algorithm that
// does not go with it.
Problems ProblemsOfVotes(const RunConfig& config);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_DATALENS_CONFIG_H_
