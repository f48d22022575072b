#include "runtime/daemon/last_view.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

// A CRC-32C of the message that follows: a run without certificates has no
// signature that would show a damaged byte.
constexpr size_t kChecksumBytes = sizeof(uint32_t);
// Several times the view of the largest fleet.
constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

absl::Status Write(FileOps& files, const std::string& path,
                   const std::string& text) {
  const std::string fresh = path + ".tmp";
  GOSSAMER_RETURN_IF_ERROR(files.WriteText(fresh, text));
  GOSSAMER_RETURN_IF_ERROR(files.Rename(fresh, path));
  const size_t slash = path.rfind('/');
  return files.SyncFolder(slash == path.npos ? "" : path.substr(0, slash));
}

}  // namespace

std::string LastViewPath(const std::string& peer_folder) {
  return peer_folder + "/view.pb";
}

absl::StatusOr<std::shared_ptr<const ReceivedView>> ReadLastView(
    FileOps& files, const std::string& path, const std::string& run_id,
    PeerId self) {
  if (!files.Exists(path)) return nullptr;
  GOSSAMER_ASSIGN_OR_RETURN(const uint64_t size, files.Size(path));
  const absl::Status damaged =
      absl::DataLossError(absl::StrCat(path, " is damaged"));
  if (size <= kChecksumBytes || size > kMaxBytes) return damaged;
  GOSSAMER_ASSIGN_OR_RETURN(const std::string text, files.ReadText(path));
  if (text.size() <= kChecksumBytes) return damaged;
  const std::string_view message =
      std::string_view(text).substr(kChecksumBytes);
  auto received = std::make_shared<ReceivedView>();
  if (Get<uint32_t>(BytesOf(text), 0) != Crc32c(BytesOf(message)) ||
      !received->message.ParseFromArray(message.data(),
                                        static_cast<int>(message.size()))) {
    return damaged;
  }
  GOSSAMER_ASSIGN_OR_RETURN(received->view, FromMessage(received->message));
  if (received->view.run_id != run_id || !received->view.RankOf(self)) {
    return absl::DataLossError(absl::StrCat(
        path, " is a view of run \"", received->view.run_id, "\", and peer ",
        self.value, " of run \"", run_id, "\" is no member of it"));
  }
  return received;
}

void LastView::Keep(std::shared_ptr<const ReceivedView> received) {
  if (received == kept_ || received->view.epoch == 0) return;
  kept_ = std::move(received);
  if (writing_ == nullptr) Write();
}

void LastView::Write() {
  writing_ = kept_;
  const auto written = std::make_shared<absl::Status>();
  disk_->Run(
      [files = &files_, path = path_, received = writing_, written] {
        const std::string message = received->message.SerializeAsString();
        std::string text(kChecksumBytes, '\0');
        Put(std::as_writable_bytes(std::span(text)), 0,
            Crc32c(BytesOf(message)));
        *written = gossamer::Write(*files, path, text + message);
      },
      [this, written, alive = std::weak_ptr<bool>(alive_)] {
        if (alive.expired()) return;
        if (!written->ok()) report_(*written);
        const bool newer = kept_ != writing_;
        writing_ = nullptr;
        if (newer) Write();
      });
}

}  // namespace gossamer
