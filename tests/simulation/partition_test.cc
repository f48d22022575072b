// A network that splits for longer than a lease.  Both halves train on, the one
// with the service as a smaller fleet; afterwards they are one fleet again,
// whose mean is the mean of both, weighted by members.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/serviced_fleet.h"

namespace gossamer {
namespace partition_test {

using ::testing::IsEmpty;

constexpr int kPeers = 8;

simulation::Scenario Eight() {
  simulation::Scenario s = UsualFleet(kPeers);
  s.seed = 3;
  s.schedule.graph = "ring";
  s.codec = "innov-int8:least=16";
  s.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  s.dimension = 32;
  s.heterogeneity = 0.5;
  s.checkpoint_every = 50;
  s.step_time = absl::Milliseconds(50);
  return s;
}

double Norm(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return std::sqrt(sum);
}

// A network that is split in two, and the two groups of peers.
class Split {
 public:
  // The service stays with the peers that are not `away`.
  Split(ServicedFleet* fleet, std::set<PeerId> away)
      : fleet_(fleet), away_(std::move(away)) {
    std::ranges::set_difference(fleet_->Everybody(), away_,
                                std::inserter(home_, home_.end()));
    fleet_->network().Partition(away_);
    fleet_->service().Cut(away_, away_);
  }
  // Runs until the view has only the peers with the service, and 300 rounds
  // longer.
  void Last() {
    const auto cut = [&] {
      const View& view = fleet_->service().fleet()->record().view;
      return view.members.size() == home_.size() &&
             fleet_->RoundsOf(home_).first >= view.from_round;
    };
    ASSERT_TRUE(fleet_->Until(cut, absl::Minutes(2))) << fleet_->violation();
    for (const Member& m : fleet_->service().fleet()->record().view.members) {
      EXPECT_TRUE(home_.contains(m.id)) << m.id.value;
    }
    Train(300);
    for (const PeerId id : away_) {
      EXPECT_EQ(fleet_->peer(id.value).view().members.size(), kPeers);
    }
  }
  // Runs both halves for `rounds`, in at most twice the time of so many rounds.
  void Train(uint64_t rounds) {
    const uint64_t home = fleet_->RoundsOf(home_).first + rounds;
    const uint64_t away = fleet_->RoundsOf(away_).first + rounds;
    ASSERT_TRUE(fleet_->Until(
        [&] {
          return fleet_->RoundsOf(home_).first >= home &&
                 fleet_->RoundsOf(away_).first >= away;
        },
        2 * rounds * absl::Milliseconds(50)))
        << fleet_->violation();
  }
  void Heal() {
    fleet_->network().Heal();
    fleet_->service().Cut({}, {});
    ASSERT_TRUE(
        fleet_->Until([&] { return fleet_->Together(); }, absl::Minutes(2)))
        << fleet_->violation();
  }
  double Apart() const {
    return Norm(fleet_->MeanOf(home_), fleet_->MeanOf(away_));
  }
  const std::set<PeerId>& home() const { return home_; }
  const std::set<PeerId>& away() const { return away_; }

 private:
  ServicedFleet* const fleet_;
  const std::set<PeerId> away_;
  std::set<PeerId> home_;
};

struct Case {
  std::string graph;
  int overlap;
  std::set<PeerId> away;
};

class PartitionTest : public testing::TestWithParam<Case> {
 protected:
  static simulation::Scenario Scenario() {
    simulation::Scenario s = Eight();
    s.schedule.graph = GetParam().graph;
    s.overlap = GetParam().overlap;
    return s;
  }
  static bool Trained(ServicedFleet& fleet, uint64_t rounds) {
    return fleet.Until(
        [&] {
          return fleet.Together() &&
                 fleet.RoundsOf(fleet.Everybody()).first >= rounds;
        },
        absl::Minutes(1));
  }
};

// From before the halves meet nothing but mixing moves parameters, so that the
// mean shows the effect of the merger.
TEST_P(PartitionTest, TheHalvesMergeIntoTheirMean) {
  ServicedFleet fleet(Scenario());
  ASSERT_TRUE(Trained(fleet, 50)) << fleet.violation();
  Split split(&fleet, GetParam().away);
  ASSERT_NO_FATAL_FAILURE(split.Last());
  fleet.SetCalm(true);
  ASSERT_NO_FATAL_FAILURE(split.Train(200));
  const double apart = split.Apart();
  EXPECT_GT(apart, 0.5) << "each half is near the solution of its own games";
  EXPECT_LT(std::sqrt(fleet.ConsensusDistance(split.home())), 0.01 * apart);
  EXPECT_LT(std::sqrt(fleet.ConsensusDistance(split.away())), 0.01 * apart);
  const std::vector<double> mean = fleet.MeanOf(fleet.Everybody());

  ASSERT_NO_FATAL_FAILURE(split.Heal());
  EXPECT_EQ(fleet.Count("outside"), static_cast<int>(split.away().size()));
  const uint64_t from = fleet.RoundsOf(fleet.Everybody()).second;
  ASSERT_TRUE(Trained(fleet, from + 150)) << fleet.violation();
  EXPECT_LT(std::sqrt(fleet.ConsensusDistance(fleet.Everybody())),
            0.01 * apart);
  EXPECT_LT(Norm(fleet.MeanOf(fleet.Everybody()), mean), 0.01 * apart);
  EXPECT_THAT(fleet.Stop(), IsEmpty());
}

// The second time another half is away, with peers among it that were away
// before.
TEST_P(PartitionTest, TrainingGoesOnThroughTwoSplits) {
  ServicedFleet fleet(Scenario());
  ASSERT_TRUE(Trained(fleet, 50)) << fleet.violation();
  uint64_t removals = 0;
  for (const std::set<PeerId>& away :
       {GetParam().away, std::set<PeerId>{{1}, {7}, {8}}}) {
    Split split(&fleet, away);
    ASSERT_NO_FATAL_FAILURE(split.Last());
    const double apart = split.Apart();
    EXPECT_GT(apart, 0.5);
    ASSERT_NO_FATAL_FAILURE(split.Heal());
    removals += away.size();
    EXPECT_EQ(fleet.service().fleet()->record().counts.removals, removals);
    EXPECT_EQ(fleet.service().fleet()->record().counts.returns, removals);
    const uint64_t from = fleet.RoundsOf(fleet.Everybody()).second;
    ASSERT_TRUE(Trained(fleet, from + 300)) << fleet.violation();
    EXPECT_LT(split.Apart(), apart / 3) << "their games pull them apart";
  }
  fleet.SetCalm(true);
  const uint64_t from = fleet.RoundsOf(fleet.Everybody()).second;
  ASSERT_TRUE(Trained(fleet, from + 150)) << fleet.violation();
  EXPECT_LT(std::sqrt(fleet.ConsensusDistance(fleet.Everybody())), 0.01);
  EXPECT_THAT(fleet.Stop(), IsEmpty());
}

const std::set<PeerId> kThree = {{6}, {7}, {8}};
const std::set<PeerId> kFour = {{1}, {2}, {3}, {4}};
const std::set<PeerId> kFive = {{1}, {2}, {3}, {4}, {5}};

INSTANTIATE_TEST_SUITE_P(, PartitionTest,
                         testing::Values(Case{"ring", 1, kThree},
                                         Case{"ring", 3, kFive},
                                         Case{"ring", 0, kFour},
                                         Case{"ring", 1, {{8}}},
                                         Case{"permuted-ring", 1, kFour},
                                         Case{"permuted-ring", 0, kFive},
                                         Case{"random-matching", 2, kFour}),
                         [](const testing::TestParamInfo<Case>& info) {
                           std::string name = absl::StrCat(
                               info.param.graph, "_h", info.param.overlap, "_",
                               info.param.away.size(), "away");
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace partition_test
}  // namespace gossamer
