// A View as it travels and as the topology service stores it.
//
// This header knows nothing of connections or files.

#ifndef GOSSAMER_TOPOLOGY_FLEET_VIEW_MESSAGE_H_
#define GOSSAMER_TOPOLOGY_FLEET_VIEW_MESSAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/topology.pb.h"
#include "topology/view.h"

namespace gossamer {

wire::ViewMessage ToMessage(const View& view);

// kDataLoss if it is not the view of a fleet: no or too many members, ids that
// are zero or not ascending, numbers out of range.  Whether the schedule can
// be is MakeSchedule's to say.
absl::StatusOr<View> FromMessage(const wire::ViewMessage& message);

// The bytes of `view` that its signature or its MAC is of.
std::string SignedPart(wire::ViewMessage view);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_VIEW_MESSAGE_H_
