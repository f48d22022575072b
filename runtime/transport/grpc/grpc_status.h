// Carries errors between gRPC and Abseil, whose codes are the same numbers.
//
// This header knows nothing of the calls that fail.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_STATUS_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace gossamer {

inline absl::Status ToAbsl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_STATUS_H_
