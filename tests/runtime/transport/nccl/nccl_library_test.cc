// NCCL as it is found on this machine, or the words of what is missing.

#include "runtime/transport/nccl/nccl_library.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NcclLibraryTest, AMissingLibraryIsNamedWithWhatToInstall) {
  const auto library = NcclLibrary::Open("/nowhere/libnccl.so.2");
  EXPECT_EQ(library.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(library.status().message()),
              AllOf(HasSubstr("/nowhere/libnccl.so.2"), HasSubstr("install"),
                    HasSubstr("LD_LIBRARY_PATH")));
}

TEST(NcclLibraryTest, AMissingFunctionIsNamed) {
  const auto library = NcclLibrary::Open("libm.so.6");
  EXPECT_EQ(library.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(library.status().message()),
              AllOf(HasSubstr("libm.so.6"), HasSubstr("ncclGetVersion"),
                    HasSubstr("2.14")));
}

// An installed NCCL answers without a driver.
TEST(NcclLibraryTest, TheInstalledOneAnswers) {
  auto library = NcclLibrary::Open();
  if (!library.ok()) {
    EXPECT_THAT(std::string(library.status().message()),
                HasSubstr("NCCL cannot be opened"));
    return;
  }
  EXPECT_GE((*library)->version(), 21400);
  NcclUniqueId one{}, other{};
  EXPECT_EQ((*library)->GetUniqueId(&one), NcclResult::kSuccess);
  EXPECT_EQ((*library)->GetUniqueId(&other), NcclResult::kSuccess);
  EXPECT_NE(one, other);
  EXPECT_FALSE((*library)->TextOf(NcclResult::kInvalidUsage).empty());
}

}  // namespace
}  // namespace gossamer
