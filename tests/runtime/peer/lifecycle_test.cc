// The lifecycle of a peer: every pair of state and event is legal or refused as
// the table says.

#include "runtime/peer/lifecycle.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace gossamer {
namespace lifecycle_test {

using State = Lifecycle::State;
using Event = Lifecycle::Event;
using Outcome = Lifecycle::Outcome;

// The table as README.md draws it; every other pair is illegal.
const std::map<std::pair<State, Event>, State> kLegal = {
    {{State::kJoining, Event::kAdmitted}, State::kTraining},
    {{State::kJoining, Event::kTimeUp}, State::kDeparting},
    {{State::kJoining, Event::kRoundsOver}, State::kDraining},
    {{State::kTraining, Event::kNewIncarnation}, State::kJoining},
    {{State::kTraining, Event::kTimeUp}, State::kDeparting},
    {{State::kTraining, Event::kRoundsOver}, State::kDraining},
    {{State::kDeparting, Event::kNewIncarnation}, State::kDeparting},
    {{State::kDeparting, Event::kRoundsOver}, State::kAbandoning},
    {{State::kDraining, Event::kTimeUp}, State::kAbandoning},
    {{State::kDraining, Event::kSettled}, State::kEnded},
    {{State::kAbandoning, Event::kSettled}, State::kEnded},
};

absl::Status Apply(Lifecycle& lifecycle, Event event) {
  if (event == Event::kRoundsOver) return lifecycle.EndRounds(Outcome::kLeft);
  return lifecycle.Apply(event);
}

// Returns a lifecycle in `state`, on one of the ways that lead there.
Lifecycle At(State state) {
  static const std::map<State, std::vector<Event>> kWays = {
      {State::kJoining, {}},
      {State::kTraining, {Event::kAdmitted}},
      {State::kDeparting, {Event::kTimeUp}},
      {State::kDraining, {Event::kRoundsOver}},
      {State::kAbandoning, {Event::kTimeUp, Event::kRoundsOver}},
      {State::kEnded, {Event::kRoundsOver, Event::kSettled}}};
  Lifecycle lifecycle;
  for (const Event event : kWays.at(state)) {
    EXPECT_TRUE(Apply(lifecycle, event).ok());
  }
  return lifecycle;
}

TEST(Lifecycle, EveryPairOfStateAndEventIsLegalOrRefusedAsTheTableSays) {
  EXPECT_EQ(Lifecycle::Table().size(), kLegal.size());
  for (const State state : Lifecycle::kStates) {
    for (const Event event : Lifecycle::kEvents) {
      Lifecycle lifecycle = At(state);
      ASSERT_EQ(lifecycle.state(), state);
      const Outcome before = lifecycle.outcome();
      const absl::Status status = Apply(lifecycle, event);
      const auto legal = kLegal.find({state, event});
      if (legal != kLegal.end()) {
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(lifecycle.state(), legal->second);
        continue;
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
          << Lifecycle::Name(state) << ", " << Lifecycle::Name(event);
      EXPECT_EQ(lifecycle.state(), state);
      EXPECT_EQ(lifecycle.outcome(), before);
    }
  }
}

TEST(Lifecycle, TheFlagsOfALifecycleFollowFromItsState) {
  for (const State state : Lifecycle::kStates) {
    const Lifecycle lifecycle = At(state);
    EXPECT_EQ(lifecycle.over(), state == State::kDraining ||
                                    state == State::kAbandoning ||
                                    state == State::kEnded);
    EXPECT_EQ(lifecycle.out_of_time(), state == State::kDeparting ||
                                           state == State::kAbandoning ||
                                           state == State::kEnded);
    EXPECT_EQ(lifecycle.over(), lifecycle.outcome() != Outcome::kNone);
  }
}

TEST(Lifecycle, TheFirstReasonToEndIsKept) {
  for (const Outcome why :
       {Outcome::kFinished, Outcome::kStopped, Outcome::kLeft}) {
    Lifecycle lifecycle = At(State::kTraining);
    ASSERT_TRUE(lifecycle.EndRounds(why).ok());
    EXPECT_FALSE(lifecycle.EndRounds(Outcome::kFinished).ok());
    EXPECT_EQ(lifecycle.outcome(), why);
    EXPECT_EQ(lifecycle.stopped(), why == Outcome::kStopped);
    EXPECT_EQ(lifecycle.left(), why == Outcome::kLeft);
  }
}

TEST(Lifecycle, ARefusalNamesStateAndEvent) {
  Lifecycle lifecycle;
  const absl::Status refused = lifecycle.Apply(Event::kSettled);
  EXPECT_NE(std::string(refused.message()).find("joining"), std::string::npos);
  EXPECT_NE(std::string(refused.message()).find("settled"), std::string::npos);
}

}  // namespace lifecycle_test
}  // namespace gossamer
