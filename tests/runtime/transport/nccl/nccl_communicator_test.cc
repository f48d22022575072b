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
namespace nccl_communicator_test {

using ::testing::HasSubstr;

SharedBytes Bytes(std::vector<int> values) {
  std::vector<std::byte> bytes;
  for (const int v : values) bytes.push_back(static_cast<std::byte>(v));
  return SharedBytes::FromVector(std::move(bytes));
}

// So many members of one communicator that have met.
class Members {
 public:
  Members(int n, FakeNcclOptions options) : nccl_(&loop_, options) {
    NcclUniqueId id;
    for (int rank = 0; rank < n; ++rank) {
      gpus_.push_back(nccl_.NewRank(absl::StrCat("gpu", rank)));
      if (rank == 0) gpus_[0]->GetUniqueId(&id);
      std::vector<int> others;
      for (int other = 0; other < n; ++other) {
        if (other != rank) others.push_back(other);
      }
      comms_.push_back(std::make_unique<NcclCommunicator>(
          gpus_[rank].get(), gpus_[rank].get(), n, rank, others,
          NcclCommunicator::Patience{absl::Seconds(2), absl::Seconds(30)}));
      EXPECT_TRUE(comms_.back()->Make(id).ok());
    }
    loop_.RunFor(absl::Seconds(1));
    for (const auto& comm : comms_) {
      EXPECT_TRUE(comm->PollMaking().ok());
      EXPECT_EQ(comm->state(), NcclState::kMeeting);
      EXPECT_TRUE(comm->Meet(/*name=*/5).ok());
      EXPECT_FALSE(comm->PollOperation()->has_value());
    }
    loop_.RunFor(absl::Seconds(1));
    for (const auto& comm : comms_) {
      EXPECT_TRUE(comm->PollOperation()->has_value());
      EXPECT_TRUE(comm->ready());
    }
  }
  NcclCommunicator& operator[](int rank) { return *comms_[rank]; }
  FakeNccl::Rank& gpu(int rank) { return *gpus_[rank]; }
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

// The body is damaged, while the name of the operation is right.
TEST(NcclCommunicatorTest, AnAbortThatEndsTheOtherEndBringsNoBody) {
  Members members(2, {.hang = 1, .torn = 1});
  ASSERT_TRUE(members[0].Exchange(1, Bytes({1, 2}), 2, 77).ok());
  ASSERT_TRUE(members[1].Exchange(0, Bytes({3, 4}), 2, 77).ok());
  members.Run();
  EXPECT_FALSE(members[1].PollOperation()->has_value());
  members[0].End(NcclEvent::kLate);
  members.Run();
  EXPECT_EQ(members[1].PollOperation().status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(NcclCommunicatorTest, ExchangesAreWatchedAndSumsAreNot) {
  Members members(2, {});
  EXPECT_EQ(members.gpu(0).patience(), absl::InfiniteDuration())
      << "the meeting is over";
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(members[rank].Exchange(1 - rank, Bytes({1}), 1, 77).ok());
    EXPECT_EQ(members.gpu(rank).patience(), absl::Seconds(2));
  }
  members.Run();
  for (const int rank : {0, 1}) {
    EXPECT_TRUE(members[rank].PollOperation()->has_value());
    EXPECT_EQ(members.gpu(rank).patience(), absl::InfiniteDuration());
    ASSERT_TRUE(
        members[rank]
            .Sum(std::make_shared<DeviceVector<float>>(DeviceQueue::Host(), 3))
            .ok());
    EXPECT_FALSE(members[rank].PollOperation()->has_value());
    EXPECT_EQ(members.gpu(rank).patience(), absl::InfiniteDuration());
  }
}

// The stream is empty then, as if the bytes had come.
TEST(NcclCommunicatorTest, ABodyDoesNotComeOfAnOperationThatWasAborted) {
  Members members(2, {});
  ASSERT_TRUE(members[0].Exchange(1, Bytes({1}), 1, 77).ok());
  members.gpu(0).AbortUnwatched();
  EXPECT_FALSE(members[0].PollOperation().ok());
}

TEST(NcclCommunicatorTest, ACommunicatorOfSumsAloneHasNobodyToMeet) {
  VirtualLoop loop;
  FakeNccl nccl(&loop, {});
  const auto a = nccl.NewRank("gpu0"), b = nccl.NewRank("gpu1");
  NcclUniqueId id;
  a->GetUniqueId(&id);
  NcclCommunicator first(a.get(), a.get(), 2, 0, {}, {});
  NcclCommunicator second(b.get(), b.get(), 2, 1, {}, {});
  ASSERT_TRUE(first.Make(id).ok());
  ASSERT_TRUE(second.Make(id).ok());
  loop.RunFor(absl::Seconds(1));
  EXPECT_TRUE(first.PollMaking().ok());
  EXPECT_TRUE(first.ready());
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

}  // namespace nccl_communicator_test
}  // namespace gossamer
