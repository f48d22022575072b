// The calls of a topology client over gRPC.
//
// This header knows nothing of what they mean or when they are made.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_GRPC_TOPOLOGY_CLIENT_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_GRPC_TOPOLOGY_CLIENT_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "runtime/base/event_loop.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/membership/topology_client.h"
#include "topology/fleet/protocol.h"

namespace gossamer {

// Makes calls to the service at `addresses`, host:port[,host:port...] of its
// instances, of which it finds the one that serves.  With `certificates` both
// ends prove their identity.  A call fails after `deadline`, or later if
// answers have taken longer (call_limit.h), or if its answer is longer than
// `max_answer_bytes` (MaxAnswerBytes), before its bytes are held.  `loop`
// outlives the calls.  Destroying them waits until a call in flight is
// cancelled (milliseconds).
std::unique_ptr<TopologyCalls> MakeGrpcTopologyCalls(
    const std::string& addresses, EventLoop* loop,
    std::shared_ptr<CertificateFolder> certificates = nullptr,
    absl::Duration deadline = absl::Seconds(2),
    int max_answer_bytes = kMaxAnswerBytes);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_GRPC_TOPOLOGY_CLIENT_H_
