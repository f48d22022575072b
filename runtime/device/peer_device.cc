#include "runtime/device/peer_device.h"

#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "runtime/device/device_request.h"
#include "runtime/transport/nccl/cuda_nccl_device.h"
#include "runtime/transport/nccl/nccl_library.h"
#include "runtime/transport/nccl/nccl_plan.h"

namespace gossamer {
namespace {

// The same for all processes of a machine, of its containers, too, and of no
// other machine.  NCCL lets its user say what a machine is; processes that it
// is told to keep apart are apart here, too.
std::string MachineId() {
  if (const char* const told = std::getenv("NCCL_HOSTID");
      told != nullptr && *told != '\0') {
    return absl::StrCat(absl::Hex(RngKey(0).Fold(told).Bits(0)));
  }
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id.empty() ? "machine" : id;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclApi>> OpenNcclApi() {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string path, FindNccl());
  return NcclLibrary::Open(path);
}

absl::StatusOr<std::unique_ptr<PeerDevice>> PeerDevice::Open(
    const PeerDeviceOptions& options) {
  std::unique_ptr<PeerDevice> made(new PeerDevice);
  made->of_program_ = options.of_program;
  GOSSAMER_RETURN_IF_ERROR(made->OpenQueue(options));
  GOSSAMER_RETURN_IF_ERROR(made->OpenNccl(options));
  return made;
}

absl::Status PeerDevice::OpenQueue(const PeerDeviceOptions& options) {
  absl::StatusOr<DeviceRequest> request = ParseDeviceRequest(options.device);
  if (!request.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("resources.device ", request.status().message()));
  }
  if (request->kind == DeviceRequest::kCpu) {
    why_on_host_ = "resources.device is cpu";
    return absl::OkStatus();
  }
  const auto open = [&]() -> absl::Status {
    if (!options.why_on_host.empty()) {
      return absl::FailedPreconditionError(options.why_on_host);
    }
    GOSSAMER_ASSIGN_OR_RETURN(const ChosenDevice chosen,
                              ChooseDevice(request->index, options.ordinal,
                                           [&] { return options.cuda(); }));
    const CudaLibrary& library = *chosen.library;
    // Before the first question to torch (cuda_library.h).
    GOSSAMER_RETURN_IF_ERROR(options.torch());
    GOSSAMER_ASSIGN_OR_RETURN(
        queue_,
        DeviceQueue::Open(*library.kernels, *library.calls, chosen.device));
    library_ = &library;
    return absl::OkStatus();
  };
  const absl::Status opened = open();
  if (opened.ok()) return absl::OkStatus();
  if (request->kind == DeviceRequest::kCuda) {
    return absl::InvalidArgumentError(absl::StrCat(
        "resources.device is ", options.device, ", but ", opened.message(),
        options.of_program ? "" : "; or set resources.device=cpu"));
  }
  why_on_host_ = std::string(opened.message());
  notes_.push_back(absl::StrCat("device: the CPU, since ", why_on_host_));
  return absl::OkStatus();
}

absl::Status PeerDevice::Explain(const absl::Status& status) const {
  const absl::Status device = queue_.status();
  if (status.ok() || device.ok()) return status;
  std::string message(status.message());
  // The peer may have noticed by zeros that the device gave.
  if (!absl::StrContains(message, device.message())) {
    absl::StrAppend(&message, " (", device.message(), ")");
  }
  if (absl::IsResourceExhausted(device)) {
    absl::StrAppend(
        &message, "; ",
        of_program_
            ? "join with device=\"cpu\", which mixes in the host's memory"
            : "lower game.gan.batch or game.gan.width",
        ", bound the replicas by mixing.replica_memory_mb, or take a GPU with "
        "more memory");
  } else {
    absl::StrAppend(&message,
                    "; its checkpoints can be resumed on another device: "
                    "--resume with ",
                    of_program_ ? "a program whose parameters lie there"
                                : "--set resources.device=cpu");
  }
  return absl::Status(device.code(), message);
}

absl::Status PeerDevice::OpenNccl(const PeerDeviceOptions& options) {
  const bool demanded = options.transport == "nccl";
  if (library_ == nullptr) {
    if (!demanded) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "transport is nccl, which joins GPUs, but this peer is on the CPU: ",
        why_on_host_, "; or set transport=auto"));
  }
  const DeviceCalls& calls = *library_->calls;
  const int index = queue_.device().index;
  DeviceFacts facts;
  if (const char* why = calls.describe(index, &facts)) {
    return absl::UnavailableError(absl::StrCat("cuda:", index, ": ", why));
  }
  notes_.push_back(absl::StrFormat(
      "device: cuda:%d, %s at %s, %.1f of %.1f GB free", index, facts.name,
      facts.address, static_cast<double>(facts.free) / 1e9,
      static_cast<double>(facts.memory) / 1e9));
  // Without a version the place is for people alone (NcclPlace::Parse).
  NcclPlace place = {MachineId(), facts.address, 0};
  // An address on a bus is unique within a machine.
  if (!options.fabric.empty()) {
    place = {options.fabric, absl::StrCat(place.fabric, "-", place.gpu), 0};
  }
  if (options.transport != "grpc") {
    absl::StatusOr<std::unique_ptr<NcclApi>> nccl = options.nccl();
    auto device = CudaNcclDevice::Open(calls, index);
    const absl::Status opened = nccl.ok() ? device.status() : nccl.status();
    if (opened.ok()) {
      nccl_ = *std::move(nccl);
      nccl_device_ = *std::move(device);
      place.version = nccl_->version();
    } else if (demanded) {
      return absl::InvalidArgumentError(
          absl::StrCat("transport is nccl, but ", opened.message(),
                       "; or set transport=auto"));
    } else {
      notes_.push_back(
          absl::StrCat("transport: gRPC alone, since ", opened.message()));
    }
  }
  place_ = place.Text();
  return absl::OkStatus();
}

}  // namespace gossamer
