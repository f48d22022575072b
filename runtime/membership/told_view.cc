#include "runtime/membership/told_view.h"

#include "algorithms/base/status_macros.h"
#include "topology/fleet/view_change.h"
#include "topology/fleet/view_message.h"

namespace gossamer {

absl::StatusOr<std::shared_ptr<const ToldView>> ReadView(
    const wire::HeartbeatResponse& answer, const ToldView& base) {
  auto told = std::make_shared<ToldView>();
  if (answer.has_view()) {
    told->message = answer.view();
  } else {
    GOSSAMER_ASSIGN_OR_RETURN(told->message,
                              Apply(base.message, answer.view_change()));
  }
  GOSSAMER_ASSIGN_OR_RETURN(told->view, FromMessage(told->message));
  return told;
}

}  // namespace gossamer
