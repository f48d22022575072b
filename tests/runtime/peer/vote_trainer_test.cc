// A student and its teachers as peers of a fleet in virtual time, without
// networks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/collective/collective_message.h"
#include "algorithms/privacy/vote_message.h"
#include "runtime/peer/vote_exchange.h"
#include "tests/runtime/peer/vote_fleet.h"
#include "tests/testing/forwarding_membership.h"

namespace gossamer {
namespace vote_trainer_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

// The student's table after a run that nothing disturbs.
std::vector<float> Whole(int groups) {
  SimFleet fleet(VoteFleet(groups));
  EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  return TableOf(fleet);
}

TEST(VoteTrainerTest, StopsInGoodOrderWhenTheBudgetIsSpent) {
  SimFleet fleet(VoteFleet(2));
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  const DataLensSettings s = VoteSettings();
  const uint64_t steps = AllowedSteps(s);
  EXPECT_GT(steps, 10u);
  EXPECT_EQ(GameOf(fleet, 0).student.learnt, static_cast<int>(steps));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(fleet.peer(rank).steps(), steps);
    EXPECT_TRUE(fleet.peer(rank).stopped());
  }
  EXPECT_EQ(fleet.recorder(0).Count("budget_spent"), 1);
  EXPECT_EQ(fleet.recorder(1).Count("budget_spent"), 0);
  const auto& rounds = fleet.recorder(0).rounds;
  ASSERT_EQ(rounds.size(), steps);
  for (size_t i = 0; i < rounds.size(); ++i) {
    ASSERT_TRUE(rounds[i].epsilon.has_value());
    const double before = i == 0 ? 0 : *rounds[i - 1].epsilon;
    EXPECT_GT(*rounds[i].epsilon, before);
  }
  EXPECT_LE(*rounds.back().epsilon, s.budget.epsilon);
  EXPECT_FALSE(fleet.recorder(1).rounds.back().epsilon.has_value());
}

TEST(VoteTrainerTest, ARunOfTheBudgetsRoundsFinishes) {
  SimFleetOptions o = VoteFleet(2);
  o.peer.rounds = AllowedSteps(o.peer.votes);
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_FALSE(fleet.peer(rank).stopped());
    EXPECT_EQ(fleet.recorder(rank).Count("not_settled"), 0);
  }
  EXPECT_EQ(fleet.recorder(0).Count("budget_spent"), 0);
  EXPECT_EQ(TableOf(fleet), Whole(2));
}

TEST(VoteTrainerTest, TheSpreadOfTeachersOverPeersChangesNoBit) {
  const std::vector<float> one = Whole(1);
  for (const int groups : {2, 3, 17}) EXPECT_EQ(Whole(groups), one) << groups;
  // And it did learn something.
  EXPECT_NE(one, TableStudent().table);
}

TEST(VoteTrainerTest, LostConnectionsChangeNoBit) {
  SimFleet fleet(VoteFleet(2));
  fleet.Start();
  for (int i = 0; i < 60; ++i) {
    fleet.loop().RunFor(absl::Microseconds(7300));
    fleet.network().Break(SimFleet::IdOf(0), SimFleet::IdOf(1 + i % 2));
  }
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(TableOf(fleet), Whole(1));
  for (int rank = 1; rank < 3; ++rank) {
    EXPECT_EQ(GameOf(fleet, rank).teachers().votes,
              static_cast<int>(fleet.peer(0).steps()))
        << "each question is voted on once";
  }
}

// To end the run for it would tell of one shard what no noise covers; so would
// an event, which the topology service counts.
TEST(VoteTrainerTest, ATeacherThatIsNotFiniteAbstains) {
  struct Result {
    std::vector<float> table;
    double epsilon = 0;
    size_t events = 0;
    std::vector<std::string> notes;
  };
  const auto run = [](float value, int teacher = 3) {
    SimFleetOptions o = VoteFleet(2);
    // So little noise that one vote can be seen.
    o.peer.votes.sigma = 1;
    o.peer.votes.budget.epsilon = 1000;
    Result result;
    o.voting = [&](int) {
      return VotingParts{.noise = RngKey(9),
                         .noise_repeats = true,
                         .note = [&result](const std::string& line) {
                           result.notes.push_back(line);
                         }};
    };
    SimFleet fleet(o);
    GameOf(fleet, 1).teachers().spoilt = teacher;
    GameOf(fleet, 1).teachers().value = value;
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    result.table = TableOf(fleet);
    result.epsilon = *fleet.recorder(0).rounds.back().epsilon;
    result.events = fleet.recorder(1).events.size();
    return result;
  };
  const Result abstains = run(0);
  EXPECT_THAT(abstains.notes, IsEmpty());
  EXPECT_NE(abstains.table, run(0, /*teacher=*/-1).table);
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    const Result result = run(value);
    EXPECT_EQ(result.table, abstains.table);
    EXPECT_EQ(result.epsilon, abstains.epsilon);
    EXPECT_EQ(result.events, abstains.events);
    EXPECT_THAT(result.notes,
                ElementsAre(HasSubstr("from round 1 on 1 of teachers 0 to 7 "
                                      "abstain")));
  }
}

TEST(VoteTrainerTest, EveryWaitEnds) {
  SimFleet fleet(VoteFleet(3));
  fleet.network().Freeze(SimFleet::IdOf(2), absl::InfiniteFuture());
  EXPECT_FALSE(fleet.Run(absl::Minutes(10)));
  EXPECT_EQ(fleet.StatusOf(0).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(fleet.StatusOf(0)),
              HasSubstr("round 1: no votes of peer 3 within 1m"));
  EXPECT_EQ(GameOf(fleet, 0).student.learnt, 0) << "nothing was released";
  EXPECT_EQ(fleet.StatusOf(1).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(fleet.StatusOf(1)),
              HasSubstr("round 2: no question of peer 1 within 1m"));
}

TEST(VoteTrainerTest, AStudentThatIsNotFiniteEndsTheRun) {
  SimFleet fleet(VoteFleet(1));
  GameOf(fleet, 0).student.fails_at = 6;
  EXPECT_FALSE(fleet.Run());
  EXPECT_EQ(fleet.StatusOf(0).code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(fleet.StatusOf(0)),
              testing::MatchesRegex(
                  "round 6: the student's table is not finite. Epsilon .* of 8 "
                  "is spent and stays spent"));
}

// Says of every member that its id is one more.
class ShiftedIds final : public ForwardingMembership {
 public:
  explicit ShiftedIds(std::unique_ptr<Membership> fleet)
      : ForwardingMembership(std::move(fleet)),
        view_(ForwardingMembership::view()) {
    view_.members.erase(view_.members.begin());
  }
  const View& view() const override { return view_; }

 private:
  View view_;
};

// Peers 2 and 5 of 4 would have the same teachers, and count them twice.
TEST(VoteTrainerTest, OtherIdsThanOneToTheNumberOfPeersAreRefused) {
  SimFleetOptions o = VoteFleet(2);
  o.membership = [](std::unique_ptr<Membership> fleet) {
    return std::make_unique<ShiftedIds>(std::move(fleet));
  };
  SimFleet fleet(o);
  EXPECT_FALSE(fleet.Run());
  for (int rank = 1; rank < 3; ++rank) {
    EXPECT_EQ(fleet.StatusOf(rank).code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(fleet.StatusOf(rank)),
                HasSubstr("peer 2 is member 1 of the view"));
  }
}

TEST(VoteTrainerTest, AVotingGameWithAnotherAlgorithmIsRefused) {
  SimFleetOptions o = VoteFleet(1);
  o.peer.averaging = Averaging::kGradients;
  EXPECT_DEATH_IF_SUPPORTED(SimFleet{o}, "learns from votes");
}

// A transport that keeps what is sent.
class SentFrames final : public Transport {
 public:
  void SetListener(TransportListener*) override {}
  void Connect(PeerId, const std::string&) override {}
  void Disconnect(PeerId) override {}
  bool Send(PeerId peer, Channel, Frame frame) override {
    sent.emplace_back(peer, std::move(frame));
    return true;
  }
  void Close(PeerId, ConnectionId, const absl::Status&) override {}
  bool IsWritable(PeerId) const override { return true; }
  TransportCounters counters() const override { return {}; }
  std::vector<std::pair<PeerId, Frame>> sent;
};

Frame FrameOf(uint64_t operation, uint32_t step, std::vector<std::byte> body) {
  const CollectiveHead head{
      .operation = operation, .step = step, .body_bytes = body.size()};
  return {SharedBytes::FromVector(EncodeCollectiveHead(head)),
          SharedBytes::FromVector(std::move(body))};
}

class VoteExchangeTest : public testing::Test {
 protected:
  static constexpr uint32_t kQuestion = 0, kVotes = 1;
  static constexpr size_t kValues = 5 * size_t{kDimensions};
  const DataLensSettings settings_ = VoteSettings();
  SentFrames transport_;
  VoteGame student_{0, 3}, group_{1, 3};
  const VotingRole asks_ = student_.voting(), answers_ = group_.voting();
  VoteExchange exchange_{settings_, asks_, &transport_};
  VoteExchange other_{settings_, answers_, &transport_};
  const std::vector<PeerId> members_ = {{1}, {2}, {3}};
  const ImageBatch batch_ = *student_.student.Ask(1);

  void SetUp() override {
    exchange_.SetMembers(members_, 4);
    other_.SetMembers(members_, 4);
  }
  static std::vector<std::byte> Votes(int16_t value, size_t size = kValues) {
    return EncodeVotes(std::vector<int16_t>(size, value));
  }
};

TEST_F(VoteExchangeTest, AnswersThatNoTeacherWouldSendAreDropped) {
  exchange_.Ask(batch_);
  EXPECT_EQ(transport_.sent.size(), 2u);
  for (const auto& [peer, frame] :
       {std::pair(PeerId{4}, FrameOf(4, kVotes, Votes(1))),
        {PeerId{2}, FrameOf(4, kVotes, Votes(1, kValues - 1))},
        {PeerId{2}, FrameOf(4, kVotes, Votes(1, kValues + 1))},
        {PeerId{2}, FrameOf(4, kVotes, {})},
        {PeerId{2}, FrameOf(4, kVotes, Votes(9))},  // it has 8 teachers
        {PeerId{2}, FrameOf(4, kQuestion, EncodeImages(batch_))},
        {PeerId{2}, FrameOf(4, 7, {})},
        {PeerId{2}, {SharedBytes(), SharedBytes()}}}) {
    EXPECT_TRUE(absl::IsDataLoss(exchange_.OnFrame(peer, frame)));
  }
  EXPECT_FALSE(exchange_.answered());
  EXPECT_THAT(exchange_.sums(), testing::Each(0));
  EXPECT_EQ(exchange_.Awaited(), "peer 2, 3");
}

TEST_F(VoteExchangeTest, ARepeatedAnswerChangesNothing) {
  exchange_.Ask(batch_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(exchange_.OnFrame({2}, FrameOf(4, kVotes, Votes(3))).ok());
    // Of the question before.
    EXPECT_TRUE(exchange_.OnFrame({3}, FrameOf(3, kVotes, Votes(2))).ok());
  }
  EXPECT_FALSE(exchange_.answered());
  // The question may have been lost with a connection.
  transport_.sent.clear();
  exchange_.OnUp({2});
  EXPECT_THAT(transport_.sent, IsEmpty());
  exchange_.OnUp({3});
  EXPECT_EQ(transport_.sent.size(), 1u);
  EXPECT_TRUE(exchange_.OnFrame({3}, FrameOf(4, kVotes, Votes(-9))).ok());
  EXPECT_TRUE(exchange_.answered());
  EXPECT_THAT(exchange_.sums(), testing::Each(-6));
}

TEST_F(VoteExchangeTest, ARepeatedQuestionIsAnsweredAgainAndNotVotedOn) {
  const Frame question = FrameOf(4, kQuestion, EncodeImages(batch_));
  ASSERT_TRUE(other_.OnFrame({1}, question).ok());
  ASSERT_TRUE(other_.question().has_value());
  EXPECT_EQ(other_.question()->images, batch_.images);
  other_.Answer(std::vector<int16_t>(kValues, 5));
  EXPECT_FALSE(other_.question().has_value());
  ASSERT_TRUE(other_.OnFrame({1}, question).ok());
  EXPECT_FALSE(other_.question().has_value());
  other_.OnUp({1});
  ASSERT_EQ(transport_.sent.size(), 3u);
  for (const auto& [peer, frame] : transport_.sent) {
    EXPECT_EQ(peer, PeerId{1});
    EXPECT_THAT(frame.body.bytes(), testing::ElementsAreArray(Votes(5)));
  }
}

TEST_F(VoteExchangeTest, QuestionsThatNoStudentWouldAskAreDropped) {
  ImageBatch hostile = batch_;
  hostile.images[3] = NAN;
  ImageBatch larger = batch_;
  larger.images.push_back(0);
  for (const auto& [peer, frame] :
       {std::pair(PeerId{3}, FrameOf(4, kQuestion, EncodeImages(batch_))),
        {PeerId{1}, FrameOf(4, kQuestion, EncodeImages(hostile))},
        {PeerId{1}, FrameOf(4, kQuestion, EncodeImages(larger))},
        {PeerId{1}, FrameOf(4, kVotes, Votes(1))}}) {
    EXPECT_TRUE(absl::IsDataLoss(other_.OnFrame(peer, frame)));
  }
  EXPECT_FALSE(other_.question().has_value());
}

TEST_F(VoteExchangeTest, AFinSaysWhichOperationsWillNotBe) {
  EXPECT_FALSE(other_.Abandoned());
  ASSERT_TRUE(other_.OnFrame({1}, FrameOf(5, kFin, {})).ok());
  EXPECT_THAT(other_.NotEnded(), IsEmpty());
  EXPECT_FALSE(other_.Abandoned()) << "the question of 4 may still come";
  ASSERT_TRUE(
      other_.OnFrame({1}, FrameOf(4, kQuestion, EncodeImages(batch_))).ok());
  other_.Answer(std::vector<int16_t>(kValues, 5));
  EXPECT_TRUE(other_.Abandoned());
  EXPECT_THAT(exchange_.NotEnded(), ElementsAre(PeerId{2}, PeerId{3}));
}

}  // namespace vote_trainer_test
}  // namespace gossamer
