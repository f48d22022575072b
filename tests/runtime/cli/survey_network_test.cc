// The answer of a survey becomes a scenario, and impossible numbers in it are
// refused.

#include "runtime/cli/survey_network.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/lab/scenario.h"

namespace gossamer {
namespace survey_network_test {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

wire::LinkSurveyStatus Answer(const std::vector<double>& rtt,
                              const std::vector<double>& rate) {
  wire::LinkSurveyStatus status;
  status.add_member_id(4);
  status.add_member_id(9);
  for (const double v : rtt) status.add_rtt_seconds(v);
  for (const double v : rate) status.add_bytes_per_second(v);
  return status;
}

TEST(SurveyNetworkTest, AMeasuredNetworkBecomesAScenario) {
  auto answer = Answer({-1, 0.030, 0.020, -1}, {0, 12.5e6, 1e-3, 0});
  answer.set_busy_seconds(0.04);
  const auto network = NetworkOf(answer);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_THAT(network->names, ElementsAre("peer-4", "peer-9"));
  EXPECT_THAT(network->rtt_ms[0], ElementsAre(0, 20));
  EXPECT_THAT(network->mbit[0], ElementsAre(0, DoubleNear(103.59, 0.01)));
  EXPECT_THAT(network->mbit[1], ElementsAre(0.001, 0))
      << "the slowest that a scenario has";
  const std::string file = ScenarioFileOf(*network);
  EXPECT_THAT(file, HasSubstr("# host-1 is peer-9\n"));
  EXPECT_THAT(file, HasSubstr("took 40.000 ms"));
  const auto read = ParseScenario(file, "f", std::nullopt);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->hosts.size(), 2u);
  EXPECT_EQ(read->links.At(0, 1).delay, 10'000'000);
  EXPECT_EQ(read->links.At(1, 0).delay, 10'000'000);
  EXPECT_NEAR(static_cast<double>(read->links.At(0, 1).bytes_per_second),
              12.5e6 * 1500 / 1448, 100);
  EXPECT_EQ(read->links.At(1, 0).bytes_per_second, 125u);
}

TEST(SurveyNetworkTest, AnImpossiblyHighRateIsUnlimited) {
  const auto fast = NetworkOf(Answer({0, 0, 0, 0}, {0, 1e300, 0, 0}));
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_THAT(fast->mbit[0], ElementsAre(0, 0)) << "no limit was seen";
  const auto read = ParseScenario(ScenarioFileOf(*fast), "f", std::nullopt);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->links.At(0, 1).bytes_per_second, 0u);
}

TEST(SurveyNetworkTest, ALinkWithAnImpossibleNumberCountsAsUnmeasured) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& answer : {Answer({0, -1, 1, 0}, {0, 1, 1, 0}),
                             Answer({0, nan, 1, 0}, {0, 1, 1, 0}),
                             Answer({0, inf, 1, 0}, {0, 1, 1, 0}),
                             Answer({0, 1, 1, 0}, {0, nan, 1, 0}),
                             Answer({0, 1, 1, 0}, {0, inf, 1, 0})}) {
    const auto network = NetworkOf(answer);
    EXPECT_TRUE(absl::IsUnavailable(network.status())) << network.status();
    EXPECT_THAT(std::string(network.status().message()),
                HasSubstr("not measured: peer 4 to 9;"));
  }
}

TEST(SurveyNetworkTest, AnAnswerThatIsNoMatrixIsRefused) {
  EXPECT_TRUE(absl::IsInternal(NetworkOf(Answer({0, 1}, {0, 1})).status()));
  auto twice = Answer({0, 1, 1, 0}, {0, 1, 1, 0});
  twice.set_member_id(1, 4);
  EXPECT_TRUE(absl::IsInternal(NetworkOf(twice).status()));
  EXPECT_TRUE(absl::IsInternal(NetworkOf({}).status()));
}

}  // namespace survey_network_test
}  // namespace gossamer
