#include "runtime/telemetry/jsonl_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/telemetry/metrics_log.h"

namespace gossamer {
namespace {

// A crash can take this many bytes, or the lines of a second.
constexpr size_t kMaxBuffered = 64 << 10;
constexpr absl::Duration kFlushEvery = absl::Seconds(1);

absl::Status Failed(const std::string& path, const char* what, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

// Returns the offset after the last end of line, or 0; -1 and errno on an
// error.
int64_t EndOfLastLine(int fd, int64_t size) {
  char block[4096];
  while (size > 0) {
    const int64_t begin = std::max<int64_t>(0, size - sizeof(block));
    const ssize_t n = ::pread(fd, block, size - begin, begin);
    if (n <= 0) return -1;
    for (ssize_t i = n; i > 0; --i) {
      if (block[i - 1] == '\n') return begin + i;
    }
    size = begin;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineFile>> LineFile::Open(
    const std::string& path, LogLimit limit) {
  // The file is read as well: the end of its last line is looked for.
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Failed(path, "open", errno);
  struct stat info;
  int64_t size = -1;
  if (::fstat(fd, &info) == 0) size = EndOfLastLine(fd, info.st_size);
  // A line that a crash cut off would run into the next one.
  if (size < 0 || ::ftruncate(fd, size) != 0) {
    const absl::Status status = Failed(path, "find the last line", errno);
    ::close(fd);
    return status;
  }
  return std::unique_ptr<LineFile>(new LineFile(path, limit, fd, size));
}

LineFile::~LineFile() {
  Flush().IgnoreError();
  ::close(fd_);
}

void LineFile::Add(std::string_view line) {
  buffer_.append(line);
  buffer_.push_back('\n');
}

absl::Status LineFile::StartFile() {
  // The rename comes first, so that a crash between the two loses no line.
  const std::string before = path_ + ".1";
  if (::rename(path_.c_str(), before.c_str()) != 0) {
    return Failed(path_, "rename", errno);
  }
  const int fd =
      ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    const absl::Status status = Failed(path_, "open", errno);
    // The open descriptor still writes to the old file, which gets its name
    // back.
    ::rename(before.c_str(), path_.c_str());
    return status;
  }
  ::close(std::exchange(fd_, fd));
  size_ = 0;
  return absl::OkStatus();
}

absl::Status LineFile::Flush() {
  if (buffer_.empty()) return absl::OkStatus();
  // Half of the limit is for this file, half for the one before it.
  if (limit_ != 0 && size_ > 0 &&
      static_cast<uint64_t>(size_) + buffer_.size() > limit_ / 2) {
    // Without room for a new file the old one is written on.
    StartFile().IgnoreError();
  }
  const std::string lines = std::exchange(buffer_, {});
  for (size_t done = 0; done < lines.size();) {
    // The place is given: after a failed write the file goes on where it was
    // cut.
    const ssize_t n = ::pwrite(fd_, lines.data() + done, lines.size() - done,
                               size_ + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : EIO;
      // A half-written line would make the file unreadable, so it is cut off.
      if (::ftruncate(fd_, size_) != 0) return Failed(path_, "cut", errno);
      return Failed(path_, "write", error);
    }
    done += static_cast<size_t>(n);
  }
  size_ += static_cast<int64_t>(lines.size());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<JsonlSink>> JsonlSink::Open(
    const std::string& folder, Report report, LogLimit limit) {
  GOSSAMER_ASSIGN_OR_RETURN(auto metrics,
                            LineFile::Open(folder + "/metrics.jsonl", limit));
  GOSSAMER_ASSIGN_OR_RETURN(auto events,
                            LineFile::Open(folder + "/events.jsonl", limit));
  return std::unique_ptr<JsonlSink>(
      new JsonlSink(std::move(metrics), std::move(events), std::move(report)));
}

void JsonlSink::OnRound(const RoundMetrics& metrics) {
  metrics_->Add(ToJsonLine(metrics));
  if (metrics.finished - flushed_ >= kFlushEvery ||
      metrics_->buffered() >= kMaxBuffered) {
    flushed_ = metrics.finished;
    Flush();
  }
}

// An event may be the last thing that a process logs, so it is written at once.
void JsonlSink::OnEvent(const Event& event) {
  events_->Add(ToJsonLine(event));
  Flush();
}

void JsonlSink::Flush() {
  absl::Status status = metrics_->Flush();
  status.Update(events_->Flush());
  // Each time that writing begins to fail is reported once.
  if (!status.ok() && !failing_ && report_) report_(status);
  failing_ = !status.ok();
}

}  // namespace gossamer
