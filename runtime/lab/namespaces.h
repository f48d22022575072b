// Namespaces that vanish with this process, however it ends: networks for
// hosts, and a process namespace whose members die together.
//
// They have no names in the file system, so there is nothing to remove.  This
// header knows nothing of devices, addresses or the processes.

#ifndef GOSSAMER_RUNTIME_LAB_NAMESPACES_H_
#define GOSSAMER_RUNTIME_LAB_NAMESPACES_H_

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "runtime/base/file_descriptor.h"

namespace gossamer {

// Makes a network without devices but `lo`, which is down.  It lasts as long as
// its descriptor, a process in it or a device's descriptor.  The calling thread
// stays in its own network. kPermissionDenied says what is needed.
absl::StatusOr<FileDescriptor> MakeNetwork();

// While this lives, the calling thread and the threads that it starts are in
// that network.
class ScopedNetwork {
 public:
  static absl::StatusOr<ScopedNetwork> Enter(int network);
  ~ScopedNetwork();
  ScopedNetwork(ScopedNetwork&&) noexcept = default;
  ScopedNetwork& operator=(ScopedNetwork&&) = delete;

 private:
  explicit ScopedNetwork(FileDescriptor before) : before_(std::move(before)) {}
  FileDescriptor before_;
};

// A process namespace.  All processes in it, and all that they start, are
// killed when this ends or this process dies.  They see only each other.
class ProcessNamespace {
 public:
  static absl::StatusOr<ProcessNamespace> Make();
  // Returns when no process in it runs any more.  Children of this process in
  // it are killed too.  Their parent should have waited for them before, or
  // this takes ten seconds.
  ~ProcessNamespace();
  ProcessNamespace(ProcessNamespace&&) noexcept;
  ProcessNamespace& operator=(ProcessNamespace&&) = delete;

  // A descriptor for setns() before fork().
  int get() const { return fd_.get(); }

 private:
  ProcessNamespace(pid_t init, FileDescriptor lifeline, FileDescriptor fd)
      : init_(init), lifeline_(std::move(lifeline)), fd_(std::move(fd)) {}

  pid_t init_;  // -1: moved from
  FileDescriptor lifeline_;
  FileDescriptor fd_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_NAMESPACES_H_
