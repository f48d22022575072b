// Which compressors may code what lies in a device's memory.

#include <string>

#include "absl/status/status.h"
#include "algorithms/compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

std::string Refusal(std::string_view name) {
  const absl::Status status = CheckOnDevice(name);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << name;
  return std::string(status.message());
}

TEST(OnDeviceTest, EveryCodecOfEdgesCan) {
  for (const std::string_view name : Codec::Names()) {
    EXPECT_TRUE(CheckOnDevice(name).ok()) << name;
  }
  EXPECT_TRUE(CheckOnDevice("innov-topk:k=7").ok());
}

TEST(OnDeviceTest, GradientsWhoseSizeIsNotKnownAreRefusedWithAnother) {
  EXPECT_TRUE(CheckOnDevice("qsgd").ok());
  EXPECT_TRUE(CheckOnDevice("qsgd:levels=1,bucket=128").ok());
  for (const char* name : {"adacomp", "lgc", "scalecom", "top-k"}) {
    EXPECT_THAT(Refusal(name), HasSubstr("take \"qsgd\"")) << name;
  }
  for (const char* name : {"qsgd:coding=gamma", "qsgd:coding=omega"}) {
    EXPECT_THAT(Refusal(name), HasSubstr("take coding=fixed")) << name;
  }
}

}  // namespace
}  // namespace gossamer
