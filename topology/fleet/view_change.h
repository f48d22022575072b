// A view as what differs in its members from an earlier one, so that a large
// fleet learns in few bytes that a member has come or gone.
//
// On messages, since a signature is of a message.  This header knows nothing of
// who has which view.

#ifndef GOSSAMER_TOPOLOGY_FLEET_VIEW_CHANGE_H_
#define GOSSAMER_TOPOLOGY_FLEET_VIEW_CHANGE_H_

#include "absl/status/statusor.h"
#include "proto/topology.pb.h"

namespace gossamer {

// `next` without the members that are alike in `base`.  Both are messages of
// ToMessage (view_message.h).
wire::ViewChange ChangeOf(const wire::ViewMessage& base,
                          const wire::ViewMessage& next);

// The view that `change` makes of `base`, its signature included.  kDataLoss:
// the change is of another view or of other members, or is none that ChangeOf
// makes.  Whether the
// result is a view is FromMessage's to say.
absl::StatusOr<wire::ViewMessage> Apply(const wire::ViewMessage& base,
                                        const wire::ViewChange& change);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_VIEW_CHANGE_H_
