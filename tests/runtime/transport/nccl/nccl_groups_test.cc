// The communicators of the views that members know: how they come to be, and
// when they close.

#include "runtime/transport/nccl/nccl_groups.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer {
namespace nccl_groups_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kDeadline = absl::Milliseconds(500);
constexpr absl::Duration kMaking = absl::Seconds(10);

View ViewOf(uint64_t epoch, uint64_t from_round, uint64_t peers = 2) {
  View view;
  view.epoch = epoch;
  view.from_round = from_round;
  view.schedule.graph = "complete";
  for (uint64_t id = 1; id <= peers; ++id) {
    const NcclPlace place{"host", absl::StrCat("gpu", id), 22809};
    view.members.push_back(
        {.id = {id}, .address = "sim", .device = place.Text()});
  }
  return view;
}

class NcclGroupsTest : public ::testing::Test {
 protected:
  struct Member {
    std::unique_ptr<FakeNccl::Rank> rank;
    std::unique_ptr<NcclGroups> groups;
    uint64_t made = 0;  // the key of the last communicator
    std::vector<NcclEvent> ends;
  };
  NcclGroupsTest() : nccl_(&loop_, {}) {
    for (uint64_t id = 1; id <= 2; ++id) {
      Member& member = members_[id];
      member.rank = nccl_.NewRank(absl::StrCat("gpu", id));
      member.groups = std::make_unique<NcclGroups>(
          member.rank.get(), member.rank.get(),
          NcclGroupsOptions{
              .self = {id},
              .deadline = kDeadline,
              .making = kMaking,
              .send_id =
                  [this](PeerId to, uint64_t key, SharedBytes bytes) {
                    ids_.push_back({to, key, std::move(bytes)});
                  },
              .on_made =
                  [&member](uint64_t key) {
                    member.made = key;
                    NcclCommunicator& comm = member.groups->Find(key)->comm;
                    if (comm.busy()) return;
                    EXPECT_TRUE(comm.Meet(key).ok());
                  },
              .on_end = [&member](
                            const NcclPlan&,
                            NcclEvent why) { member.ends.push_back(why); }});
    }
  }
  NcclGroups& groups(uint64_t id) { return *members_.at(id).groups; }
  std::vector<NcclEvent>& ends(uint64_t id) { return members_.at(id).ends; }
  void Prepare(const View& view) {
    for (auto& [id, member] : members_) {
      member.groups->Prepare(view, loop_.Now());
    }
  }
  // The ids that are on their way come, each from the only other member.
  void Deliver() {
    while (!ids_.empty()) {
      const Id id = std::move(ids_.front());
      ids_.pop_front();
      groups(id.to.value).OnId({3 - id.to.value}, id.key, id.bytes);
    }
  }
  void RunFor(absl::Duration time) {
    loop_.RunFor(time);
    for (auto& [id, member] : members_) member.groups->Poll(loop_.Now());
  }
  // The communicators that are under way are made, and their members meet.
  void Make() {
    RunFor(absl::Seconds(1));
    RunFor(absl::Seconds(1));
    for (auto& [id, member] : members_) {
      EXPECT_TRUE(
          member.groups->Find(member.made)->comm.PollOperation()->has_value());
      member.groups->OnMet(member.made);
    }
  }
  // Whether the communicator of a round can be used at that member.
  bool Ready(uint64_t id, uint64_t round) {
    const NcclGroups::Group* const group =
        groups(id).ForRound(round, loop_.Now());
    return group != nullptr && group->comm.ready();
  }

  struct Id {
    PeerId to;
    uint64_t key = 0;
    SharedBytes bytes;
  };
  VirtualLoop loop_;
  FakeNccl nccl_;
  std::deque<Id> ids_;
  std::map<uint64_t, Member> members_;
};

TEST_F(NcclGroupsTest, AnIdMayComeBeforeItsView) {
  EXPECT_TRUE(groups(1).Prepare(ViewOf(1, 1), loop_.Now()));
  Deliver();
  EXPECT_TRUE(groups(2).Prepare(ViewOf(1, 1), loop_.Now()));
  Make();
  EXPECT_TRUE(Ready(1, 1));
  EXPECT_TRUE(Ready(2, 1));
  EXPECT_FALSE(Ready(2, 0)) << "no view has that round";
}

// A neighbour that is no member may name what it likes.
TEST_F(NcclGroupsTest, OnlyMembersWordsCount) {
  const SharedBytes other =
      SharedBytes::FromVector(std::vector<std::byte>(sizeof(NcclUniqueId)));
  EXPECT_TRUE(groups(1).Prepare(ViewOf(1, 1), loop_.Now()));
  const uint64_t key = ids_.front().key;
  for (int i = 0; i < 100; ++i) groups(2).OnId({3}, key, other);
  Deliver();
  EXPECT_TRUE(groups(2).Prepare(ViewOf(1, 1), loop_.Now()));
  groups(2).OnId({3}, key, other);
  Make();
  EXPECT_TRUE(Ready(2, 1)) << "made of the member's id";
  groups(2).OnBroken({3}, key);
  EXPECT_TRUE(Ready(2, 1));
  groups(2).OnBroken({1}, key);
  EXPECT_FALSE(Ready(2, 1));
  EXPECT_THAT(ends(2), ElementsAre(NcclEvent::kRemoteAbort));
}

TEST_F(NcclGroupsTest, AViewThatIsKnownChangesNothing) {
  Prepare(ViewOf(1, 1));
  EXPECT_FALSE(groups(1).Prepare(ViewOf(1, 1), loop_.Now()));
  EXPECT_FALSE(groups(1).Prepare(ViewOf(0, 1), loop_.Now())) << "no view yet";
  EXPECT_FALSE(groups(1).Prepare(ViewOf(2, 5, /*peers=*/1), loop_.Now()))
      << "nothing is to be made for one member";
}

TEST_F(NcclGroupsTest, ANewConnectionBringsTheIdAgain) {
  Prepare(ViewOf(1, 1));
  ids_.clear();  // lost with the connection
  groups(1).OnUp({2});
  groups(2).OnUp({1});
  EXPECT_EQ(ids_.size(), 1u) << "peer 2 has none";
  Deliver();
  Make();
  EXPECT_TRUE(Ready(2, 1));
}

TEST_F(NcclGroupsTest, ALaterViewTakesOverAtItsRound) {
  Prepare(ViewOf(1, 1));
  Deliver();
  Make();
  Prepare(ViewOf(2, 10));
  Deliver();
  Make();
  const uint64_t first = groups(1).ForRound(9, loop_.Now())->plan.key();
  const uint64_t second = groups(1).ForRound(10, loop_.Now())->plan.key();
  EXPECT_NE(first, second);
  // The other end may be at round 9 for two deadlines.
  RunFor(2 * kDeadline - absl::Nanoseconds(1));
  EXPECT_TRUE(groups(1).Ready(first));
  EXPECT_EQ(groups(1).NextPoll(loop_.Now()),
            loop_.Now() + absl::Nanoseconds(1));
  RunFor(absl::Nanoseconds(1));
  EXPECT_EQ(groups(1).Find(first), nullptr);
  EXPECT_TRUE(groups(1).Ready(second));
  EXPECT_THAT(ends(1), ElementsAre(NcclEvent::kReplaced));
  EXPECT_EQ(groups(1).broken(), 0u);
  EXPECT_THAT(ends(2), IsEmpty()) << "it has not come to round 10";
}

TEST_F(NcclGroupsTest, ABrokenCommunicatorEndsOnce) {
  Prepare(ViewOf(1, 1));
  Deliver();
  Make();
  const uint64_t key = groups(1).ForRound(1, loop_.Now())->plan.key();
  groups(1).End(key, NcclEvent::kRemoteAbort, "as the other one says");
  groups(1).End(key, NcclEvent::kLate, "and the watchdog");
  groups(1).End(key + 1, NcclEvent::kLate, "of no group");
  EXPECT_THAT(ends(1), ElementsAre(NcclEvent::kRemoteAbort));
  EXPECT_EQ(groups(1).broken(), 1u);
  EXPECT_FALSE(groups(1).Ready(key));
}

// All members meet in one order.
TEST_F(NcclGroupsTest, MembersMeetInTheOrderOfTheViews) {
  Prepare(ViewOf(1, 1));
  Prepare(ViewOf(2, 10));
  Deliver();
  Make();
  EXPECT_TRUE(Ready(1, 1));
  EXPECT_EQ(groups(1).ForRound(10, loop_.Now())->comm.state(),
            NcclState::kMeeting);
  Make();
  EXPECT_TRUE(Ready(1, 10));
}

TEST_F(NcclGroupsTest, AViewThatLacksAMemberReplacesWhatIsNotReady) {
  Prepare(ViewOf(1, 1, /*peers=*/3));
  ASSERT_EQ(groups(1).ForRound(1, loop_.Now())->plan.group().size(), 3u);
  ids_.clear();  // of three
  Prepare(ViewOf(2, 10));
  EXPECT_THAT(ends(1), ElementsAre(NcclEvent::kReplaced));
  EXPECT_EQ(groups(1).broken(), 0u);
  Deliver();
  Make();
  EXPECT_TRUE(Ready(1, 10));
}

TEST_F(NcclGroupsTest, ACommunicatorWhoseIdDoesNotComeIsGivenUp) {
  Prepare(ViewOf(1, 1));
  EXPECT_EQ(groups(2).NextPoll(loop_.Now()), loop_.Now() + kMaking);
  RunFor(kMaking);
  EXPECT_THAT(ends(2), ElementsAre(NcclEvent::kLate));
}

}  // namespace nccl_groups_test
}  // namespace gossamer
