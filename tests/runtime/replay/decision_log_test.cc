// The log of decisions keeps every line, or says that it is not whole.

#include "runtime/replay/decision_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/replay/decisions.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace decision_log_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DecisionLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<DecisionLog> Open(LogLimit limit) {
    auto log = DecisionLog::Open(path_, limit, [this](const absl::Status& why) {
      told_.emplace_back(why.message());
    });
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  std::string Text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/decisions.log";
  std::vector<std::string> told_;
};

TEST_F(DecisionLogTest, KeepsEveryLine) {
  std::ofstream(path_) << "of an earlier incarnation\n";
  const auto log = Open(0);
  log->Add("jump 3 7");
  EXPECT_EQ(Text(), "jump 3 7\n");
  log->Add("stop 9");
  EXPECT_EQ(Text(), "jump 3 7\nstop 9\n");
  EXPECT_TRUE(told_.empty());
}

// Deadlines may pass for days without filling a disk.
TEST_F(DecisionLogTest, AFullLogSaysSoAndIsNotReplayed) {
  const auto log = Open(1000);
  for (int i = 0; i < 1000; ++i) log->Add(absl::StrCat("skip 2 ", i));
  const std::string text = Text();
  EXPECT_LT(text.size(), 1020u);
  EXPECT_THAT(text, testing::EndsWith("\nfull 1000\n"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("--log-limit")));
  const auto replayed = Decisions::Replay(text);
  EXPECT_TRUE(absl::IsFailedPrecondition(replayed.status()))
      << replayed.status();
}

// A log that lost a line has a gap that nothing in it shows, so it is removed.
TEST_F(DecisionLogTest, ALogOnAFullDiskIsRemoved) {
  const auto log = Open(0);
  log->Add("skip 2 1");
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 12;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 100; ++i) log->Add("skip 2 2");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  log->Add("skip 2 3");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("cannot be replayed")));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace decision_log_test
}  // namespace gossamer
