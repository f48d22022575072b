// Ten thousand peers: they assemble, a tenth fails at once, and a thousand
// join.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/topology/fleet/beating_fleet.h"

namespace gossamer {
namespace large_fleet_test {

constexpr int kPeers = 10'000;

class LargeFleetTest : public BeatingFleet {
 protected:
  void SetUp() override {
    options_.elastic = true;
    options_.schedule.degree = 4;
    Assemble(kPeers, "random-regular");
  }
  // Peers take up the views that they are told of.
  void RunAndAdopt(int seconds) {
    for (int s = 0; s < seconds; ++s) {
      Run(1);
      for (auto& [id, beat] : beats_) {
        const auto& view = answers_[id].view;
        if (view == nullptr) continue;
        beat.view_generation = view->generation;
        beat.view_epoch = view->epoch;
        uint64_t& round = beat.report.round;
        beat.round_begun = round = std::max(round, view->from_round);
      }
    }
  }
};

TEST_F(LargeFleetTest, LosesATenthAtOnceAndTakesAThousandIn) {
  RunAndAdopt(3);
  ASSERT_EQ(Members().size(), kPeers);
  EXPECT_EQ(answers_[1].view, nullptr) << "all know it";
  // Every tenth is silent, and the first living members after it suspect it.
  const auto schedule = *fleet_->record().view.MakeSchedule();
  for (uint64_t id = 10; id <= kPeers; id += 10) {
    beats_.erase(id);
    for (const Neighbor& n :
         schedule->Row(static_cast<int>(id) - 1, 1).neighbors) {
      const auto beat = beats_.find(static_cast<uint64_t>(n.rank) + 1);
      if (beat != beats_.end()) beat->second.suspected.push_back({id});
    }
  }
  const uint64_t before = fleet_->record().view.epoch;
  RunAndAdopt(8);
  // A few have one living neighbour or none, and a suspicion needs two.
  EXPECT_LT(Members().size(), kPeers * 0.91);
  EXPECT_LE(fleet_->record().view.epoch - before, 6) << "views for a thousand";
  for (auto& [id, beat] : beats_) beat.suspected.clear();
  const size_t left = Members().size();
  for (uint64_t id = kPeers + 1; id <= kPeers + 1000; ++id) {
    ASSERT_TRUE(Register(id, 100 + id).ok());
    beats_[id] = Beat(id, 100 + id);
    beats_[id].ready = true;
    beats_[id].round_begun = beats_[id].report.round = 0;
  }
  RunAndAdopt(12);
  EXPECT_EQ(Members().size(), left + 1000);
}

}  // namespace large_fleet_test
}  // namespace gossamer
