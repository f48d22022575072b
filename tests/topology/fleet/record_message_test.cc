// The stored record of a fleet comes back as it was, and an impossible one is
// refused by name.

#include "topology/fleet/record_message.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/topology.pb.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace record_message_test {

using ::testing::HasSubstr;

FleetRecord Sample() {
  FleetRecord record;
  record.members = {{.id = {1}, .address = "a:1", .checkpoint_rounds = {5}},
                    {.id = {2}, .address = "b:1", .checkpoint_rounds = {}}};
  record.assembled = true;
  record.view.epoch = 1;
  record.view.members = {{{1}, "a:1"}, {{2}, "b:1"}};
  return record;
}

TEST(RecordMessageTest, AnImpossibleRecordIsRefusedWithTheReason) {
  struct Case {
    std::function<void(wire::StoredFleet&)> damage;
    std::string says;
  };
  const Case cases[] = {
      {[](auto& m) { m.set_format(2); }, "format 2"},
      {[](auto& m) { m.set_stop_round(kMaxRound + 1); }, "stop"},
      {[](auto& m) { m.mutable_members(1)->set_peer_id(1); }, "ascend"},
      {[](auto& m) { m.mutable_members(0)->set_peer_id(0); }, "ascend"},
      {[](auto& m) { m.mutable_members(1)->clear_address(); },
       "peer 2 has no proper address"},
      {[](auto& m) {
         m.mutable_members(0)->set_device(
             std::string(kMaxDeviceBytes + 1, 'd'));
       },
       "peer 1 has no proper device"},
      {[](auto& m) { m.mutable_members(0)->set_standing(5); }, "standing 5"},
      {[](auto& m) { m.mutable_members(0)->set_resume_round(~0ULL); },
       "rounds out of range"},
      {[](auto& m) {
         for (size_t i = 0; i <= kMaxCheckpointRounds; ++i) {
           m.mutable_members(0)->add_checkpoint_rounds(i);
         }
       },
       "rounds out of range"},
      {[](auto& m) { m.mutable_members()->RemoveLast(); },
       "peer 2 is in the view"},
      {[](auto& m) { m.mutable_view()->set_graph("nonsense"); }, "nonsense"},
      {[](auto& m) { m.mutable_view()->clear_member_id(); }, "0 ids"},
  };
  for (const Case& c : cases) {
    wire::StoredFleet stored;
    ASSERT_TRUE(stored.ParseFromString(ToBytes(Sample())));
    c.damage(stored);
    const auto record = RecordFromBytes(stored.SerializeAsString());
    EXPECT_EQ(record.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(record.status().message()), HasSubstr(c.says));
  }
  EXPECT_TRUE(RecordFromBytes(ToBytes(Sample())).ok());
}

// A gathering fleet keeps the last view of the run before.
TEST(RecordMessageTest, AGatheringFleetMayLackMembersOfItsView) {
  FleetRecord record = Sample();
  record.assembled = false;
  record.members.pop_back();
  const auto read = RecordFromBytes(ToBytes(record));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->members, record.members);
}

}  // namespace record_message_test
}  // namespace gossamer
