// A FleetRecord as bytes.
//
// Knows nothing of where they are kept.

#ifndef GOSSAMER_TOPOLOGY_FLEET_RECORD_MESSAGE_H_
#define GOSSAMER_TOPOLOGY_FLEET_RECORD_MESSAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "topology/fleet/fleet_record.h"

namespace gossamer {

std::string ToBytes(const FleetRecord& record);
// kDataLoss says what about them cannot be a record of this program's.
absl::StatusOr<FleetRecord> RecordFromBytes(absl::string_view bytes);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_RECORD_MESSAGE_H_
