// The place of one peer's files in a run's folder.
//
// The folder bears the peer's id, as its certificate and its lines in every log
// do.  This header knows nothing of the files themselves.

#ifndef GOSSAMER_RUNTIME_BASE_PEER_FOLDER_H_
#define GOSSAMER_RUNTIME_BASE_PEER_FOLDER_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "algorithms/base/ids.h"

namespace gossamer {

// "<run>/peer-3" of peer 3.
inline std::string PeerFolder(const std::string& run, PeerId peer) {
  return absl::StrCat(run, "/peer-", peer.value);
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_PEER_FOLDER_H_
