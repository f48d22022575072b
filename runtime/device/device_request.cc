#include "runtime/device/device_request.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

constexpr int kMaxDevices = 1024;

// "13.0" of CUDA's 13000.
std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

absl::StatusOr<DeviceRequest> ParseDeviceRequest(std::string_view text) {
  if (text == "auto") return DeviceRequest{DeviceRequest::kAuto};
  if (text == "cpu") return DeviceRequest{DeviceRequest::kCpu};
  if (text == "cuda") return DeviceRequest{DeviceRequest::kCuda};
  constexpr std::string_view kPrefix = "cuda:";
  int index = 0;
  if (text.starts_with(kPrefix)) {
    const std::string number(text.substr(kPrefix.size()));
    if (absl::SimpleAtoi(number, &index) && index >= 0 && index < kMaxDevices &&
        absl::StrCat(index) == number) {
      return DeviceRequest{DeviceRequest::kCuda, index};
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("is \"", std::string(text),
                   "\"; write auto, cpu, cuda, or cuda:N with the number of a "
                   "GPU from 0 on"));
}

absl::Status CheckCudaDevice(const DeviceCalls& calls, int index) {
  int driver = 0, build = 0;
  const char* error = calls.versions(&driver, &build);
  if (error != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver does not answer: ", error,
                     "; see dmesg and nvidia-smi"));
  }
  if (driver == 0) {
    return absl::FailedPreconditionError(
        "there is no NVIDIA driver (libcuda.so.1); install one, or in a "
        "container let the GPUs in");
  }
  // A driver runs all programs of its CUDA's major version, but for GPUs that
  // are newer than the build: these need a driver that compiles for them.
  if (driver / 1000 < build / 1000) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver knows CUDA ", VersionText(driver),
                     ", and this build is of ", VersionText(build),
                     "; install a newer driver, or build with an older CUDA"));
  }
  int devices = 0;
  error = calls.count(&devices);
  if (error != nullptr || devices == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the driver has no GPU", error != nullptr ? ": " : "",
        error != nullptr ? error : "", "; CUDA_VISIBLE_DEVICES may hide it"));
  }
  if (index >= devices) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuda:", index, " is not there; this machine has ",
                     devices, ", the last is cuda:", devices - 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<ChosenDevice> ChooseDevice(
    std::optional<int> index, uint64_t ordinal,
    absl::FunctionRef<absl::StatusOr<const CudaLibrary*>()> open) {
  GOSSAMER_ASSIGN_OR_RETURN(const CudaLibrary* const library, open());
  const DeviceCalls& calls = *library->calls;
  GOSSAMER_RETURN_IF_ERROR(CheckCudaDevice(calls, index.value_or(0)));
  if (!index) {
    int devices = 1;
    calls.count(&devices);  // it has answered before
    index = static_cast<int>(ordinal % static_cast<uint64_t>(devices));
  }
  return ChosenDevice{{Device::kCuda, *index}, library};
}

}  // namespace gossamer
