// The error on a machine without TUN; the test needs no such machine.

#include "runtime/lab/tun_device.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TunDeviceTest, WithoutTheDriverItSaysWhatIsMissingAndWhatToDo) {
  const std::string absent = testing::TempDir() + "gossamer_no_such/tun";
  const auto device = MakeTunDevice({.address = "10.77.0.1", .path = absent});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(device.status().message()),
      AllOf(StartsWith(absent + ": No such file or directory; "),
            HasSubstr("modprobe tun"), HasSubstr("--device /dev/net/tun")));
}

// A container may have the node of another kernel's driver.
TEST(TunDeviceTest, AFileThatIsNoDriverIsNoDevice) {
  const auto device =
      MakeTunDevice({.address = "10.77.0.1", .path = "/dev/null"});
  ASSERT_FALSE(device.ok());
  EXPECT_THAT(std::string(device.status().message()),
              HasSubstr("lab device: TUNSETIFF"));
}

}  // namespace
}  // namespace gossamer
