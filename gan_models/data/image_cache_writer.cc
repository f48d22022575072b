#include "gan_models/data/image_cache_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

absl::Status FailedAt(const std::string& path, const std::string& what,
                      int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

// Opens the file and locks it, until it is closed.
absl::StatusOr<int> OpenLocked(const std::string& path) {
  // A build that ends meanwhile renames the file that was opened here, and the
  // lock would be of the finished one: then it is opened anew.
  while (true) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return FailedAt(path, "open", errno);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(fd);
      if (error != EWOULDBLOCK) return FailedAt(path, "lock", error);
      return absl::UnavailableError(
          absl::StrCat(path,
                       " is being written by another build; wait for it, "
                       "or stop it"));
    }
    struct stat mine = {}, there = {};
    const bool known = ::fstat(fd, &mine) == 0 &&
                       (::stat(path.c_str(), &there) == 0 || errno == ENOENT);
    if (!known) {
      const int error = errno;
      ::close(fd);
      return FailedAt(path, "stat", error);
    }
    // Zeros, of no file, if it is gone.
    if (mine.st_ino == there.st_ino && mine.st_dev == there.st_dev) return fd;
    ::close(fd);
  }
}

absl::Status ReadAt(int fd, const std::string& path, uint64_t at,
                    std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n =
        ::pread(fd, out.data(), out.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailedAt(path, "read", errno);
    if (n == 0) return absl::DataLossError(absl::StrCat(path, " was cut"));
    out = out.subspan(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

// Only an interrupted fsync is repeated: after an error the kernel may have
// dropped the unwritten pages, and report success the next time.
int SyncAgain(int fd) {
  int result = 0;
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result;
}

absl::Status SyncFolderOf(const std::string& path) {
  const std::string folder =
      (std::filesystem::path(path).parent_path() / ".").string();
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FailedAt(folder, "open folder", errno);
  const bool failed = SyncAgain(fd) != 0;
  const int error = errno;
  ::close(fd);
  return failed ? FailedAt(folder, "fsync", error) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageCacheWriter>> ImageCacheWriter::Open(
    const std::string& path, Contents contents) {
  GOSSAMER_RETURN_IF_ERROR(CheckSide(static_cast<uint64_t>(contents.side)));
  GOSSAMER_ASSIGN_OR_RETURN(const int fd, OpenLocked(path + ".partial"));
  std::unique_ptr<ImageCacheWriter> writer(
      new ImageCacheWriter(path, std::move(contents), fd));
  GOSSAMER_RETURN_IF_ERROR(writer->Begin());
  return writer;
}

ImageCacheWriter::ImageCacheWriter(std::string path, Contents contents, int fd)
    : path_(std::move(path)),
      partial_(path_ + ".partial"),
      contents_(std::move(contents)),
      fd_(fd),
      entries_(contents_.words.size()) {
  for (const std::string& name : contents_.class_names) {
    names_.append(name.c_str(), name.size() + 1);
  }
  header_ = {.side = static_cast<uint32_t>(contents_.side),
             .entries = entries_.size(),
             .classes = static_cast<uint32_t>(contents_.class_names.size()),
             .names_bytes = names_.size(),
             .source = contents_.source};
}

// The lock ends with the descriptor.
ImageCacheWriter::~ImageCacheWriter() { ::close(fd_); }

absl::Status ImageCacheWriter::Failed(const char* what, int error) const {
  return FailedAt(partial_, what, error);
}

absl::Status ImageCacheWriter::Begin() {
  struct stat info = {};
  if (::fstat(fd_, &info) != 0) return Failed("stat", errno);
  std::vector<std::byte> head(ImageCacheHeader::kBytes);
  const bool begun = static_cast<size_t>(info.st_size) >= head.size();
  if (begun) {
    GOSSAMER_RETURN_IF_ERROR(ReadAt(fd_, partial_, 0, head));
    // A build that ended before its header was on the disk leaves zeros.
    if (std::ranges::any_of(head,
                            [](std::byte b) { return b != std::byte{}; })) {
      const auto found = ImageCacheHeader::Parse(head);
      if (!found.ok()) {
        return absl::Status(
            found.status().code(),
            absl::StrCat(partial_, " ", found.status().message(),
                         "; remove it to begin anew"));
      }
      return Resume(*found);
    }
  }
  const absl::Status allocated = Allocate();
  if (!allocated.ok()) {
    // Nothing is in it that another build could go on with.
    std::remove(partial_.c_str());
    return allocated;
  }
  return WriteAt(0, header_.Encode());
}

absl::Status ImageCacheWriter::Resume(const ImageCacheHeader& found) {
  if (found.source != header_.source || found.entries != header_.entries ||
      found.side != header_.side || found.classes != header_.classes ||
      found.names_bytes != header_.names_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        partial_, " was begun from other pictures or settings (", found.entries,
        " files in ", found.classes, " classes, resolution ", found.side,
        ") than these (", header_.entries, " in ", header_.classes, ", ",
        header_.side,
        "): files were added, removed or renamed since, or the "
        "command is another; remove it to begin anew"));
  }
  GOSSAMER_RETURN_IF_ERROR(Allocate());
  // A build that ended just before its rename has left a finished header.
  GOSSAMER_RETURN_IF_ERROR(WriteAt(0, header_.Encode()));
  return ReadAt(fd_, partial_, ImageCacheHeader::kBytes,
                std::as_writable_bytes(std::span(entries_)));
}

absl::Status ImageCacheWriter::Allocate() const {
  const auto bytes = static_cast<off_t>(header_.file_bytes());
  int result = 0;
  do {
    result = ::fallocate(fd_, 0, 0, bytes);
  } while (result != 0 && errno == EINTR);
  // A file system without reservations may still be full later.
  if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
    result = ::ftruncate(fd_, bytes);
  }
  if (result == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(
      errno, absl::StrCat(partial_, ": no room for the ", header_.file_bytes(),
                          " bytes of ", header_.entries, " pictures"));
}

absl::Status ImageCacheWriter::WriteAt(uint64_t at,
                                       std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n =
        ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    // A write that takes nothing would be repeated for ever.
    if (n <= 0) return Failed("write", n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ImageCacheWriter::IsDone(size_t i,
                                              std::span<uint8_t> image) {
  if (entries_[i].word != (contents_.words[i] | kEntryDone)) return false;
  const auto bytes = std::as_writable_bytes(image);
  GOSSAMER_RETURN_IF_ERROR(ReadAt(
      fd_, partial_, header_.pixels_at() + i * header_.image_bytes(), bytes));
  return Crc32c(bytes) == entries_[i].crc;
}

absl::Status ImageCacheWriter::Keep(size_t i, std::span<const uint8_t> image) {
  const auto bytes = std::as_bytes(image);
  GOSSAMER_RETURN_IF_ERROR(
      WriteAt(header_.pixels_at() + i * header_.image_bytes(), bytes));
  entries_[i] = {contents_.words[i] | kEntryDone, Crc32c(bytes)};
  return WriteAt(ImageCacheHeader::kBytes + sizeof(ImageEntry) * i,
                 std::as_bytes(std::span(&entries_[i], 1)));
}

// The entry reaches the file at the end, so that a resumed build tries again.
void ImageCacheWriter::Refuse(size_t i) {
  entries_[i] = {contents_.words[i] | kEntryDone | kEntryRefused, 0};
}

absl::Status ImageCacheWriter::Publish() {
  const auto entries = std::as_bytes(std::span(entries_));
  const auto names = std::as_bytes(std::span(names_));
  GOSSAMER_RETURN_IF_ERROR(WriteAt(ImageCacheHeader::kBytes, entries));
  GOSSAMER_RETURN_IF_ERROR(WriteAt(header_.names_at(), names));
  // The pixels are durable before the header says that they are there.
  if (SyncAgain(fd_) != 0) return Failed("fsync", errno);
  header_.entries_crc = Crc32c(entries);
  header_.names_crc = Crc32c(names);
  header_.finished = true;
  GOSSAMER_RETURN_IF_ERROR(WriteAt(0, header_.Encode()));
  if (SyncAgain(fd_) != 0) return Failed("fsync", errno);
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) {
    return Failed("rename", errno);
  }
  return SyncFolderOf(path_);
}

}  // namespace gossamer
