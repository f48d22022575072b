// The border between a program's loop and the runtime's: whose turn it is, what
// is refused, and the program's state.

#include "runtime/library/caller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;
using Turn = Caller::Turn;

ParameterLayout Layout() {
  std::vector<Segment> segments = {{"G.w", Player{0}, {2, 3}, {}},
                                   {"D.w", Player{1}, {4}, {}},
                                   {"S.w", Player{2}, {}, {}}};
  return ParameterLayout(std::move(segments), {"G", "D", "S"});
}

// A runtime's compute engine: steps on a thread of its own.
class Runtime {
 public:
  explicit Runtime(Caller* caller)
      : caller_(caller), game_(caller->MakeGame(DeviceQueue::Host(), [this] {
          return CallerProgress{3, ++round_, 4};
        })) {}
  ~Runtime() {
    if (thread_.joinable()) thread_.join();
  }

  void Play(int steps) {
    thread_ = std::thread([this, steps] {
      for (int i = 0; i < steps; ++i) {
        for (float& x : HostSpan(game_->device_parameters())) x += 100;
        losses_ = *game_->Gradient(Players::kBoth, RngKey(0));
      }
      caller_->End(absl::OkStatus());
    });
  }
  Game& game() { return *game_; }
  const Losses& losses() const { return losses_; }

 private:
  Caller* const caller_;
  std::atomic<uint64_t> round_ = 0;
  const std::unique_ptr<Game> game_;
  Losses losses_;
  std::thread thread_;
};

Checkpoint Taken(Game& game) {
  return *TakeCheckpoint({}, [&](StateVisitor& v) { game.VisitState(v); });
}

TEST(CallerTest, LaysOutAnyNumberOfPlayers) {
  const ParameterLayout layout = Layout();
  EXPECT_EQ(layout.size(), 11u);
  EXPECT_EQ(layout.extent(Player{0}), (Extent{0, 6}));
  EXPECT_EQ(layout.extent(Player{1}), (Extent{6, 4}));
  EXPECT_EQ(layout.extent(Player{2}), (Extent{10, 1}));
  EXPECT_EQ(layout.extent(Player{3}), (Extent{11, 0}));
  EXPECT_EQ(layout.Text(), "G.w 2,3\nD.w 4\nS.w \n");
  EXPECT_EQ(FirstDifference(layout.Text(), "G.w 2,3\nD.w 5\n", "peer 1"),
            "tensor 2 is \"D.w 4\" of this peer and \"D.w 5\" of peer 1");
  EXPECT_EQ(FirstDifference("a 1\n", "a 1\nb 2\n", "peer 1"),
            "tensor 2 is no more of this peer and \"b 2\" of peer 1");
  EXPECT_EQ(FirstDifference("a 1\n", "a 1\n", "peer 1"), "");
}

TEST(CallerTest, TakesTurns) {
  Caller caller(Layout());
  Runtime runtime(&caller);
  EXPECT_EQ(caller.Await(absl::ZeroDuration()), Turn::kRuntimes);
  EXPECT_EQ(caller.EndStep({}).code(), absl::StatusCode::kFailedPrecondition);
  runtime.Play(3);
  for (uint64_t round = 1; round <= 3; ++round) {
    ASSERT_EQ(caller.Await(absl::Seconds(10)), Turn::kCallers);
    EXPECT_EQ(caller.progress().round, round);
    EXPECT_EQ(caller.progress().id, 3u);
    // Nothing of either is lost: the runtime's hundreds and the caller's ones.
    const std::span<float> parameters = HostSpan(caller.parameters());
    for (float& x : parameters) x += 1;
    EXPECT_EQ(parameters[10], 101.0f * static_cast<float>(round));
    ASSERT_TRUE(caller.EndStep({0.5, 0.25, static_cast<double>(round)}).ok());
  }
  EXPECT_EQ(caller.Await(absl::Seconds(10)), Turn::kOver);
  EXPECT_THAT(runtime.losses(), ::testing::ElementsAre(0.5, 0.25, 3));
  // After the end a step is one of the program alone.
  EXPECT_TRUE(caller.EndStep({}).ok());
  EXPECT_EQ(caller.Await(absl::Seconds(10)), Turn::kOver);
}

TEST(CallerTest, KeepsATurnWhoseParametersAreNotSound) {
  Caller caller(Layout());
  Runtime runtime(&caller);
  runtime.Play(1);
  ASSERT_EQ(caller.Await(absl::Seconds(10)), Turn::kCallers);
  for (const float bad :
       {std::nanf(""), 1e7f, -std::numeric_limits<float>::infinity()}) {
    HostSpan(caller.parameters())[8] = bad;
    const absl::Status refused = caller.EndStep({});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("D.w has the value"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("at index 2"));
    EXPECT_EQ(caller.Await(absl::ZeroDuration()), Turn::kCallers);
  }
  HostSpan(caller.parameters())[8] = 1;
  EXPECT_TRUE(caller.EndStep({}).ok());
  EXPECT_EQ(caller.Await(absl::Seconds(10)), Turn::kOver);
}

TEST(CallerTest, LeavesInTheMiddleOfATurn) {
  Caller caller(Layout());
  Runtime runtime(&caller);
  runtime.Play(5);
  ASSERT_EQ(caller.Await(absl::Seconds(10)), Turn::kCallers);
  caller.Leave();
  // The runtime's other steps need no turn.
  EXPECT_EQ(caller.Await(absl::Seconds(10)), Turn::kOver);
}

TEST(CallerTest, GivesAndTakesItsState) {
  Caller caller(Layout());
  std::string state = "moments";
  int loaded = 0;
  caller.SetState({.save =
                       [&](std::vector<std::byte>& bytes) {
                         bytes.resize(state.size());
                         std::memcpy(bytes.data(), state.data(), state.size());
                         return absl::OkStatus();
                       },
                   .load =
                       [&](std::span<const std::byte> bytes) {
                         state.assign(
                             reinterpret_cast<const char*>(bytes.data()),
                             bytes.size());
                         ++loaded;
                         return absl::OkStatus();
                       }});
  const std::unique_ptr<Game> game =
      caller.MakeGame(DeviceQueue::Host(), [] { return CallerProgress(); });
  EXPECT_FALSE(game->PrepareState());
  EXPECT_EQ(caller.Await(absl::ZeroDuration()), Turn::kRuntimes);
  EXPECT_TRUE(game->PrepareState());
  const Checkpoint taken = Taken(*game);
  EXPECT_EQ(taken.bytes.at("caller").size(), 7u);
  state = "others";
  EXPECT_TRUE(RestoreCheckpoint(taken, [&](StateVisitor& v) {
                game->VisitState(v);
              }).ok());
  // The runtime does not wait for the program, which reads it at its next wait.
  EXPECT_EQ(state, "others");
  EXPECT_EQ(caller.Await(absl::ZeroDuration()), Turn::kRuntimes);
  EXPECT_EQ(state, "moments");
  EXPECT_EQ(caller.Await(absl::ZeroDuration()), Turn::kRuntimes);
  EXPECT_EQ(loaded, 1);
}

TEST(CallerTest, GivesTheStateOfTheTurnThatIsOver) {
  Caller caller(Layout());
  int turns = 0;
  caller.SetState({.save = [&](std::vector<std::byte>& bytes) {
    bytes.assign(1, static_cast<std::byte>(turns));
    return absl::OkStatus();
  }});
  Runtime runtime(&caller);
  // The program is about to save when its turn begins: the state would be of
  // neither moment.
  EXPECT_FALSE(runtime.game().PrepareState());
  runtime.Play(2);
  for (turns = 1; turns <= 2; ++turns) {
    while (caller.Await(absl::Seconds(10)) != Turn::kCallers) {
    }
    EXPECT_FALSE(runtime.game().PrepareState());
    EXPECT_EQ(caller.EndStep({}), absl::OkStatus());
    // Asked for during the turn, it is there at its end.
    if (turns == 2) break;
  }
  EXPECT_EQ(caller.Await(absl::Seconds(10)), Turn::kOver);
  EXPECT_TRUE(runtime.game().PrepareState());
  EXPECT_EQ(Taken(runtime.game()).bytes.at("caller"),
            std::vector<std::byte>(1, std::byte{2}));
}

TEST(CallerTest, WritesItsStateOutForAsLongAsItLikes) {
  Caller caller(Layout());
  std::atomic<bool> goes_on = false;
  caller.SetState({.save = [&](std::vector<std::byte>& bytes) {
    while (!goes_on) std::this_thread::yield();
    bytes.assign(3, std::byte{1});
    return absl::OkStatus();
  }});
  const std::unique_ptr<Game> game =
      caller.MakeGame(DeviceQueue::Host(), [] { return CallerProgress(); });
  EXPECT_FALSE(game->PrepareState());
  std::thread program([&] { caller.Await(absl::Seconds(10)); });
  // No call of the runtime waits meanwhile.
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(game->PrepareState());
  goes_on = true;
  while (!game->PrepareState()) std::this_thread::yield();
  EXPECT_EQ(Taken(*game).bytes.at("caller").size(), 3u);
  caller.End(absl::OkStatus());
  program.join();
}

TEST(CallerTest, SaysThatItsStateWasNotSaved) {
  Caller caller(Layout());
  caller.SetState({.save = [](std::vector<std::byte>&) {
    return absl::InternalError("the disk is on fire");
  }});
  const std::unique_ptr<Game> game =
      caller.MakeGame(DeviceQueue::Host(), [] { return CallerProgress(); });
  EXPECT_FALSE(game->PrepareState());
  // The wait ends, and the run goes on without that state.
  EXPECT_EQ(caller.Await(absl::Seconds(10)), Turn::kRuntimes);
  EXPECT_TRUE(game->PrepareState());
  const Checkpoint taken = Taken(*game);
  const absl::Status failure = caller.TakeStateFailure();
  EXPECT_THAT(std::string(failure.message()),
              HasSubstr("was not saved: the disk is on fire"));
  EXPECT_TRUE(caller.TakeStateFailure().ok());
  EXPECT_TRUE(taken.bytes.at("caller").empty());
}

// A program that cannot read the state of the checkpoint that its peer resumes
// from.
class UnreadStateTest : public ::testing::Test {
 protected:
  UnreadStateTest() : caller_(Layout()), runtime_(&caller_) {
    caller_.SetState({.save =
                          [](std::vector<std::byte>& bytes) {
                            bytes.assign(1, std::byte{1});
                            return absl::OkStatus();
                          },
                      .load =
                          [](std::span<const std::byte>) {
                            return absl::NotFoundError("opt_g");
                          }});
    EXPECT_FALSE(game().PrepareState());
    Checkpoint checkpoint = Taken(game());
    checkpoint.bytes["caller"] = state_;
    EXPECT_TRUE(RestoreCheckpoint(checkpoint, [&](StateVisitor& v) {
                  game().VisitState(v);
                }).ok());
  }
  Game& game() { return runtime_.game(); }
  void LeaveToTheEnd() {
    caller_.Leave();
    while (caller_.Await(absl::Seconds(10)) != Turn::kOver) {
    }
  }

  const std::vector<std::byte> state_ = std::vector(5, std::byte{7});
  Caller caller_;
  Runtime runtime_;
};

// The program's turn has begun when it finds out.
TEST_F(UnreadStateTest, ItOutlivesATurnThatWasNotUsed) {
  runtime_.Play(2);
  while (caller_.progress().round == 0) std::this_thread::yield();
  EXPECT_EQ(caller_.Await(absl::Seconds(10)), Turn::kCallers);
  EXPECT_FALSE(caller_.TakeStateFailure().ok());
  LeaveToTheEnd();
  EXPECT_TRUE(game().PrepareState());
  EXPECT_EQ(Taken(game()).bytes.at("caller"), state_);
}

// A program that ends leaves it to the next one.
TEST_F(UnreadStateTest, ItIsSavedAgainUntilAStepIsMade) {
  caller_.Await(absl::ZeroDuration());
  EXPECT_THAT(std::string(caller_.TakeStateFailure().message()),
              HasSubstr("was not loaded: opt_g"));
  EXPECT_TRUE(game().PrepareState());
  EXPECT_EQ(Taken(game()).bytes.at("caller"), state_);
  // A step makes other parameters, to which it does not belong.
  runtime_.Play(2);
  ASSERT_EQ(caller_.Await(absl::Seconds(10)), Turn::kCallers);
  EXPECT_FALSE(game().PrepareState());
  EXPECT_EQ(caller_.EndStep({}), absl::OkStatus());
  LeaveToTheEnd();
  EXPECT_TRUE(game().PrepareState());
  EXPECT_NE(Taken(game()).bytes.at("caller"), state_);
}

TEST(CallerTest, UsesMemoryOfTheProgram) {
  std::vector<float> memory(11, 1);
  Caller caller(Layout());
  caller.UseMemory(memory);
  Runtime runtime(&caller);
  runtime.Play(1);
  ASSERT_EQ(caller.Await(absl::Seconds(10)), Turn::kCallers);
  EXPECT_EQ(memory[10], 101);
  EXPECT_TRUE(caller.EndStep({}).ok());
  EXPECT_EQ(caller.Await(absl::Seconds(10)), Turn::kOver);
}

}  // namespace
}  // namespace gossamer
