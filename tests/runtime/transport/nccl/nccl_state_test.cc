// The transition table of a communicator, row by row.

#include "runtime/transport/nccl/nccl_state.h"

#include <array>
#include <cstddef>
#include <iterator>
#include <map>

#include "gtest/gtest.h"

namespace gossamer {
namespace nccl_state_test {

TEST(NcclStateTest, EveryStateAndEvent) {
  using enum NcclState;
  // By state, in the order of kNcclEvents: id, made, met, failed, late, remote
  // abort, replaced.
  const std::map<NcclState, std::array<NcclState, 7>> table = {
      {kWaiting,
       {kMaking, kWaiting, kWaiting, kBroken, kBroken, kBroken, kGone}},
      {kMaking, {kMaking, kMeeting, kMaking, kBroken, kBroken, kBroken, kGone}},
      {kMeeting,
       {kMeeting, kMeeting, kReady, kBroken, kBroken, kBroken, kGone}},
      {kReady, {kReady, kReady, kReady, kBroken, kBroken, kBroken, kGone}},
      {kBroken, {kBroken, kBroken, kBroken, kBroken, kBroken, kBroken, kGone}},
      {kGone, {kGone, kGone, kGone, kGone, kGone, kGone, kGone}}};
  ASSERT_EQ(table.size(), std::size(kNcclStates));
  for (const auto& [state, row] : table) {
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(NextState(state, kNcclEvents[i]), row[i])
          << NameOf(state) << ", event " << i;
    }
  }
}

// Only the next view brings NCCL back.
TEST(NcclStateTest, NothingLeadsFromBrokenToReady) {
  for (const NcclEvent event : kNcclEvents) {
    for (const NcclEvent next : kNcclEvents) {
      EXPECT_NE(NextState(NextState(NcclState::kBroken, event), next),
                NcclState::kReady);
    }
  }
}

}  // namespace nccl_state_test
}  // namespace gossamer
