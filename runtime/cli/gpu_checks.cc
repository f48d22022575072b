#include "runtime/cli/gpu_checks.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/device/cuda_library.h"
#include "runtime/device/device_request.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

// The first word of a small file of /sys; empty if there is none.
std::string WordOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

int GpusOnBus() {
  int found = 0;
  std::error_code error;
  for (const auto& device :
       std::filesystem::directory_iterator("/sys/bus/pci/devices", error)) {
    // NVIDIA's number; display controllers are of class 03.
    found += WordOf(device.path() / "vendor") == "0x10de" &&
             absl::StartsWith(WordOf(device.path() / "class"), "0x03");
  }
  return found;
}

// "580.65.06" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06 …".
std::string DriverVersion() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word.find_first_not_of("0123456789.") == std::string::npos) return word;
  }
  return line;
}

void ReadDevices(const DeviceCalls& calls, GpuFacts& facts) {
  int devices = 0;
  if (calls.count(&devices) != nullptr) return;
  for (int i = 0; i < devices; ++i) {
    DeviceFacts gpu;
    if (const char* error = calls.describe(i, &gpu)) {
      facts.cuda = absl::FailedPreconditionError(
          absl::StrCat("cuda:", i, " does not answer: ", error));
      return;
    }
    facts.gpus.push_back(gpu);
    for (int j = 0; j < i; ++j) {
      bool there = false, back = false;
      calls.can_reach(i, j, &there);
      calls.can_reach(j, i, &back);
      if (!there || !back) facts.apart.emplace_back(j, i);
    }
  }
}

CheckResult Gpu(const GpuFacts& facts) {
  CheckResult r{
      .name = "gpu",
      .why = "a GPU computes a network's gradients many times faster"};
  if (facts.on_bus == 0 && facts.driver.empty() && facts.gpus.empty()) {
    r.found = "none: peers train on the CPU";
    return r;
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < facts.gpus.size(); ++i) {
    const DeviceFacts& gpu = facts.gpus[i];
    parts.push_back(
        absl::StrCat("cuda:", i, " ", gpu.name, " (", gpu.major, ".", gpu.minor,
                     "), ", HumanBytes(static_cast<double>(gpu.free)),
                     " free of ", HumanBytes(static_cast<double>(gpu.memory))));
  }
  if (parts.empty()) parts.push_back(absl::StrCat(facts.on_bus, " on the bus"));
  parts.push_back(facts.driver.empty() ? "no driver is loaded"
                                       : absl::StrCat("driver ", facts.driver));
  r.found = absl::StrJoin(parts, "; ");
  if (facts.driver.empty() && facts.gpus.empty()) {
    r.level = CheckLevel::kWarn;
    r.advice = "install NVIDIA's driver, 580 or later, to train on the GPU";
  }
  return r;
}

CheckResult Cuda(const GpuFacts& facts) {
  CheckResult r{.name = "cuda",
                .why =
                    "the kernels of peers on GPUs are in a library of their "
                    "own, which needs the driver"};
  if (facts.library.ok() && facts.cuda.ok()) {
    r.found =
        "libgossamer_cuda.so opens and finds the GPUs: --set "
        "resources.device=cuda trains on them";
    return r;
  }
  r.level = CheckLevel::kWarn;
  r.found =
      std::string((facts.library.ok() ? facts.cuda : facts.library).message());
  r.advice = facts.library.ok()
                 ? "until then peers train on the CPU"
                 : "deploy/setup.sh --for cuda, then cmake --preset cuda and "
                   "cmake --build --preset cuda";
  return r;
}

// Of a library that only GPUs need: `found` if it opens, else why it does not.
CheckResult Library(CheckResult r, const absl::Status& opens,
                    std::string_view advice) {
  if (opens.ok()) return r;
  r.level = CheckLevel::kWarn;
  r.found = std::string(opens.message());
  r.advice = std::string(advice);
  return r;
}

CheckResult TorchCuda(const GpuFacts& facts) {
  return Library({.name = "torch cuda",
                  .found = "opens",
                  .why = "networks on a GPU need torch's CUDA half and CUDA's "
                         "libraries"},
                 facts.torch, "deploy/setup.sh --for cuda");
}

CheckResult Nccl(const GpuFacts& facts) {
  return Library(
      {.name = "nccl",
       .found = absl::StrCat("NCCL ", facts.nccl.value_or("")),
       .why = "peers whose GPUs share a machine or a fast fabric exchange "
              "through it; all need one version"},
      facts.nccl.status(),
      "deploy/setup.sh --for cuda; without it all edges use gRPC");
}

CheckResult PeerAccess(const GpuFacts& facts) {
  CheckResult r{.name = "peer access",
                .why =
                    "GPUs that read each other's memory exchange without a "
                    "copy through the host"};
  if (facts.apart.empty()) {
    r.found = "every GPU reaches every other";
    return r;
  }
  std::vector<std::string> pairs;
  for (const auto& [a, b] : facts.apart) {
    pairs.push_back(absl::StrCat(a, "-", b));
  }
  r.level = CheckLevel::kWarn;
  r.found = absl::StrCat("not between cuda:", absl::StrJoin(pairs, ", cuda:"));
  r.advice =
      "look at nvidia-smi topo -m; an IOMMU, or a hypervisor, may forbid it";
  return r;
}

}  // namespace

GpuFacts ReadGpuFacts() {
  GpuFacts facts;
  facts.on_bus = GpusOnBus();
  facts.driver = DriverVersion();
  const auto library = OpenCudaLibrary();
  facts.library = library.status();
  if (!library.ok()) return facts;
  facts.cuda = CheckCudaDevice(*(*library)->calls, 0);
  if (!facts.cuda.ok()) return facts;
  ReadDevices(*(*library)->calls, facts);
  facts.torch = OpenTorchCuda();
  facts.nccl = NcclVersion();
  return facts;
}

std::vector<CheckResult> CheckGpu(const GpuFacts& facts) {
  std::vector<CheckResult> checks = {Gpu(facts)};
  if (facts.on_bus == 0 && facts.driver.empty() && facts.gpus.empty()) {
    return checks;
  }
  checks.push_back(Cuda(facts));
  if (facts.gpus.empty()) return checks;
  checks.push_back(TorchCuda(facts));
  checks.push_back(Nccl(facts));
  if (facts.gpus.size() > 1) checks.push_back(PeerAccess(facts));
  return checks;
}

}  // namespace gossamer
