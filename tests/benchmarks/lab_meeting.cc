#include "tests/benchmarks/lab_meeting.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

// Time from the last arrival to the start; the other ranks look several times
// within it.
constexpr int64_t kNotice = 2'000'000;

}  // namespace

LabMeeting::~LabMeeting() {
  if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
}

absl::Status LabMeeting::Join(const std::string& path) {
  if (size_ > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", kMaxRanks, " hosts can meet"));
  }
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  void* at = MAP_FAILED;
  if (ftruncate(fd, sizeof(Shared)) == 0) {
    at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
              0);
  }
  const int error = errno;
  close(fd);
  if (at == MAP_FAILED) return absl::ErrnoToStatus(error, path);
  shared_ = static_cast<Shared*>(at);
  return absl::OkStatus();
}

void LabMeeting::Arrive() { shared_->arrived[rank_] = ++barrier_; }

int64_t LabMeeting::Start() {
  if (rank_ == 0 && shared_->opened < barrier_) {
    for (int r = 0; r < size_; ++r) {
      if (shared_->arrived[r] < barrier_) return 0;
    }
    shared_->start = NowNanos() + kNotice;
    shared_->opened = barrier_;
  }
  return shared_->opened >= barrier_ ? shared_->start.load() : 0;
}

void LabMeeting::Write(int row, double value) {
  shared_->rows[row][rank_] = value;
}

std::span<const double> LabMeeting::Row(int row) const {
  return std::span(shared_->rows[row]).first(static_cast<size_t>(size_));
}

int64_t LabMeeting::NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace gossamer
