// The device that a configuration asks for, as text, and the one that it gets.
//
// This header knows nothing of kernels or peers.

#ifndef GOSSAMER_RUNTIME_DEVICE_DEVICE_REQUEST_H_
#define GOSSAMER_RUNTIME_DEVICE_DEVICE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "algorithms/kernels/cuda/library.h"
#include "algorithms/kernels/device_span.h"

namespace gossamer {

struct DeviceRequest {
  enum Kind { kAuto, kCpu, kCuda };
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;

  Kind kind = kCpu;
  std::optional<int> index = {};  // of kCuda; nullopt: whichever
};

// The texts of requests.
inline constexpr std::string_view kDeviceRequests = "auto, cpu, cuda, cuda:N";

// kInvalidArgument says what may be written.
absl::StatusOr<DeviceRequest> ParseDeviceRequest(std::string_view text);

struct ChosenDevice {
  Device device = {};
  const CudaLibrary* library = nullptr;
};

// `open` gives the library.  Without an index it is the GPU of number `ordinal`
// modulo their number, so that programs of one machine with ordinals of their
// own are spread over all.  kFailedPrecondition: what is missing and what to
// do.
absl::StatusOr<ChosenDevice> ChooseDevice(
    std::optional<int> index, uint64_t ordinal,
    absl::FunctionRef<absl::StatusOr<const CudaLibrary*>()> open);

// kFailedPrecondition unless the driver is there and new enough and has a GPU
// of this number.
absl::Status CheckCudaDevice(const DeviceCalls& calls, int index);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DEVICE_DEVICE_REQUEST_H_
