#include "runtime/daemon/intact_checkpoints.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "topology/fleet/protocol.h"

namespace gossamer {

absl::StatusOr<std::vector<uint64_t>> IntactCheckpoints(
    const std::string& peer_folder,
    const std::function<void(const std::string& line)>& report) {
  const std::string folder = peer_folder + "/checkpoints";
  const CheckpointStore store(folder, 1);
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> list,
                            store.List());
  std::vector<uint64_t> rounds;
  for (const StoredCheckpoint& stored : list) {
    if (stored.integrity.ok()) {
      rounds.push_back(stored.round);
    } else {
      report(absl::StrCat("not gone on from: ", stored.integrity.message()));
    }
  }
  // The fleet would begin anew at round 1, and later saves would take the place
  // of what is left of the run.
  if (rounds.empty() && !list.empty()) {
    return absl::DataLossError(absl::StrCat(
        "--resume: none of the ", list.size(), " checkpoints in ", folder,
        " is whole, the newest: ", list.back().integrity.message(),
        "; copy a whole one back, or move that folder away to begin anew"));
  }
  const size_t most = std::min(rounds.size(), kMaxCheckpointRounds);
  return std::vector<uint64_t>(rounds.end() - static_cast<ptrdiff_t>(most),
                               rounds.end());
}

}  // namespace gossamer
