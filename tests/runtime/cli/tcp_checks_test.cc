// doctor's checks of TCP, with settings of kernels that this machine does not
// have.

#include "runtime/cli/tcp_checks.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace tcp_checks_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr size_t kBuffers = 0;
constexpr size_t kIdle = 1;
constexpr size_t kCongestion = 2;

// Returns the settings of an administrator of long fat links.
TcpFacts Tuned() {
  return {.tuned_receive = 64 << 20,
          .tuned_send = 64 << 20,
          .asked_send = 212992,
          .slow_start_after_idle = "0",
          .congestion = "cubic",
          .may_cubic = true,
          .may_bbr = true};
}

TEST(TcpChecks, ATunedKernelIsFine) {
  for (const CheckResult& r : CheckTcp(Tuned())) {
    EXPECT_EQ(r.level, CheckLevel::kOk) << r.name;
    EXPECT_THAT(r.advice, IsEmpty()) << r.name;
    EXPECT_NE(r.found, "") << r.name;
    EXPECT_NE(r.why, "") << r.name;
  }
}

TEST(TcpChecks, SmallBuffersAreReported) {
  TcpFacts facts = Tuned();
  facts.tuned_send = 4 << 20;
  const CheckResult small = CheckTcp(facts)[kBuffers];
  EXPECT_EQ(small.level, CheckLevel::kWarn);
  EXPECT_THAT(small.found, HasSubstr("4.19 MB to send"));
  EXPECT_THAT(small.advice, HasSubstr("net.ipv4.tcp_wmem="));
  // A socket may ask for more than the kernel would give by itself.
  facts.asked_send = 8 << 20;
  EXPECT_EQ(CheckTcp(facts)[kBuffers].level, CheckLevel::kOk);
}

TEST(TcpChecks, SlowStartAfterIdleIsReported) {
  TcpFacts facts = Tuned();
  facts.slow_start_after_idle = "1";
  facts.may_bbr = false;
  const std::vector<CheckResult> without_bbr = CheckTcp(facts);
  EXPECT_EQ(without_bbr[kIdle].level, CheckLevel::kWarn);
  EXPECT_THAT(without_bbr[kIdle].advice,
              HasSubstr("tcp_slow_start_after_idle=0"));
  EXPECT_EQ(without_bbr[kCongestion].level, CheckLevel::kWarn);
  EXPECT_THAT(without_bbr[kCongestion].advice, HasSubstr("tcp_bbr"));
  facts.may_bbr = true;
  EXPECT_EQ(CheckTcp(facts)[kCongestion].level, CheckLevel::kOk);
  EXPECT_THAT(CheckTcp(facts)[kCongestion].found,
              HasSubstr("cubic for edges, bbr for those that lose packets or "
                        "have too small a window on a long link, or pause"));
}

TEST(TcpChecks, AKernelWithoutBbrIsReported) {
  TcpFacts facts = Tuned();
  EXPECT_THAT(CheckTcp(facts)[kCongestion].found,
              AllOf(HasSubstr("bbr for those that lose packets"),
                    Not(HasSubstr("pause"))));
  facts.may_bbr = false;
  const CheckResult without_bbr = CheckTcp(facts)[kCongestion];
  EXPECT_EQ(without_bbr.level, CheckLevel::kWarn);
  EXPECT_THAT(without_bbr.found,
              HasSubstr("cubic for edges, four connections for those that lose "
                        "packets or have too small a window on a long link"));
  EXPECT_THAT(without_bbr.advice,
              AllOf(HasSubstr("only for peers far apart: modprobe tcp_bbr"),
                    Not(HasSubstr("slow_start"))));
}

TEST(TcpChecks, AKernelWithoutCubicIsReported) {
  TcpFacts facts = Tuned();
  facts.congestion = "bbr";
  facts.may_bbr = true;
  EXPECT_EQ(CheckTcp(facts)[kCongestion].level, CheckLevel::kOk);
  facts.may_cubic = false;
  const CheckResult paced = CheckTcp(facts)[kCongestion];
  EXPECT_EQ(paced.level, CheckLevel::kWarn);
  EXPECT_EQ(paced.found, "bbr for edges");
  EXPECT_THAT(paced.advice, HasSubstr("tcp_allowed_congestion_control"));
}

TEST(TcpChecks, TheSettingsOfThisMachineAreJudged) {
  for (const CheckResult& r : CheckTcp(ReadTcpFacts())) {
    EXPECT_NE(r.found, "") << r.name;
    EXPECT_EQ(r.advice == "", r.level == CheckLevel::kOk) << r.name;
  }
}

}  // namespace tcp_checks_test
}  // namespace gossamer
