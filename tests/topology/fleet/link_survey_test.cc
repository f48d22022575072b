// The slots of a survey: every pair of members measures once, and a silent
// member delays nobody.

#include "topology/fleet/link_survey.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace gossamer {
namespace link_survey_test {

const absl::Time kBegin = absl::FromUnixSeconds(1000);
constexpr absl::Duration kLimit = absl::Seconds(30);

std::vector<PeerId> Members(int n) {
  std::vector<PeerId> members;
  for (int i = 0; i < n; ++i)
    members.push_back({10 + static_cast<uint64_t>(i)});
  return members;
}

TEST(LinkSurvey, EveryPairMeetsOnceInDisjointSlots) {
  for (int n = 2; n <= 9; ++n) {
    LinkSurvey survey(kLimit);
    survey.Start(Members(n), 0, kBegin);
    std::map<std::pair<PeerId, PeerId>, int> met;
    size_t slots = 0;
    for (; survey.running(); ++slots) {
      std::map<PeerId, LinkSurvey::Task> tasks;
      for (PeerId p : survey.members()) {
        if (const auto task = survey.TaskOf(p)) tasks[p] = *task;
      }
      EXPECT_GE(tasks.size(), static_cast<size_t>(n - n % 2));
      for (const auto& [p, task] : tasks) {
        ASSERT_EQ(tasks[task.other].other, p) << n;
        EXPECT_NE(p, task.other);
        ++met[{p, task.other}];
        survey.Report(p, task.number,
                      LinkMeasurement{.rtt_seconds = 0.1 * p.value,
                                      .bytes_per_second = 1e6},
                      kBegin);
      }
    }
    EXPECT_EQ(slots, survey.slots());
    for (PeerId a : survey.members()) {
      for (PeerId b : survey.members()) {
        if (a == b) continue;
        EXPECT_EQ((met[{a, b}]), 1);
        ASSERT_TRUE(survey.link(a, b));
        EXPECT_EQ(survey.link(a, b)->rtt_seconds, 0.1 * a.value);
      }
    }
  }
}

TEST(LinkSurvey, ASlotEndsAtItsLimitThoughAMemberIsSilent) {
  LinkSurvey survey(kLimit);
  survey.Start(Members(3), 0, kBegin);
  const auto first = survey.TaskOf({10}) ? PeerId{10} : PeerId{11};
  const LinkSurvey::Task task = *survey.TaskOf(first);
  survey.Report(first, task.number, LinkMeasurement{.rtt_seconds = 1}, kBegin);
  EXPECT_EQ(survey.TaskOf(first), std::nullopt);
  survey.Tick(kBegin + kLimit / 2);
  EXPECT_EQ(survey.slot(), 0u);
  survey.Tick(kBegin + kLimit);
  EXPECT_EQ(survey.slot(), 1u);
  // The report is late and belongs to no slot any more.
  survey.Report(task.other, task.number, LinkMeasurement{.rtt_seconds = 1},
                kBegin + kLimit);
  EXPECT_TRUE(survey.link(first, task.other));
  EXPECT_FALSE(survey.link(task.other, first));
  survey.Tick(kBegin + 2 * kLimit);
  survey.Tick(kBegin + 3 * kLimit);
  EXPECT_FALSE(survey.running());
}

TEST(LinkSurvey, AReportWithInvalidValuesMeasuresNothing) {
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    LinkSurvey survey(kLimit);
    survey.Start(Members(2), 0, kBegin);
    survey.Report({10}, survey.TaskOf({10})->number,
                  LinkMeasurement{.rtt_seconds = bad}, kBegin);
    survey.Report({11}, survey.TaskOf({11})->number,
                  LinkMeasurement{.rtt_seconds = 1, .bytes_per_second = bad},
                  kBegin);
    EXPECT_FALSE(survey.running());
    EXPECT_FALSE(survey.link({10}, {11}));
    EXPECT_FALSE(survey.link({11}, {10}));
  }
}

TEST(LinkSurvey, ANewSurveyReplacesTheOneUnderWay) {
  LinkSurvey survey(kLimit);
  survey.Start(Members(2), 0, kBegin);
  const uint64_t number = survey.TaskOf({10})->number;
  survey.Start(Members(4), 0, kBegin);
  EXPECT_GT(survey.TaskOf({10})->number, number);
  survey.Report({10}, number, LinkMeasurement{.rtt_seconds = 1}, kBegin);
  EXPECT_TRUE(survey.TaskOf({10}));
  survey.Start(Members(1), 0, kBegin);
  EXPECT_FALSE(survey.running());
}

// Peers ignore a task whose number they have measured for.
TEST(LinkSurvey, SlotsAfterARestartOfTheServiceHaveLargerNumbers) {
  constexpr uint64_t kLargest = uint64_t{1} << 48;
  uint64_t last = 0;
  absl::Time now = kBegin;
  for (const uint64_t generation : {uint64_t{1}, uint64_t{2}, kLargest}) {
    LinkSurvey survey(kLimit);
    for (int i = 0; i < 3; ++i) {
      survey.Start(Members(4), generation, now);
      for (; survey.running(); survey.Tick(now)) {
        const uint64_t number = survey.TaskOf({10})->number;
        ASSERT_GT(number, last);
        last = number;
        now += kLimit;
      }
    }
  }
}

}  // namespace link_survey_test
}  // namespace gossamer
