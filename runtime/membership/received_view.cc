#include "runtime/membership/received_view.h"

#include "algorithms/base/status_macros.h"
#include "topology/fleet/view_change.h"
#include "topology/fleet/view_message.h"

namespace gossamer {

absl::StatusOr<std::shared_ptr<const ReceivedView>> ReadView(
    const wire::HeartbeatResponse& answer, const ReceivedView& base) {
  auto received = std::make_shared<ReceivedView>();
  if (answer.has_view()) {
    received->message = answer.view();
  } else {
    GOSSAMER_ASSIGN_OR_RETURN(received->message,
                              Apply(base.message, answer.view_change()));
  }
  GOSSAMER_ASSIGN_OR_RETURN(received->view, FromMessage(received->message));
  return received;
}

}  // namespace gossamer
