// A FleetRecord as messages and as bytes.
//
// This header knows nothing of where they are kept.

#ifndef GOSSAMER_TOPOLOGY_FLEET_RECORD_MESSAGE_H_
#define GOSSAMER_TOPOLOGY_FLEET_RECORD_MESSAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/topology.pb.h"
#include "topology/fleet/fleet_record.h"

namespace gossamer {

// `record` without its members and its view.
wire::StoredFleet HeadOf(const FleetRecord& record);
wire::StoredMember ToMessage(const MemberRecord& member);
// kDataLoss says what about it cannot be a record of this program's.
absl::StatusOr<FleetRecord> RecordFromMessage(const wire::StoredFleet& stored);

// All of it.
std::string ToBytes(const FleetRecord& record);
// kDataLoss as of RecordFromMessage.
absl::StatusOr<FleetRecord> RecordFromBytes(absl::string_view bytes);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_RECORD_MESSAGE_H_
