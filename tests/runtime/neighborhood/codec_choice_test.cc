// Codec "auto": each link gets the format that it carries within a round.

#include <memory>

#include "algorithms/game/synthetic_game.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/neighborhood/format_chooser.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace codec_choice_test {

constexpr int64_t kParameters = 163840;

SimFleetOptions Fleet() {
  SimFleetOptions o = QuadraticFleet(4, 120);
  o.codec = "auto";
  o.game = [](int rank) -> std::unique_ptr<Game> {
    return *SyntheticGame::Create({.parameters = kParameters}, rank, 4, 7);
  };
  o.step_jitter = 0;
  return o;
}

// Returns the rate, in bytes a second, that carries `bits` of every parameter
// in a round of 10 ms.
double RateFor(double bits) { return bits / 8 * kParameters / 0.010; }

WireFormat FormatTo(SimFleet& fleet, int rank, int other) {
  return fleet.peer(rank).neighborhood().edge(SimFleet::IdOf(other))->format();
}

TEST(CodecChoiceTest, GoesBackToMoreBitsOnlyWithRoomToSpare) {
  const ParameterLayout layout(
      {{"g", Player::kGenerator, {kParameters, 1}, {}}});
  const auto codec = *Codec::Create("auto", layout);
  const absl::Duration busy = absl::Milliseconds(10);
  const auto choose = [&](FormatChooser& chooser, double bits) {
    for (size_t i = 0; i < FormatChooser::kRates; ++i) {
      chooser.Record({.bytes = static_cast<size_t>(RateFor(bits)),
                      .took = absl::Seconds(1)});
    }
    return chooser.Choose(*codec, busy);
  };
  FormatChooser chooser;
  EXPECT_EQ(chooser.Choose(*codec, busy), std::nullopt);
  // 0.65 of the time: int4 stays.
  EXPECT_EQ(choose(chooser, 6.4), WireFormat::kInt4);
  EXPECT_EQ(choose(chooser, 5.5), WireFormat::kLm2);   // 0.75
  EXPECT_EQ(choose(chooser, 7), WireFormat::kLm2);     // 0.59
  EXPECT_EQ(choose(chooser, 8.5), WireFormat::kInt4);  // 0.49
  EXPECT_EQ(choose(chooser, 100), WireFormat::kInt8);
  EXPECT_EQ(choose(chooser, 0.1), WireFormat::kSign);
  EXPECT_EQ(chooser.Choose(*codec, absl::ZeroDuration()), std::nullopt);
}

TEST(CodecChoiceTest, WidensLaterAfterItHadToGoBack) {
  const ParameterLayout layout(
      {{"g", Player::kGenerator, {kParameters, 1}, {}}});
  const auto codec = *Codec::Create("auto", layout);
  FormatChooser chooser;
  // Returns the number of payloads until the choice changes.
  const auto until_change = [&](double bits) {
    const auto before = chooser.Choose(*codec, absl::Milliseconds(10));
    for (int n = 1; n < 5000; ++n) {
      chooser.Record({.bytes = static_cast<size_t>(RateFor(bits)),
                      .took = absl::Seconds(1)});
      const auto now = chooser.Choose(*codec, absl::Milliseconds(10));
      if (now && now != before) return n;
    }
    return 0;
  };
  EXPECT_LE(until_change(3.6), 8);  // to lm2, at once
  int last = 0;
  for (int times = 0; times < 4; ++times) {
    const int widens = until_change(8.5);
    EXPECT_GT(widens, last);
    last = widens;
    EXPECT_LE(until_change(3.6), 32);
  }
  EXPECT_GE(last, 100);
}

TEST(CodecChoiceTest, ALinkThatBecomesFastIsFollowedWithinTwentyPayloads) {
  const ParameterLayout layout(
      {{"g", Player::kGenerator, {kParameters, 1}, {}}});
  const auto codec = *Codec::Create("auto", layout);
  FormatChooser chooser;
  const auto after = [&](double bits, int payloads) {
    std::optional<WireFormat> chosen;
    for (int n = 0; n < payloads; ++n) {
      chooser.Record({.bytes = static_cast<size_t>(RateFor(bits)),
                      .took = absl::Seconds(1)});
      chosen = chooser.Choose(*codec, absl::Milliseconds(10));
    }
    return chosen;
  };
  EXPECT_EQ(after(3.6, 100), WireFormat::kLm2);
  EXPECT_EQ(after(100, 20), WireFormat::kInt8);
}

// Nobody waits for eight payloads of minutes.
TEST(CodecChoiceTest, TwoPayloadsOfManyRoundsAreEnoughToNarrow) {
  const ParameterLayout layout(
      {{"g", Player::kGenerator, {kParameters, 1}, {}}});
  const auto codec = *Codec::Create("auto", layout);
  const absl::Duration busy = absl::Milliseconds(200);
  const auto after_two = [&](absl::Duration took) {
    FormatChooser chooser;
    chooser.Record({.bytes = kParameters / 2, .took = took});
    EXPECT_EQ(chooser.Choose(*codec, busy), std::nullopt);
    chooser.Record({.bytes = kParameters / 2, .took = took});
    return chooser.Choose(*codec, busy);
  };
  EXPECT_EQ(after_two(absl::Seconds(2)), WireFormat::kSign);
  EXPECT_EQ(after_two(absl::Milliseconds(1500)), std::nullopt);
}

// The first one may be slow because its connection begins.
TEST(CodecChoiceTest, ThreePayloadsOfTwoRoundsAreEnoughToNarrow) {
  const ParameterLayout layout(
      {{"g", Player::kGenerator, {kParameters, 1}, {}}});
  const auto codec = *Codec::Create("auto", layout);
  const auto after_three = [&](absl::Duration took) {
    FormatChooser chooser;
    std::optional<WireFormat> chosen;
    for (int n = 0; n < 3; ++n) {
      EXPECT_EQ(chosen, std::nullopt);
      chooser.Record({.bytes = kParameters / 2, .took = took});
      chosen = chooser.Choose(*codec, absl::Milliseconds(200));
    }
    return chosen;
  };
  EXPECT_EQ(after_three(absl::Milliseconds(410)), WireFormat::kSign);
  EXPECT_EQ(after_three(absl::Milliseconds(1500)), WireFormat::kSign);
  EXPECT_EQ(after_three(absl::Milliseconds(390)), std::nullopt);
}

TEST(CodecChoiceTest, AFastMomentIsNoFastLink) {
  const ParameterLayout layout(
      {{"g", Player::kGenerator, {kParameters, 1}, {}}});
  const auto codec = *Codec::Create("auto", layout);
  FormatChooser chooser;
  for (int n = 0; n < 500; ++n) {
    // Six of ten payloads queued up at the receiver and seem to come ten times
    // as fast.  The rest of a small one seems to take no time.
    const double bits = n % 10 < 6 ? 45 : 4.5;
    chooser.Record({.bytes = static_cast<size_t>(RateFor(bits)),
                    .took = absl::Seconds(1)});
    chooser.Record({.bytes = 1000, .took = absl::Nanoseconds(1)});
    const auto chosen = chooser.Choose(*codec, absl::Milliseconds(10));
    if (n > 20) {
      EXPECT_EQ(chosen, WireFormat::kLm2);
    }
  }
}

// A lost packet holds up one of them, and the others come at once behind it.
TEST(CodecChoiceTest, PayloadsBehindALostPacketAreNoFastLink) {
  const ParameterLayout layout(
      {{"g", Player::kGenerator, {kParameters, 1}, {}}});
  const auto codec = *Codec::Create("auto", layout);
  FormatChooser chooser;
  for (int n = 0; n < 500; ++n) {
    const auto bytes = static_cast<size_t>(RateFor(4.5));
    chooser.Record(
        {.bytes = bytes,
         .took = n % 8 == 0 ? absl::Seconds(8) : absl::Milliseconds(1)});
    const auto chosen = chooser.Choose(*codec, absl::Milliseconds(10));
    if (n > 40) {
      EXPECT_NE(chosen, WireFormat::kInt8) << n;
    }
  }
}

TEST(CodecChoiceTest, EveryDirectionOfALinkGetsWhatItCarries) {
  SimFleet fleet(Fleet());
  const auto link = [&](int from, int to, double bits) {
    fleet.network().SetLink(
        SimFleet::IdOf(from), SimFleet::IdOf(to),
        {.latency = absl::Milliseconds(1), .bytes_per_second = RateFor(bits)});
  };
  link(0, 1, 40);
  link(1, 0, 8);  // int4 in half of a round
  link(1, 2, 3.6);
  link(2, 1, 2);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(FormatTo(fleet, 0, 1), WireFormat::kInt8);
  EXPECT_EQ(FormatTo(fleet, 1, 0), WireFormat::kInt4);
  EXPECT_EQ(FormatTo(fleet, 1, 2), WireFormat::kLm2);
  EXPECT_EQ(FormatTo(fleet, 2, 1), WireFormat::kSign);
  // The rates of the other links are unknown, since nothing limits them.
  EXPECT_EQ(FormatTo(fleet, 2, 3), WireFormat::kInt4);
  EXPECT_GT(fleet.recorder(2).Count("codec"), 0);
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(fleet.peer(r).last_metrics().skipped, 0);
    EXPECT_EQ(fleet.recorder(r).Count("edge_refused"), 0);
  }
}

// Every payload holds up the rounds at first; later none does.
TEST(CodecChoiceTest, ASlowLinkNoLongerHoldsUpRounds) {
  SimFleetOptions o = Fleet();
  o.network.link.bytes_per_second = RateFor(2.1);
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  const std::vector<RoundMetrics>& rounds = fleet.recorder(0).rounds;
  EXPECT_GT(rounds[1].seconds_waiting, 0.005);
  EXPECT_EQ(rounds.back().seconds_waiting, 0);
}

TEST(CodecChoiceTest, ALinkThatBecomesSlowIsFollowedWithinTwentyRounds) {
  SimFleet fleet(Fleet());
  fleet.Start();
  while (fleet.peer(0).round() < 60) fleet.loop().RunFor(absl::Milliseconds(1));
  const uint64_t changed = fleet.peer(0).round();
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      fleet.network().SetLink(
          SimFleet::IdOf(a), SimFleet::IdOf(b),
          {.latency = absl::Milliseconds(1), .bytes_per_second = RateFor(3.6)});
    }
  }
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(FormatTo(fleet, 0, 1), WireFormat::kLm2);
  double before = 0;
  for (const RoundMetrics& round : fleet.recorder(0).rounds) {
    if (round.round < changed || round.round >= changed + 20) {
      EXPECT_EQ(round.seconds_waiting, 0) << round.round << " " << changed;
    } else {
      before += round.seconds_waiting;
    }
  }
  EXPECT_GT(before, 0.005);
}

TEST(CodecChoiceTest, RequestsOfOtherKindsAreIgnored) {
  SimFleetOptions o = Fleet();
  o.codec = "innov-int4";
  o.network.link.bytes_per_second = RateFor(2);
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(FormatTo(fleet, 0, 1), WireFormat::kInt4);
}

}  // namespace codec_choice_test
}  // namespace gossamer
