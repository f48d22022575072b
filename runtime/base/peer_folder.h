// The place of one peer's files in a run's folder.
//
// The folder bears the peer's id, as its certificate and its lines in every log
// do.  This header knows nothing of the files themselves.

#ifndef GOSSAMER_RUNTIME_BASE_PEER_FOLDER_H_
#define GOSSAMER_RUNTIME_BASE_PEER_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "algorithms/base/ids.h"

namespace gossamer {

// "<run>/peer-3" of peer 3.
std::string PeerFolder(const std::string& run, PeerId peer);

// kFailedPrecondition: `run` holds a folder peer-0.  Versions before 0.2
// numbered the folders by rank, so that peer 3 would go on from the files of
// peer 4.
absl::Status CheckPeerFolders(const std::string& run);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_PEER_FOLDER_H_
