// The rounds from whose checkpoints a peer process can go on.
//
// This header knows nothing of what a checkpoint holds.

#ifndef GOSSAMER_RUNTIME_DAEMON_INTACT_CHECKPOINTS_H_
#define GOSSAMER_RUNTIME_DAEMON_INTACT_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

// Returns the rounds of the newest intact checkpoints in the folder of a peer,
// in rising order: as many as the service takes, which is more than it goes
// through to find one that all peers have.  `report` takes a line for each
// checkpoint that is damaged.  kDataLoss if there are some and none is intact;
// errors of CheckpointStore::List.
absl::StatusOr<std::vector<uint64_t>> IntactCheckpoints(
    const std::string& peer_folder,
    const std::function<void(const std::string& line)>& report);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_INTACT_CHECKPOINTS_H_
