#include "runtime/base/durable_file.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Bytes that are looked at while they are written are written in such pieces:
// a piece is still in a processor's cache.
constexpr size_t kPiece = size_t{1} << 18;

absl::Status Failed(const std::string& path, absl::string_view what,
                    int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

int OpenFile(const std::string& path, int flags, mode_t mode) {
  int fd = -1;
  do {
    // Children must not inherit files that are being written.
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

absl::Status WriteAll(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    // A write that takes nothing would be repeated for ever.
    if (n <= 0) return Failed(path, "write", n < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// Only an interrupted fsync is repeated.  After an error the kernel may have
// dropped the unwritten pages, and report success the next time.
absl::Status Sync(int fd, const std::string& path) {
  int result = 0;
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? absl::OkStatus() : Failed(path, "fsync", errno);
}

// Linux has closed the file whatever close() returns, so it is never repeated.
// An interruption does not endanger bytes that were synced before.
absl::Status Close(int fd, const std::string& path) {
  if (::close(fd) == 0 || errno == EINTR) return absl::OkStatus();
  return Failed(path, "close", errno);
}

absl::Status WriteAndSync(
    int fd, const std::string& path, std::span<const std::string_view> parts,
    const std::function<void(std::string_view)>& written) {
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const std::string_view piece =
          written == nullptr ? part : part.substr(0, kPiece);
      GOSSAMER_RETURN_IF_ERROR(WriteAll(fd, path, piece));
      if (written != nullptr) written(piece);
      part.remove_prefix(piece.size());
    }
  }
  return Sync(fd, path);
}

}  // namespace

absl::Status WriteDurably(
    const std::string& path, std::span<const std::string_view> parts, int flags,
    mode_t mode, const std::function<void(std::string_view)>& written) {
  const int fd = OpenFile(path, O_WRONLY | flags, mode);
  if (fd < 0) return Failed(path, "open", errno);
  absl::Status status = WriteAndSync(fd, path, parts, written);
  // A full disk may show itself only at this point.
  status.Update(Close(fd, path));
  return status;
}

absl::Status SyncFolder(const std::string& path) {
  const int fd = OpenFile(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY, 0);
  if (fd < 0) return Failed(path, "open folder", errno);
  const absl::Status status = Sync(fd, path);
  // A folder that was read cannot lose anything at its close.
  ::close(fd);
  return status;
}

}  // namespace gossamer
