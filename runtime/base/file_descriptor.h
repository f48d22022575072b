// A file descriptor with an owner.
//
// The owner knows nothing of what the descriptor is of.

#ifndef GOSSAMER_RUNTIME_BASE_FILE_DESCRIPTOR_H_
#define GOSSAMER_RUNTIME_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace gossamer {

// Owns a file descriptor; -1: none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  // The caller has to close it.
  int Release() { return std::exchange(fd_, -1); }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_FILE_DESCRIPTOR_H_
