// Every system call of a build's writer fails in turn, is cut short, or is
// never reached because the process is killed before it; the same build then
// ends in the same file.

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gan_models/data/image_cache.h"
#include "gan_models/data/image_cache_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/failing_calls.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace image_cache_faults_test {

using Effect = CallFault::Effect;

constexpr int kSide = 8;
constexpr size_t kBytes = size_t{3} * kSide * kSide;
constexpr size_t kPictures = 4;
enum Outcome { kBuilt = 0, kError = 1, kErrorWithoutPath = 2 };

// Four pictures, of which the third is refused.
absl::Status Build(const std::string& path) {
  auto writer = ImageCacheWriter::Open(path, {.side = kSide,
                                              .class_names = {"a", "b"},
                                              .words = {0, 0, 1, 1},
                                              .source = 3});
  if (!writer.ok()) return writer.status();
  for (size_t i = 0; i < kPictures; ++i) {
    std::vector<uint8_t> image(kBytes);
    const auto done = (*writer)->IsDone(i, image);
    if (!done.ok()) return done.status();
    if (*done) continue;
    if (i == 2) {
      (*writer)->Refuse(i);
      continue;
    }
    image.assign(kBytes, static_cast<uint8_t>(7 * i + 1));
    const absl::Status kept = (*writer)->Keep(i, image);
    if (!kept.ok()) return kept;
  }
  return (*writer)->Publish();
}

std::string ReadBytes(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class ImageCacheFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(CanTraceCalls())
        << "needs an x86-64 machine on which a process may trace its children; "
           "in a container: --cap-add SYS_PTRACE";
    // An fsync in /dev/shm costs no time.
    if (std::filesystem::exists("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 1);
    const TemporaryFolder folder;
    ASSERT_TRUE(Build(folder.path() + "/whole").ok());
    expected_ = ReadBytes(folder.path() + "/whole");
  }

  CallOutcome Try(const CallFault& fault) const {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/file";
    const CallOutcome outcome = RunWithFault(fault, [&] {
      const absl::Status status = Build(path);
      if (status.ok()) return kBuilt;
      return absl::StartsWith(status.message(), folder.path())
                 ? kError
                 : kErrorWithoutPath;
    });
    EXPECT_NE(outcome.rc, kErrorWithoutPath);
    if (outcome.rc == kBuilt) {
      EXPECT_EQ(outcome.unsynced, 0);
      EXPECT_EQ(ReadBytes(path), expected_);
    }
    // A file with its name is whole.
    if (std::filesystem::exists(path)) {
      EXPECT_EQ(ReadBytes(path), expected_);
    } else {
      EXPECT_TRUE(Build(path).ok());
      EXPECT_EQ(ReadBytes(path), expected_);
    }
    EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
    return outcome;
  }

  // Tries the fault at every n-th call that there is; returns their number.
  int TryAll(CallFault fault,
             const std::function<void(CallOutcome)>& check) const {
    for (fault.n = 1;; ++fault.n) {
      SCOPED_TRACE(fault);
      const CallOutcome outcome = Try(fault);
      if (HasFailure() || !outcome.reached) return fault.n - 1;
      check(outcome);
    }
  }

  std::string expected_;
};

TEST_F(ImageCacheFaults, AKillBetweenAnyTwoCallsLosesNothing) {
  const int calls = TryAll({.effect = Effect::kKill}, [](CallOutcome outcome) {
    EXPECT_EQ(outcome.rc, std::nullopt);
  });
  EXPECT_GT(calls, 12);
}

TEST_F(ImageCacheFaults, AnErrorOfAnyCallIsReportedOrHarmless) {
  for (const FileCall call :
       {FileCall::kOpen, FileCall::kRead, FileCall::kWrite, FileCall::kSync,
        FileCall::kClose, FileCall::kRename, FileCall::kStat}) {
    for (const int error : {EIO, ENOSPC}) {
      TryAll({.call = call, .effect = Effect::kError, .error = error},
             [&](CallOutcome outcome) {
               const bool may_pass = call == FileCall::kClose;
               EXPECT_TRUE(outcome.rc == kError ||
                           (may_pass && outcome.rc == kBuilt));
             });
    }
  }
}

TEST_F(ImageCacheFaults, InterruptedAndShortCallsGoOn) {
  for (const FileCall call :
       {FileCall::kRead, FileCall::kWrite, FileCall::kSync}) {
    TryAll({.call = call, .effect = Effect::kError, .error = EINTR},
           [](CallOutcome outcome) { EXPECT_EQ(outcome.rc, kBuilt); });
  }
  const int writes =
      TryAll({.call = FileCall::kWrite, .effect = Effect::kShort},
             [](CallOutcome outcome) { EXPECT_EQ(outcome.rc, kBuilt); });
  EXPECT_GT(writes, 8);
}

}  // namespace image_cache_faults_test
}  // namespace gossamer
