// A view as it came from the topology service.
//
// This header knows nothing of who asks, nor of whether the service is to be
// believed.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_RECEIVED_VIEW_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_RECEIVED_VIEW_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/topology.pb.h"
#include "topology/view.h"

namespace gossamer {

// A view and the signed message in which it came: only the service can sign
// another.  Peers of one process may share it.
struct ReceivedView {
  wire::ViewMessage message;
  View view;
};

// Reads the view of an answer, or makes it of `base` and the change that the
// answer has.  kDataLoss: it is none.
absl::StatusOr<std::shared_ptr<const ReceivedView>> ReadView(
    const wire::HeartbeatResponse& answer, const ReceivedView& base);

using ViewReader =
    std::function<absl::StatusOr<std::shared_ptr<const ReceivedView>>(
        const wire::HeartbeatResponse& answer, const ReceivedView& base)>;

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_RECEIVED_VIEW_H_
