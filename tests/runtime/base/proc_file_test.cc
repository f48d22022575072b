// The values of files as the kernel writes them.

#include "runtime/base/proc_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace {

TEST(ProcFileTest, AKeyIsAllThatIsBeforeTheColon) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/cpuinfo";
  std::ofstream(path) << "model\t\t: 85\n"
                         "model name\t: A CPU: fast\n"
                         "a line without a value\n"
                         "power management:\n"
                         "model name\t: another\n";
  EXPECT_EQ(ProcValue(path, "model name"), "A CPU: fast");
  EXPECT_EQ(ProcValue(path, "model"), "85");
  EXPECT_EQ(ProcValue(path, "power management"), "");
  EXPECT_EQ(ProcValue(path, "mod"), "");
  EXPECT_EQ(ProcValue(path + "-of-nobody", "model"), "");
}

TEST(ProcFileTest, ThisMachineHasMemory) {
  EXPECT_GT(MemoryBytes("MemTotal"), 1e7);
  EXPECT_LE(MemoryBytes("MemAvailable"), MemoryBytes("MemTotal"));
  EXPECT_FALSE(MemoryBytes("MemOfNobody").has_value());
}

TEST(ProcFileTest, TheKernelHasNoSuchSetting) {
  EXPECT_EQ(ReadNetSysctl("ipv4/of_nobody"), "");
  EXPECT_EQ(LargestOfNetSysctl("ipv4/of_nobody"), 0);
  EXPECT_EQ(LargestOfNetSysctl("ipv4/tcp_congestion_control"), 0);
}

}  // namespace
}  // namespace gossamer
