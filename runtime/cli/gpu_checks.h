// Checks what a machine has for peers on GPUs, and what it lacks.
//
// CheckGpu judges only its argument; neither function changes anything.  A
// machine without a GPU is fit: its peers train on the CPU.

#ifndef GOSSAMER_RUNTIME_CLI_GPU_CHECKS_H_
#define GOSSAMER_RUNTIME_CLI_GPU_CHECKS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/kernels/device_calls.h"
#include "runtime/cli/machine_checks.h"

namespace gossamer {

struct GpuFacts {
  int on_bus = 0;           // NVIDIA's GPUs that the kernel sees
  std::string driver = "";  // the driver's version; empty: not loaded
  // Of libgossamer_cuda.so, and, if it opens, of the driver and the GPUs.
  absl::Status library, cuda;
  std::vector<DeviceFacts> gpus = {};
  // Pairs of GPUs of which one cannot read the other's memory by itself.
  std::vector<std::pair<int, int>> apart = {};
  // Looked for only where there are GPUs.
  absl::Status torch;
  absl::StatusOr<std::string> nccl = "";
};
GpuFacts ReadGpuFacts();

// Returns "gpu", and where there is one "cuda"; where CUDA works also "torch
// cuda", "nccl", and of several "peer access".
std::vector<CheckResult> CheckGpu(const GpuFacts& facts);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_GPU_CHECKS_H_
