// The newest view of a peer on its disk, so that a later process can resume
// from it while the topology service does not answer.
//
// This header knows nothing of when that is.

#ifndef GOSSAMER_RUNTIME_DAEMON_LAST_VIEW_H_
#define GOSSAMER_RUNTIME_DAEMON_LAST_VIEW_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "runtime/base/event_loop.h"
#include "runtime/checkpoint/file_ops.h"
#include "runtime/membership/received_view.h"

namespace gossamer {

// The file in the folder of a peer.
std::string LastViewPath(const std::string& peer_folder);

// Reads the file.  Null if there is none.  kDataLoss: it is damaged, or of
// another run or peer.  Whether the service has signed it is not looked at.
absl::StatusOr<std::shared_ptr<const ReceivedView>> ReadLastView(
    FileOps& files, const std::string& path, const std::string& run_id,
    PeerId self);

// Loop only.
class LastView {
 public:
  // `files` and `disk` outlive it.  `report` hears of views that could not be
  // written.
  LastView(FileOps& files, std::string path, ComputeEngine* disk,
           std::function<void(const absl::Status&)> report)
      : files_(files),
        path_(std::move(path)),
        disk_(disk),
        report_(std::move(report)) {}
  LastView(const LastView&) = delete;

  // Writes the view, beside the loop, unless it is the one that was kept last.
  // While one is being written only the newest waits.
  void Keep(std::shared_ptr<const ReceivedView> received);

 private:
  void Write();

  FileOps& files_;
  const std::string path_;
  ComputeEngine* const disk_;
  const std::function<void(const absl::Status&)> report_;
  std::shared_ptr<const ReceivedView> kept_, writing_;
  // Callbacks on the loop hold it weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_LAST_VIEW_H_
