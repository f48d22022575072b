// The functions of NCCL that this runtime calls, as an interface.
//
// The real one is opened at run time (nccl_library.h); tests have one in
// virtual time with faults.  Pointers and streams are plain, so memory of any
// device fits.  This header knows nothing of peers, frames or rounds.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_API_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_API_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gossamer {

// The numbers of nccl.h, and one more.
enum class NcclResult : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kAborted = 1000  // none of NCCL's: by NcclApi::Watch
};

// ncclComm_t.
using NcclComm = void*;
// ncclUniqueId: one rank makes it, all ranks of a communicator need it.
using NcclUniqueId = std::array<std::byte, 128>;

// Each function is that of nccl.h by the same name.  Communicators are
// non-blocking: a call may answer kInProgress, and CommGetAsyncError says when
// it is over.  All calls are made on one thread.
class NcclApi {
 public:
  virtual ~NcclApi() = default;
  // As ncclGetVersion has it: 22809 is 2.28.9.
  virtual int version() const = 0;
  // The words of an error.
  virtual std::string TextOf(NcclResult result) const = 0;
  virtual NcclResult GetUniqueId(NcclUniqueId* id) = 0;
  virtual NcclResult CommInitRank(NcclComm* comm, int ranks,
                                  const NcclUniqueId& id, int rank) = 0;
  virtual NcclResult CommGetAsyncError(NcclComm comm, NcclResult* error) = 0;
  virtual NcclResult GroupStart() = 0;
  virtual NcclResult GroupEnd() = 0;
  virtual NcclResult Send(const void* from, size_t bytes, int rank,
                          NcclComm comm, void* stream) = 0;
  virtual NcclResult Recv(void* to, size_t bytes, int rank, NcclComm comm,
                          void* stream) = 0;
  // The sum over all ranks of `count` floats.
  virtual NcclResult AllReduce(const float* from, float* to, size_t count,
                               NcclComm comm, void* stream) = 0;
  // The communicator is aborted if `patience` passes before the next call of
  // this for it: the thread of all calls is held up then, as in a call of CUDA
  // that waits for the operation that hangs.  Returns kAborted from then on, as
  // does CommGetAsyncError, and CommAbort is the only other call that may
  // follow.  InfiniteDuration(): it is not watched any more.
  virtual NcclResult Watch(NcclComm comm, absl::Duration patience) = 0;
  // Ends the communicator and what is under way on it, without waiting.
  // `buffers` live until nothing of it can touch them.
  virtual void CommAbort(NcclComm comm, std::shared_ptr<void> buffers) = 0;
};

// Memory of the device that a peer's operations run on, and their one stream.
// Copies are enqueued on the stream, and no call waits for it.
class NcclDevice {
 public:
  virtual ~NcclDevice() = default;
  virtual void* stream() = 0;
  // Makes it the device of the calling thread, on which NCCL makes
  // communicators.
  virtual absl::Status Use() = 0;
  // kResourceExhausted if the device, or the host, has no room.  Both may be
  // given back on any thread.
  virtual absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) = 0;
  virtual absl::StatusOr<std::shared_ptr<std::byte[]>> AllocateHost(
      size_t bytes) = 0;
  // From any memory of the host, which stays as it is until Idle(); to memory
  // of AllocateHost.
  virtual absl::Status CopyIn(void* to, std::span<const std::byte> from) = 0;
  virtual absl::Status CopyOut(std::span<std::byte> to, const void* from) = 0;
  // True if all that was enqueued has run; an error of the device otherwise.
  virtual absl::StatusOr<bool> Idle() = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_API_H_
