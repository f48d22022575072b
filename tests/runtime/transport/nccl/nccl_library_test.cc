// NCCL as it is found on this machine, or the words of what is missing.

#include "runtime/transport/nccl/nccl_library.h"

#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace nccl_library_test {

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

// A function of the stand-in's own.
template <typename Function>
Function* OfStandIn(const char* name) {
  void* const stand_in = dlopen(STAND_IN_NCCL, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(dlsym(stand_in, name));
}
bool AbortBegins() { return OfStandIn<int(int)>("AwaitAbort")(60) == 1; }
void EndAbort() { OfStandIn<void()>("EndAbort")(); }

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() : library_(*NcclLibrary::Open(STAND_IN_NCCL)) {
    EXPECT_EQ(library_->CommInitRank(&comm_, 2, {}, 0), NcclResult::kSuccess);
  }
  NcclResult Poll() {
    NcclResult error;
    return library_->CommGetAsyncError(comm_, &error);
  }
  // Buffers that say when they are given back.
  std::shared_ptr<void> Buffers() {
    return {&given_back_, [](void* flag) {
              static_cast<std::atomic<bool>*>(flag)->store(true);
            }};
  }

  std::atomic<bool> given_back_ = false;
  std::unique_ptr<NcclLibrary> library_;
  NcclComm comm_ = nullptr;
};

// This thread, which makes all calls, is held up until the abort.
TEST_F(WatchTest, AnOperationEndsThoughTheThreadOfAllCallsIsHeldUp) {
  EXPECT_EQ(library_->Watch(comm_, absl::Milliseconds(20)),
            NcclResult::kSuccess);
  ASSERT_TRUE(AbortBegins());
  EXPECT_EQ(Poll(), NcclResult::kAborted);
  EXPECT_EQ(library_->Watch(comm_, absl::InfiniteDuration()),
            NcclResult::kAborted);
  EXPECT_THAT(library_->TextOf(NcclResult::kAborted), HasSubstr("held up"));
  library_->CommAbort(comm_, Buffers());
  EXPECT_FALSE(given_back_) << "the kernel may still be running";
  EndAbort();
  library_.reset();
  EXPECT_TRUE(given_back_);
}

TEST_F(WatchTest, BuffersStayUntilTheAbortIsOver) {
  library_->CommAbort(comm_, Buffers());
  ASSERT_TRUE(AbortBegins());
  EXPECT_FALSE(given_back_);
  EndAbort();
  library_.reset();
  EXPECT_TRUE(given_back_);
}

TEST_F(WatchTest, NothingIsAbortedOnceItIsNotWatchedAnyMore) {
  NcclComm other = nullptr;
  library_->CommInitRank(&other, 2, {}, 0);
  library_->Watch(comm_, absl::Seconds(1));
  library_->Watch(comm_, absl::InfiniteDuration());
  library_->Watch(other, absl::Milliseconds(1100));
  ASSERT_TRUE(AbortBegins()) << "of the other one";
  EXPECT_EQ(Poll(), NcclResult::kSuccess);
  EndAbort();
  library_->CommAbort(other, nullptr);
  library_->CommAbort(comm_, nullptr);
  ASSERT_TRUE(AbortBegins());
  EndAbort();
}

}  // namespace nccl_library_test
}  // namespace gossamer
