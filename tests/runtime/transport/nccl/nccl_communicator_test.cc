// One communicator at each of its members: pairs, their names, sums, errors.

#include "runtime/transport/nccl/nccl_communicator.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

SharedBytes Bytes(std::vector<int> values) {
  std::vector<std::byte> bytes;
  for (const int v : values) bytes.push_back(static_cast<std::byte>(v));
  return SharedBytes::FromVector(std::move(bytes));
}

// So many members of one communicator that is complete.
class Members {
 public:
  Members(int n, FakeNcclOptions options) : nccl_(&loop_, options) {
    NcclUniqueId id;
    for (int rank = 0; rank < n; ++rank) {
      gpus_.push_back(nccl_.NewRank(absl::StrCat("gpu", rank)));
      if (rank == 0) gpus_[0]->GetUniqueId(&id);
      comms_.push_back(std::make_unique<NcclCommunicator>(
          gpus_[rank].get(), gpus_[rank].get(), n, rank));
      EXPECT_TRUE(comms_.back()->Make(id).ok());
    }
    loop_.RunFor(absl::Seconds(1));
    for (const auto& comm : comms_) {
      EXPECT_TRUE(comm->PollMaking().ok());
      EXPECT_TRUE(comm->ready());
    }
  }
  NcclCommunicator& operator[](int rank) { return *comms_[rank]; }
  void Run() { loop_.RunFor(absl::Seconds(1)); }

 private:
  VirtualLoop loop_;
  FakeNccl nccl_;
  std::vector<std::unique_ptr<FakeNccl::Rank>> gpus_;
  std::vector<std::unique_ptr<NcclCommunicator>> comms_;
};

TEST(NcclCommunicatorTest, APairExchangesBodiesOfAnySize) {
  Members members(2, {});
  ASSERT_TRUE(members[0].Exchange(1, Bytes({1, 2, 3}), 1, 77).ok());
  EXPECT_FALSE(members[0].PollOperation()->has_value());
  ASSERT_TRUE(members[1].Exchange(0, Bytes({9}), 3, 77).ok());
  members.Run();
  // The first poll puts the copy to the host behind it.
  const auto at_first = members[0].PollOperation();
  const auto at_second = members[1].PollOperation();
  ASSERT_TRUE(at_first.ok() && at_first->has_value());
  ASSERT_TRUE(at_second.ok() && at_second->has_value());
  EXPECT_TRUE(std::ranges::equal((*at_first)->bytes(), Bytes({9}).bytes()));
  EXPECT_TRUE(
      std::ranges::equal((*at_second)->bytes(), Bytes({1, 2, 3}).bytes()));
  EXPECT_FALSE(members[0].busy());
}

TEST(NcclCommunicatorTest, TheBodyOfAnotherExchangeIsAnErrorAtBothEnds) {
  Members members(2, {});
  ASSERT_TRUE(members[0].Exchange(1, Bytes({1}), 1, 77).ok());
  ASSERT_TRUE(members[1].Exchange(0, Bytes({2}), 1, 78).ok());
  members.Run();
  for (const int rank : {0, 1}) {
    EXPECT_THAT(std::string(members[rank].PollOperation().status().message()),
                HasSubstr("another exchange"));
  }
}

TEST(NcclCommunicatorTest, ASumIsThatOfAllMembersAndTheSameAtAll) {
  Members members(3, {});
  std::vector<std::shared_ptr<DeviceVector<float>>> values;
  for (int rank = 0; rank < 3; ++rank) {
    const auto r = static_cast<float>(rank);
    values.push_back(
        std::make_shared<DeviceVector<float>>(DeviceVector<float>::Of(
            DeviceQueue::Host(), std::vector<float>{1 + r, 0.5f * r, -r})));
    ASSERT_TRUE(members[rank].Sum(values.back()).ok());
  }
  members.Run();
  for (int rank = 0; rank < 3; ++rank) {
    const auto sum = members[rank].PollOperation();
    ASSERT_TRUE(sum.ok() && sum->has_value());
    EXPECT_EQ(values[static_cast<size_t>(rank)]->ToHost(),
              (std::vector<float>{6, 1.5f, -3}));
  }
}

TEST(NcclCommunicatorTest, AnErrorOfNcclIsOneOfTheOperation) {
  Members members(2, {.error = 1});
  ASSERT_TRUE(members[0].Exchange(1, Bytes({1}), 1, 77).ok());
  ASSERT_TRUE(members[1].Exchange(0, Bytes({2}), 1, 77).ok());
  members.Run();
  EXPECT_FALSE(members[0].PollOperation().ok());
  members[0].End(NcclEvent::kFailed);
  EXPECT_EQ(members[0].state(), NcclState::kBroken);
  EXPECT_FALSE(members[0].busy());
}

}  // namespace
}  // namespace gossamer
