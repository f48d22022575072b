// Messages of the control plane as the values that a Fleet takes and gives.
//
// This header knows nothing of what is decided from them.

#ifndef GOSSAMER_TOPOLOGY_FLEET_CONTROL_MESSAGES_H_
#define GOSSAMER_TOPOLOGY_FLEET_CONTROL_MESSAGES_H_

#include "absl/status/statusor.h"
#include "proto/topology.pb.h"
#include "topology/fleet/fleet_record.h"

namespace gossamer {

Registration RegistrationOf(const wire::RegisterRequest& request);
// kInvalidArgument: a field is not what it is said to be.
absl::StatusOr<FleetHeartbeat> HeartbeatOf(
    const wire::HeartbeatRequest& request);
// All but the view (view_answers.h).
void Fill(const FleetAnswer& answer, wire::HeartbeatResponse& response);
void Fill(const FleetPeer& peer, wire::PeerStatus& status);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_CONTROL_MESSAGES_H_
