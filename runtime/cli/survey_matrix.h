// What a survey of a fleet's links has found, as a network's matrix.
//
// Pure; knows nothing of who was asked.

#ifndef GOSSAMER_RUNTIME_CLI_SURVEY_MATRIX_H_
#define GOSSAMER_RUNTIME_CLI_SURVEY_MATRIX_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/topology.pb.h"
#include "runtime/plan/matrix_text.h"

namespace gossamer {

// Of the members "peer-1", ...; one that ParseNetworkMatrix would return.
// kUnavailable names ways that were not measured.  kInternal: the answer is no
// matrix.
absl::StatusOr<NetworkMatrix> MatrixOf(const wire::LinkSurveyStatus& status);

// As a file for gossamer plan --matrix.
std::string MatrixText(const NetworkMatrix& matrix);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_SURVEY_MATRIX_H_
