// A view as the topology service has told it.
//
// Knows nothing of who asks, nor of whether the service is to be believed.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_TOLD_VIEW_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_TOLD_VIEW_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/topology.pb.h"
#include "topology/view.h"

namespace gossamer {

// The message with its signature, since only the service can make another, and
// what it says.  Peers of one process may share it.
struct ToldView {
  wire::ViewMessage message;
  View view;
};

// Reads the view of an answer, or makes it of `base` and the change that the
// answer has.  kDataLoss: it is none.
absl::StatusOr<std::shared_ptr<const ToldView>> ReadView(
    const wire::HeartbeatResponse& answer, const ToldView& base);

using ViewReader =
    std::function<absl::StatusOr<std::shared_ptr<const ToldView>>(
        const wire::HeartbeatResponse& answer, const ToldView& base)>;

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_TOLD_VIEW_H_
