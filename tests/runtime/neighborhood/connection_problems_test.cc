// Lines about refused connections: few, short, and never at the cost of a
// member's.

#include "runtime/neighborhood/connection_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gossamer {
namespace connection_problems_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr PeerId kMember{2};

TEST(ConnectionProblemsTest, ManyRefusedConnectionsMakeFewLines) {
  ConnectionProblems problems;
  absl::Time now = absl::UnixEpoch();
  const absl::Status why = absl::FailedPreconditionError("another run");
  int lines = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    now += absl::Milliseconds(1);
    // Each connection claims another id.
    lines += !problems.LineOf({1000 + i}, false, why, now).empty();
  }
  EXPECT_EQ(lines, 1);
  // A member's line is not lost among them.
  EXPECT_THAT(problems.LineOf(kMember, true, why, now), HasSubstr("peer 2"));
  EXPECT_EQ(problems.LineOf(kMember, true, why, now), "");
  now += absl::Minutes(1);
  EXPECT_THAT(problems.LineOf({7}, false, why, now), HasSubstr("1001 so far"));
}

TEST(ConnectionProblemsTest, AProblemThatPassesHasNoLine) {
  ConnectionProblems problems;
  absl::Time now = absl::UnixEpoch();
  const absl::Status why = absl::UnavailableError("not a neighbour yet");
  const auto line = [&] { return problems.LineOf(kMember, true, why, now); };
  EXPECT_EQ(line(), "");
  now += ConnectionProblems::kPasses - absl::Milliseconds(1);
  EXPECT_EQ(line(), "");
  now += absl::Milliseconds(1);
  EXPECT_THAT(line(), HasSubstr("not a neighbour yet (1 so far)"));
  now += absl::Seconds(13);
  EXPECT_THAT(line(), HasSubstr("2 so far")) << "it has not passed";
  // Another one, a minute later, may pass again.
  now += absl::Minutes(1);
  EXPECT_EQ(line(), "");
  now += ConnectionProblems::kPasses;
  EXPECT_THAT(line(), HasSubstr("3 so far"));
}

TEST(ConnectionProblemsTest, AMessageFromTheOtherEndBecomesOneShortLine) {
  ConnectionProblems problems;
  const std::string line = problems.LineOf(
      {}, false, absl::DataLossError("a\nb\x1b[2J" + std::string(50'000, 'c')),
      absl::UnixEpoch());
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  EXPECT_LT(line.size(), 1200u);
}

TEST(ConnectionProblemsTest, RefusalsAreDistinguishedFromPassingProblems) {
  const auto refusal = [](PeerId peer, const absl::Status& why) {
    return ConnectionProblems::IsRefusal(peer, why);
  };
  EXPECT_TRUE(refusal(kMember, absl::UnauthenticatedError("revoked")));
  EXPECT_TRUE(refusal(kMember, absl::FailedPreconditionError("version 3")));
  EXPECT_TRUE(refusal({}, absl::DataLossError("no gossamer peer")));
  EXPECT_TRUE(refusal({}, absl::ResourceExhaustedError("one too many")));
  EXPECT_TRUE(refusal({}, absl::DeadlineExceededError("no hello")));
  EXPECT_TRUE(refusal(kMember, absl::UnimplementedError("compressed")));
  EXPECT_FALSE(refusal(kMember, absl::DeadlineExceededError("no hello")));
  EXPECT_FALSE(refusal(kMember, absl::UnavailableError("not yet")));
  EXPECT_FALSE(refusal(kMember, absl::CancelledError("another address")));
}

}  // namespace connection_problems_test
}  // namespace gossamer
