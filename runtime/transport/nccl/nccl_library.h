// NCCL itself: libnccl.so.2, opened at run time, so that programs need neither
// NCCL nor CUDA to be built or to run without a GPU.
//
// Works with NCCL 2.14 and later.  A thread of its own aborts communicators
// that nobody watches any more.  This header knows nothing of peers or of the
// device.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_LIBRARY_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_LIBRARY_H_

#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"
#include "runtime/transport/nccl/nccl_api.h"

namespace gossamer {

class NcclLibrary final : public NcclApi {
 public:
  static constexpr char kName[] = "libnccl.so.2";
  // kUnavailable says which library or which function of it is missing, and
  // where it comes from.
  static absl::StatusOr<std::unique_ptr<NcclLibrary>> Open(
      const std::string& path = kName);
  // Waits for communicators that are being aborted.
  ~NcclLibrary() override;

  int version() const override { return version_; }
  std::string TextOf(NcclResult result) const override;
  NcclResult GetUniqueId(NcclUniqueId* id) override;
  NcclResult CommInitRank(NcclComm* comm, int ranks, const NcclUniqueId& id,
                          int rank) override;
  NcclResult CommGetAsyncError(NcclComm comm, NcclResult* error) override
      ABSL_LOCKS_EXCLUDED(mu_);
  NcclResult GroupStart() override;
  NcclResult GroupEnd() override;
  NcclResult Send(const void* from, size_t bytes, int rank, NcclComm comm,
                  void* stream) override;
  NcclResult Recv(void* to, size_t bytes, int rank, NcclComm comm,
                  void* stream) override;
  NcclResult AllReduce(const float* from, float* to, size_t count,
                       NcclComm comm, void* stream) override;
  NcclResult Watch(NcclComm comm, absl::Duration patience) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void CommAbort(NcclComm comm, std::shared_ptr<void> buffers) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Functions;
  // An NcclComm of this object points to one.
  struct Communicator;
  NcclLibrary(std::shared_ptr<void> library,
              std::unique_ptr<Functions> functions, int version);

  static NcclComm RealOf(NcclComm comm);
  void Abort(const std::shared_ptr<Communicator>& comm)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunWatchdog() ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<void> library_;
  const std::unique_ptr<const Functions> functions_;
  const int version_;
  Mutex mu_;
  CondVar changed_;
  std::map<NcclComm, std::shared_ptr<Communicator>> comms_ ABSL_GUARDED_BY(mu_);
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::future<void>> aborts_ ABSL_GUARDED_BY(mu_);
  std::thread watchdog_;  // runs from the first Watch on
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_LIBRARY_H_
