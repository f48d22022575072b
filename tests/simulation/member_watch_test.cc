// The watch accepts changes that the rules allow, and names evictions,
// admissions and beginnings that they do not.

#include "tests/simulation/member_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace gossamer::simulation {
namespace member_watch_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kLease = absl::Seconds(4);

MemberRecord MemberOf(uint64_t id, uint64_t incarnation, bool in_view) {
  MemberRecord m;
  m.id = {id};
  m.incarnation_id = incarnation;
  m.in_view = in_view;
  return m;
}

// Three members, in the view from the start.
class MemberWatchTest : public testing::Test {
 protected:
  MemberWatchTest() {
    for (const uint64_t id : {1, 2, 3}) {
      record_.members.push_back(MemberOf(id, id, true));
      Register(id, id, /*checkpoints=*/1);
    }
    watch_.Started(record_, now_);
  }
  void Register(uint64_t id, uint64_t incarnation, int checkpoints) {
    wire::RegisterRequest r;
    r.set_peer_id(id);
    r.set_incarnation_id(incarnation);
    for (int i = 0; i < checkpoints; ++i) r.add_checkpoint_rounds(9);
    watch_.Registered(r, now_);
  }
  void Beat(uint64_t id, std::vector<uint64_t> suspected = {},
            bool ready = false) {
    wire::HeartbeatRequest h;
    h.set_peer_id(id);
    h.set_incarnation_id(record_.members[id - 1].incarnation_id);
    for (const uint64_t s : suspected) h.add_suspected(s);
    h.set_ready(ready);
    watch_.Heard(h, now_);
  }
  std::string Evict(uint64_t id) {
    MemberRecord& m = record_.members[id - 1];
    m.standing = Standing::kEvicted;
    m.in_view = false;
    ++m.removals;
    return watch_.Changed(record_, now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000);
  FleetRecord record_;
  MemberWatch watch_{kLease};
};

TEST_F(MemberWatchTest, AnEvictionNeedsAMissedLeaseAndASuspicion) {
  now_ += absl::Seconds(5);
  Beat(1);
  Beat(2, {3});
  EXPECT_THAT(Evict(3), IsEmpty());
}

// Three new incarnations that all have the checkpoint of round 9.
TEST_F(MemberWatchTest, AFleetThatIgnoresASharedCheckpointIsFound) {
  for (MemberRecord& m : record_.members) {
    m.incarnation_id += 10;
    m.in_view = false;
    Register(m.id.value, m.incarnation_id, /*checkpoints=*/1);
  }
  EXPECT_THAT(watch_.Changed(record_, now_), IsEmpty());
  const FleetRecord waiting = record_;
  for (MemberRecord& m : record_.members) m.in_view = true;
  record_.view.from_round = 9;
  EXPECT_THAT(watch_.Changed(record_, now_), IsEmpty());
  watch_.Started(waiting, now_);
  record_.view.from_round = 1;
  EXPECT_THAT(watch_.Changed(record_, now_),
              HasSubstr("begins at round 1, though all have the checkpoint of "
                        "round 9"));
}

TEST_F(MemberWatchTest, AnEvictionOfAMemberThatNobodySuspectsIsFound) {
  now_ += absl::Seconds(5);
  Beat(1);
  Beat(2);
  EXPECT_THAT(Evict(3), HasSubstr("too few of its neighbours"));
}

TEST_F(MemberWatchTest, AnEvictionThatOnlyOneOfTwoNeighborsSupportsIsFound) {
  for (const MemberRecord& m : record_.members) {
    record_.view.members.push_back({.id = m.id, .address = "host"});
  }
  for (const bool both : {false, true}) {
    watch_.Started(record_, now_);
    now_ += absl::Seconds(5);
    Beat(1, both ? std::vector<uint64_t>{3} : std::vector<uint64_t>());
    Beat(2, {3});
    const FleetRecord before = record_;
    EXPECT_EQ(Evict(3).empty(), both);
    record_ = before;
  }
}

TEST_F(MemberWatchTest, APeerThatDiesThreeTimesBeforeTrainingMayBeEvicted) {
  for (const uint64_t incarnation : {13, 23, 33}) {
    const FleetRecord before = record_;
    EXPECT_THAT(Evict(3), HasSubstr("renewed its lease")) << incarnation;
    record_ = before;
    watch_.Started(record_, now_);
    Register(3, incarnation, /*checkpoints=*/1);
  }
  EXPECT_THAT(Evict(3), IsEmpty());
}

TEST_F(MemberWatchTest, AnEvictionOfAMemberWithARenewedLeaseIsFound) {
  now_ += absl::Seconds(5);
  Beat(2, {3});
  Beat(3);
  EXPECT_THAT(Evict(3), HasSubstr("renewed its lease"));
}

TEST_F(MemberWatchTest, AnEvictionByAServiceThatHasJustStartedIsFound) {
  now_ += absl::Seconds(5);
  watch_.Started(record_, now_);
  Beat(2, {3});
  EXPECT_THAT(Evict(3), HasSubstr("not been up for a lease"));
}

TEST_F(MemberWatchTest, AMemberThatEntersWithoutParametersIsFound) {
  MemberRecord& m = record_.members[2];
  Register(3, 33, /*checkpoints=*/0);
  m = MemberOf(3, 33, false);
  EXPECT_THAT(watch_.Changed(record_, now_), IsEmpty());
  m.in_view = true;
  EXPECT_THAT(watch_.Changed(record_, now_), HasSubstr("no parameters"));
  m.in_view = false;
  EXPECT_THAT(watch_.Changed(record_, now_), IsEmpty());
  Beat(3, {}, /*ready=*/true);
  m.in_view = true;
  EXPECT_THAT(watch_.Changed(record_, now_), IsEmpty());
}

// The last peer with parameters leaves, and the others begin anew.
TEST_F(MemberWatchTest, AFleetOfOnlyNewProcessesNeedsNoParameters) {
  for (const uint64_t id : {1, 2}) {
    Register(id, 10 + id, /*checkpoints=*/0);
    record_.members[id - 1] = MemberOf(id, 10 + id, false);
  }
  EXPECT_THAT(watch_.Changed(record_, now_), IsEmpty());
  record_.members[2].standing = Standing::kLeft;
  for (const uint64_t id : {1, 2}) record_.members[id - 1].in_view = true;
  EXPECT_THAT(watch_.Changed(record_, now_), IsEmpty());
}

// No peer has parameters of a fleet that begins.
TEST_F(MemberWatchTest, AFleetThatBeginsNeedsNoParameters) {
  for (MemberRecord& m : record_.members) {
    Register(m.id.value, 10 + m.id.value, /*checkpoints=*/0);
    m.incarnation_id = 10 + m.id.value;
    m.in_view = true;
  }
  EXPECT_THAT(watch_.Changed(record_, now_), IsEmpty());
}

}  // namespace member_watch_test
}  // namespace gossamer::simulation
