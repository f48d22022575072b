// A GPU as NCCL's operations use it: a stream of its own, and memory that is
// used again, since taking memory from the driver stops the device.
//
// This header knows nothing of NCCL, and of CUDA only the table of its calls.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_CUDA_NCCL_DEVICE_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_CUDA_NCCL_DEVICE_H_

#include <memory>
#include <utility>
#include <vector>

#include "algorithms/kernels/device_calls.h"
#include "runtime/transport/nccl/nccl_api.h"

namespace gossamer {

// All calls are made on one thread.  Memory of it may outlive it.
class CudaNcclDevice final : public NcclDevice {
 public:
  // `calls` are there for good.  kUnavailable: the device's reason.
  static absl::StatusOr<std::unique_ptr<CudaNcclDevice>> Open(
      const DeviceCalls& calls, int index);
  ~CudaNcclDevice() override;

  void* stream() override;
  absl::Status Use() override;
  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) override;
  absl::StatusOr<std::shared_ptr<std::byte[]>> AllocateHost(
      size_t bytes) override;
  absl::Status CopyIn(void* to, std::span<const std::byte> from) override;
  absl::Status CopyOut(std::span<std::byte> to, const void* from) override;
  absl::StatusOr<bool> Idle() override;

 private:
  struct Memory;
  explicit CudaNcclDevice(std::shared_ptr<Memory> memory)
      : memory_(std::move(memory)) {}
  absl::Status Check(const char* what, const char* why) const;
  absl::Status Enqueue(void* to, const void* from, size_t bytes);

  const std::shared_ptr<Memory> memory_;
  // Copies of bodies for the device's reads, until the stream has been idle.
  std::vector<std::shared_ptr<std::byte[]>> staged_;
  // The end of the copies that Idle() was last asked about; null: of none.
  DeviceEvent* end_ = nullptr;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_CUDA_NCCL_DEVICE_H_
