// NCCL itself: libnccl.so.2, opened at run time, so that programs need neither
// NCCL nor CUDA to be built or to run without a GPU.
//
// Works with NCCL 2.14 and later.  This header knows nothing of peers or of the
// device.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_LIBRARY_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_LIBRARY_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
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
  NcclResult CommGetAsyncError(NcclComm comm, NcclResult* error) override;
  NcclResult GroupStart() override;
  NcclResult GroupEnd() override;
  NcclResult Send(const void* from, size_t bytes, int rank, NcclComm comm,
                  void* stream) override;
  NcclResult Recv(void* to, size_t bytes, int rank, NcclComm comm,
                  void* stream) override;
  NcclResult AllReduce(const float* from, float* to, size_t count,
                       NcclComm comm, void* stream) override;
  void CommAbort(NcclComm comm, std::shared_ptr<void> buffers) override;

 private:
  struct Functions;
  NcclLibrary(std::shared_ptr<void> library,
              std::unique_ptr<Functions> functions, int version);

  const std::shared_ptr<void> library_;
  const std::unique_ptr<const Functions> functions_;
  const int version_;
  std::vector<std::thread> aborts_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_LIBRARY_H_
