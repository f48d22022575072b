// The device of one peer, opened before its game is made, with what NCCL needs
// of it.
//
// This header knows nothing of games or of what travels.

#ifndef GOSSAMER_RUNTIME_DEVICE_PEER_DEVICE_H_
#define GOSSAMER_RUNTIME_DEVICE_PEER_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/kernels/device_queue.h"
#include "runtime/device/cuda_library.h"
#include "runtime/transport/nccl/nccl_api.h"

namespace gossamer {

// NCCL of this machine, for one peer.
absl::StatusOr<std::unique_ptr<NcclApi>> OpenNcclApi();

struct PeerDeviceOptions {
  std::string device = "cpu";      // resources.device
  std::string transport = "auto";  // transport
  std::string fabric = {};         // resources.fabric
  // By which the peers of a machine are spread over its GPUs (ChooseDevice).
  uint64_t ordinal = 0;
  // The parameters are a program's own, which has the device of its choice.
  bool of_program = false;
  // Why the run computes on the CPU whatever the machine has; or empty.
  std::string why_on_host = {};
  // Open the libraries; each is called only if it is needed.
  std::function<absl::StatusOr<const CudaLibrary*>()> cuda = OpenCudaLibrary;
  std::function<absl::Status()> torch = OpenTorchCuda;
  std::function<absl::StatusOr<std::unique_ptr<NcclApi>>()> nccl = OpenNcclApi;
};

class PeerDevice {
 public:
  // kInvalidArgument if the device or the transport is demanded and cannot be
  // had: what is missing, and what to write instead.
  static absl::StatusOr<std::unique_ptr<PeerDevice>> Open(
      const PeerDeviceOptions& options);

  // On which the peer computes.
  const DeviceQueue& queue() const { return queue_; }
  // Both null unless the peer's bodies may travel by NCCL.
  NcclApi* nccl() const { return nccl_.get(); }
  NcclDevice* nccl_device() const { return nccl_device_.get(); }
  // The device as a view has it (Member::device); empty: host memory.
  const std::string& place() const { return place_; }
  // Lines for the peer's log: the device, and why a choice fell on the CPU or
  // on gRPC.
  const std::vector<std::string>& notes() const { return notes_; }
  // The error of a peer whose device has failed, with the device's reason and
  // what to do; other statuses as they are.
  absl::Status Explain(const absl::Status& status) const;

 private:
  PeerDevice() = default;
  absl::Status OpenQueue(const PeerDeviceOptions& options);
  absl::Status OpenNccl(const PeerDeviceOptions& options);

  const CudaLibrary* library_ = nullptr;  // null on the host
  bool of_program_ = false;
  std::string why_on_host_;  // empty on a device
  DeviceQueue queue_ = DeviceQueue::Host();
  std::string place_;
  std::vector<std::string> notes_;
  // The end of NCCL waits for aborted communicators, which use the device.
  std::unique_ptr<NcclDevice> nccl_device_;
  std::unique_ptr<NcclApi> nccl_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DEVICE_PEER_DEVICE_H_
