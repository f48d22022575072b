// A topology service that is dead for an hour, or has lost its disk, costs no
// round and no delay: the parameters have the bits of a fleet whose service
// lives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/serviced_fleet.h"

namespace gossamer {
namespace outage_test {

using ::testing::IsEmpty;

constexpr int kPeers = 6;
constexpr uint64_t kRounds = 7500;

simulation::Scenario Long(DeadlinePolicy::Kind deadline) {
  simulation::Scenario s = UsualFleet(kPeers);
  s.seed = 5;
  s.deadline.kind = deadline;
  s.noise = 0.1;
  s.heterogeneity = 0.5;
  s.fault_rounds = kRounds;
  s.ends_by_stop = false;
  s.link.latency = absl::Milliseconds(50);
  s.step_time = absl::Milliseconds(500);
  return s;
}

bool RunTo(ServicedFleet& fleet, uint64_t round) {
  const std::set<PeerId> all = fleet.Everybody();
  return fleet.Until([&] { return fleet.RoundsOf(all).first >= round; },
                     absl::Hours(2));
}

bool RunFor(ServicedFleet& fleet, absl::Duration length) {
  const absl::Time end = fleet.loop().Now() + length;
  return fleet.Until([&] { return fleet.loop().Now() >= end; }, 2 * length);
}

// The outcome of a training.
struct Trained {
  std::vector<std::vector<float>> parameters;
  absl::Time last_round;  // when it has begun at all peers
  uint64_t corrections = 0;
  int missed = 0;  // deadlines missed by all peers
};

// Trains for all rounds; the service is dead for `dead` from round 100 on.
Trained Train(DeadlinePolicy::Kind deadline, absl::Duration dead,
              bool loses_disk = false) {
  ServicedFleet fleet(Long(deadline));
  const std::set<PeerId> all = fleet.Everybody();
  EXPECT_TRUE(RunTo(fleet, 100));
  EXPECT_TRUE(fleet.Together());
  if (dead > absl::ZeroDuration()) {
    fleet.service().Crash();
    EXPECT_TRUE(RunFor(fleet, dead));
    EXPECT_GT(fleet.RoundsOf(all).first, 7000u) << "an hour of training";
    EXPECT_LT(fleet.RoundsOf(all).second, 7400u) << "that ends before the run";
    if (loses_disk) fleet.service().LoseDisk();
    EXPECT_TRUE(fleet.service().Start(/*old=*/false).ok());
  }
  Trained run;
  EXPECT_TRUE(RunTo(fleet, kRounds));
  run.last_round = fleet.loop().Now();
  EXPECT_THAT(fleet.Finish(absl::Minutes(1)), IsEmpty());
  const FleetRecord& record = fleet.service().fleet()->record();
  EXPECT_EQ(record.view.epoch, 1u) << "nobody came or went";
  EXPECT_EQ(record.counts.suspicions, 0u);
  for (const MemberRecord& m : record.members) EXPECT_TRUE(m.finished);
  for (const char* kind : {"outside", "not_settled"}) {
    EXPECT_EQ(fleet.Count(kind), 0) << kind;
  }
  for (const PeerId id : all) run.parameters.push_back(fleet.Last(id.value));
  run.corrections = fleet.corrections();
  run.missed = fleet.Count("overdue");
  return run;
}

TEST(OutageTest, AnHourWithoutTheServiceCostsNoRoundAndNoBit) {
  for (const auto deadline :
       {DeadlinePolicy::Kind::kNone, DeadlinePolicy::Kind::kAdaptive}) {
    const Trained alone = Train(deadline, absl::Hours(1));
    const Trained served = Train(deadline, absl::ZeroDuration());
    EXPECT_EQ(alone.parameters, served.parameters);
    EXPECT_EQ(alone.last_round, served.last_round);
    EXPECT_EQ(alone.corrections, served.corrections);
    EXPECT_EQ(alone.missed, served.missed);
    if (deadline == DeadlinePolicy::Kind::kNone) {
      EXPECT_EQ(alone.corrections, 2u * kPeers * kRounds) << "every exchange";
    }
  }
}

TEST(OutageTest, AServiceWithoutItsDiskCostsNoRoundAndNoBit) {
  constexpr auto kDeadline = DeadlinePolicy::Kind::kAdaptive;
  const Trained lost = Train(kDeadline, absl::Hours(1), /*loses_disk=*/true);
  const Trained served = Train(kDeadline, absl::ZeroDuration());
  EXPECT_EQ(lost.parameters, served.parameters);
  EXPECT_EQ(lost.last_round, served.last_round);
  EXPECT_EQ(lost.corrections, served.corrections);
  EXPECT_EQ(lost.missed, served.missed);
}

// The centralized baseline admits no peer, and sends none back either.
TEST(OutageTest, ACentralizedFleetGoesOnWithoutTheServicesDisk) {
  simulation::Scenario s = Long(DeadlinePolicy::Kind::kNone);
  s.schedule = ScheduleSpec{};
  s.schedule.graph = "complete";
  s.codec = "dense-f32";
  s.quantized = false;
  s.overlap = 0;
  s.gradient_codec = "dense-f32";
  s.all_reduce = "ring";
  s.fault_rounds = 600;
  std::vector<std::vector<float>> parameters[2];
  for (const bool lost : {false, true}) {
    ServicedFleet fleet(s);
    ASSERT_TRUE(RunTo(fleet, 100));
    if (lost) {
      fleet.service().Crash();
      ASSERT_TRUE(RunTo(fleet, 200));
      fleet.service().LoseDisk();
      ASSERT_TRUE(fleet.service().Start(/*old=*/false).ok());
    }
    ASSERT_TRUE(RunTo(fleet, s.fault_rounds));
    EXPECT_THAT(fleet.Finish(absl::Minutes(1)), IsEmpty());
    EXPECT_EQ(fleet.service().fleet()->record().view.epoch, 1u);
    for (const PeerId id : fleet.Everybody()) {
      parameters[lost].push_back(fleet.Last(id.value));
    }
  }
  EXPECT_EQ(parameters[0], parameters[1]);
}

// The service cannot say how far the fleet is, but the neighbours do.
TEST(OutageTest, APeerThatFreezesDuringAnOutageCatchesUp) {
  ServicedFleet fleet(Long(DeadlinePolicy::Kind::kAdaptive));
  const std::set<PeerId> all = fleet.Everybody();
  ASSERT_TRUE(RunTo(fleet, 100));
  fleet.service().Crash();
  ASSERT_TRUE(RunFor(fleet, absl::Minutes(1)));
  fleet.network().Freeze({3}, fleet.loop().Now() + absl::Seconds(20));
  ASSERT_TRUE(RunFor(fleet, absl::Seconds(20)));
  EXPECT_GT(fleet.RoundsOf(all).second, fleet.RoundsOf(all).first + 30);
  ASSERT_TRUE(RunFor(fleet, absl::Seconds(20)));
  EXPECT_LT(fleet.RoundsOf(all).second, fleet.RoundsOf(all).first + 4);
}

// The service dies after it has proposed a stop and before all have answered.
// No peer begins that round, and one of them has to leave.
TEST(OutageTest, APeerThatLeavesDoesNotWaitForAnUncommittedStop) {
  for (const auto deadline :
       {DeadlinePolicy::Kind::kNone, DeadlinePolicy::Kind::kAdaptive}) {
    ServicedFleet fleet(Long(deadline));
    const std::set<PeerId> all = fleet.Everybody();
    ASSERT_TRUE(RunTo(fleet, 100));
    fleet.peer(3).Leave();  // limit: a minute and a hundred rounds
    fleet.service().RequestStop();
    const auto proposed = [&](PeerId id) {
      return !fleet.peer(id.value).joined();
    };
    ASSERT_TRUE(fleet.Until([&] { return std::ranges::all_of(all, proposed); },
                            absl::Seconds(5)));
    ASSERT_FALSE(fleet.service().fleet()->record().stop.committed);
    const uint64_t round = fleet.service().fleet()->record().stop.round;
    fleet.service().Crash();
    ASSERT_TRUE(RunFor(fleet, absl::Minutes(1)));
    EXPECT_EQ(fleet.RoundsOf(all), std::pair(round, round));
    ASSERT_TRUE(RunFor(fleet, absl::Minutes(1)));
    EXPECT_EQ(fleet.RoundsOf({{3}}).second, 0u) << "it has ended";
    EXPECT_EQ(fleet.Count("left_late"), 1);
    EXPECT_EQ(fleet.RoundsOf({{1}, {2}, {4}, {5}, {6}}),
              std::pair(round, round));
    ASSERT_TRUE(fleet.service().Start(/*old=*/false).ok());
    EXPECT_THAT(fleet.Finish(absl::Minutes(1)), IsEmpty());
    EXPECT_EQ(fleet.service().fleet()->record().stop.round, round);
  }
}

}  // namespace outage_test
}  // namespace gossamer
