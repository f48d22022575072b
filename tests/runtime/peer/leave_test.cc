// A peer of a centralized fleet that has to leave while the service does not
// answer: the others cannot continue without it, and cannot agree on an end
// either.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/forwarding_membership.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace leave_test {

// A membership whose service does not answer.
class Unanswered final : public ForwardingMembership {
 public:
  using ForwardingMembership::ForwardingMembership;
  void RequestStop() override {}
};

class LeaveTest : public testing::TestWithParam<int> {
 protected:
  LeaveTest() : folder_(testing::TempDir() + "leave_test") {
    std::filesystem::remove_all(folder_);
  }
  ~LeaveTest() override { std::filesystem::remove_all(folder_); }
  const std::string folder_;
};

// With several steps a round the peer leaves within one.  Its state then is
// none that the others had, and must not pass for the checkpoint of that round.
TEST_P(LeaveTest, APeerLeavesACentralizedFleetWithoutTheServicesAnswer) {
  SimFleetOptions o = FarCentralizedFleet();
  o.peer.rounds = 100000;
  o.peer.steps_per_round = GetParam();
  o.peer.checkpoint_every = 100;
  o.peer.liveness_limit = absl::Minutes(1);
  o.checkpoints = folder_;
  o.membership = [](std::unique_ptr<Membership> fleet) {
    return std::make_unique<Unanswered>(std::move(fleet));
  };
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunFor(absl::Seconds(20));
  const absl::Time limit = fleet.loop().Now() + absl::Seconds(8);
  fleet.peer(1).Leave(limit);
  fleet.loop().RunFor(absl::Seconds(9));
  ASSERT_TRUE(fleet.peer(1).left());
  EXPECT_TRUE(fleet.StatusOf(1).ok()) << fleet.StatusOf(1);
  EXPECT_EQ(fleet.recorder(1).Count("left_late"), 1);
  EXPECT_EQ(fleet.recorder(1).Count("left"), 1);
  EXPECT_EQ(fleet.recorder(1).Count("not_settled"), 0);
  EXPECT_EQ(fleet.recorder(1).events.back().kind, EventKind("left"));
  EXPECT_LT(fleet.recorder(1).events.back().time, limit + absl::Seconds(1));

  const uint64_t round = fleet.peer(1).round();
  ASSERT_GT(round, 2u);
  CheckpointStore store(absl::StrCat(folder_, "/peer-1"), 2);
  const auto newest = store.Load(round);
  const bool within = fleet.peer(1).steps() % GetParam() != 0;
  EXPECT_EQ(within, GetParam() != 1);
  EXPECT_EQ(newest.ok(), !within) << newest.status();

  // The others find it dead.
  EXPECT_FALSE(fleet.Run(absl::Minutes(3)));
  for (const int other : {0, 2, 3}) {
    EXPECT_EQ(fleet.StatusOf(other).code(),
              absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(fleet.StatusOf(other).message()),
                testing::HasSubstr("a peer is gone"));
  }
}

// The first view that a member gets has its departure.
class HeardLate final : public ForwardingMembership {
 public:
  HeardLate(std::unique_ptr<Membership> fleet, PeerId member)
      : ForwardingMembership(std::move(fleet)), member_(member) {}
  const View& view() const override {
    view_ = ForwardingMembership::view();
    std::erase_if(view_.members,
                  [this](const Member& m) { return m.id == member_; });
    view_.departures = {{.id = member_, .round = 9, .address = "there"}};
    return view_;
  }

 private:
  const PeerId member_;
  mutable View view_;
};

TEST(FirstViewTest, APeerWhoseFirstViewHasItsDepartureDoesNotTrain) {
  SimFleetOptions o = QuadraticFleet(4, 60);
  o.membership = [rank = 0](std::unique_ptr<Membership> fleet) mutable {
    return std::make_unique<HeardLate>(std::move(fleet),
                                       SimFleet::IdOf(rank++));
  };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_TRUE(fleet.peer(0).left());
  EXPECT_EQ(fleet.peer(0).steps(), 0u);
}

INSTANTIATE_TEST_SUITE_P(StepsPerRound, LeaveTest, testing::Values(1, 7));

}  // namespace leave_test
}  // namespace gossamer
