// doctor's checks of GPUs, with machines that this one is not.

#include "runtime/cli/gpu_checks.h"

#include <cstdio>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace gpu_checks_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DeviceFacts H100() {
  DeviceFacts gpu;
  std::snprintf(gpu.name, sizeof(gpu.name), "NVIDIA H100");
  gpu.major = 9;
  gpu.memory = 80'000'000'000;
  gpu.free = 79'000'000'000;
  return gpu;
}

// A machine of two GPUs with all that they need.
GpuFacts Equipped() {
  GpuFacts facts;
  facts.on_bus = 2;
  facts.driver = "580.65.06";
  facts.gpus = {H100(), H100()};
  facts.nccl = "2.28.9";
  return facts;
}

std::vector<std::string> Names(const std::vector<CheckResult>& checks) {
  std::vector<std::string> names;
  for (const CheckResult& c : checks) names.push_back(c.name);
  return names;
}

TEST(GpuChecks, AMachineWithoutAGpuIsFit) {
  GpuFacts facts;
  facts.library = absl::NotFoundError("no library");
  const auto checks = CheckGpu(facts);
  EXPECT_THAT(Names(checks), ElementsAre("gpu"));
  EXPECT_EQ(checks[0].level, CheckLevel::kOk);
  EXPECT_EQ(checks[0].found, "none: peers train on the CPU");
}

TEST(GpuChecks, AnEquippedMachineIsFine) {
  const auto checks = CheckGpu(Equipped());
  EXPECT_THAT(Names(checks),
              ElementsAre("gpu", "cuda", "torch cuda", "nccl", "peer access"));
  for (const CheckResult& r : checks) {
    EXPECT_EQ(r.level, CheckLevel::kOk) << r.name;
    EXPECT_THAT(r.advice, IsEmpty()) << r.name;
    EXPECT_NE(r.why, "") << r.name;
  }
  EXPECT_THAT(checks[0].found,
              HasSubstr("cuda:1 NVIDIA H100 (9.0), 79 GB free of 80 GB; "
                        "driver 580.65.06"));
  EXPECT_THAT(checks[1].found, HasSubstr("--set resources.device=cuda"));
  EXPECT_EQ(checks[3].found, "NCCL 2.28.9");
  GpuFacts one = Equipped();
  one.gpus.pop_back();
  EXPECT_THAT(Names(CheckGpu(one)),
              ElementsAre("gpu", "cuda", "torch cuda", "nccl"));
}

TEST(GpuChecks, AMissingPartIsReportedWithAdvice) {
  GpuFacts bare;
  bare.on_bus = 1;
  bare.library = absl::NotFoundError("this build has no CUDA");
  auto checks = CheckGpu(bare);
  EXPECT_THAT(Names(checks), ElementsAre("gpu", "cuda"));
  EXPECT_EQ(checks[0].level, CheckLevel::kWarn);
  EXPECT_EQ(checks[0].found, "1 on the bus; no driver is loaded");
  EXPECT_EQ(checks[1].level, CheckLevel::kWarn);
  EXPECT_EQ(checks[1].found, "this build has no CUDA");
  EXPECT_THAT(checks[1].advice, HasSubstr("deploy/setup.sh --for cuda"));

  GpuFacts old = Equipped();
  old.gpus.clear();
  old.cuda = absl::FailedPreconditionError("the driver knows CUDA 12.8");
  checks = CheckGpu(old);
  EXPECT_EQ(checks[1].found, "the driver knows CUDA 12.8");

  GpuFacts half = Equipped();
  half.torch = absl::FailedPreconditionError("libcudnn.so.9 is not there");
  half.nccl = absl::FailedPreconditionError("NCCL does not open");
  half.apart = {{0, 1}};
  checks = CheckGpu(half);
  EXPECT_THAT(checks[2].found, HasSubstr("libcudnn.so.9"));
  EXPECT_EQ(checks[3].level, CheckLevel::kWarn);
  EXPECT_EQ(checks[4].found, "not between cuda:0-1");
  for (size_t i = 2; i < checks.size(); ++i) {
    EXPECT_EQ(checks[i].level, CheckLevel::kWarn);
    EXPECT_NE(checks[i].advice, "");
  }
}

}  // namespace gpu_checks_test
}  // namespace gossamer
