#include "runtime/base/peer_folder.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace gossamer {

std::string PeerFolder(const std::string& run, PeerId peer) {
  return absl::StrCat(run, "/peer-", peer.value);
}

absl::Status CheckPeerFolders(const std::string& run) {
  std::error_code error;
  if (!std::filesystem::exists(PeerFolder(run, PeerId{0}), error)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      run,
      "/peer-0 is there: an older gossamer numbered these folders by rank, "
      "from 0, and now they bear the peers' ids, from 1; rename each peer-N to "
      "peer-(N+1), the largest first, or take a new folder"));
}

}  // namespace gossamer
