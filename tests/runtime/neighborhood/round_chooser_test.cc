// The choice of the next round: a peer jumps to its neighbours' round, and no
// single peer leads the others away.

#include "runtime/neighborhood/round_chooser.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace gossamer {
namespace round_chooser_test {

constexpr int kOverlap = 1;

// Returns the first round in which a peer jumps, or 0 within 200 rounds.  The
// furthest of its four neighbours is `lead` rounds ahead of its next round at
// first, and gains one every `gains` rounds (0: never).  With `missing`,
// payloads of the two miss each other.
uint64_t FirstJump(uint64_t lead, uint64_t gains, bool missing = false,
                   int overlap = kOverlap) {
  RoundChooser chooser;
  for (uint64_t round = 100; round < 300; ++round) {
    const uint64_t gained = gains == 0 ? 0 : (round - 100) / gains;
    const uint64_t next = round + 1, furthest = next + lead + gained;
    RoundsSeen seen = {.heard = {round, round, next, furthest}};
    if (missing) seen.missing = {round, furthest};
    const uint64_t chosen = chooser.Next(round, overlap, seen);
    if (chosen != next) {
      EXPECT_EQ(chosen, furthest + 1) << "it is there by then";
      return next;
    }
  }
  return 0;
}

TEST(RoundChooserTest, JumpsToWhereMostNeighboursAre) {
  RoundChooser chooser;
  EXPECT_EQ(chooser.Next(10, kOverlap, {.heard = {10, 30, 31}}), 30u);
  EXPECT_EQ(chooser.Next(10, kOverlap, {.heard = {10, 14, 31}}), 11u)
      << "so far apart neighbours may be";
  EXPECT_EQ(chooser.Next(10, kOverlap, {.heard = {9, 10, 11, 31, 50}}), 11u);
  EXPECT_EQ(chooser.Next(10, kOverlap,
                         {.heard = {9, 10, 11, 31, 50}, .static_graph = false}),
            31u);
  EXPECT_EQ(chooser.Next(10, kOverlap, {.heard = {30, 31}, .last = 20}), 20u);
  EXPECT_EQ(chooser.Next(10, kOverlap, {}), 11u);
}

// Nobody waits in rounds without an exchange, so neighbours may be as many
// further apart.
TEST(RoundChooserTest, RoundsWithoutExchangesSetNobodyBehind) {
  RoundChooser chooser;
  for (uint64_t round = 100; round < 200; ++round) {
    const std::vector<uint64_t> heard = {round, round + 6, round + 6};
    EXPECT_EQ(chooser.Next(round, kOverlap,
                           {.heard = heard, .missing = heard, .idle = 6}),
              round + 1);
  }
  EXPECT_EQ(chooser.Next(10, kOverlap, {.heard = {10, 30, 31}, .idle = 6}),
            30u);
}

TEST(RoundChooserTest, MeetsThePayloadsThatWaitOnTheWay) {
  RoundChooser chooser;
  const auto next = [&](std::vector<uint64_t> waiting) {
    return chooser.Next(10, kOverlap,
                        {.heard = {29, 30, 31}, .waiting = waiting});
  };
  EXPECT_EQ(next({24}), 24u);
  EXPECT_EQ(next({20, 24, 24, 26}), 24u) << "most of them";
  EXPECT_EQ(next({20, 20, 24, 24}), 24u) << "of as many the newest";
  EXPECT_EQ(next({11}), 11u);
  EXPECT_EQ(next({9, 31}), 30u) << "decided already; beyond the others";
  EXPECT_EQ(chooser.Next(10, kOverlap, {.heard = {10, 14}, .waiting = {13}}),
            11u)
      << "near enough to meet round by round";
}

TEST(RoundChooserTest, FollowsANeighbourThatIsEquallyFarAhead) {
  EXPECT_EQ(FirstJump(4, 0), 101u + 16);
  EXPECT_EQ(FirstJump(1000, 0), 101u + 62) << "a sixteenth of the lead";
  EXPECT_EQ(FirstJump(8, 20), 101u + 16) << "jitter";
  EXPECT_EQ(FirstJump(3, 0), 0u) << "so far apart neighbours may be";
}

TEST(RoundChooserTest, ANeighbourThatRunsAwayIsNotFollowed) {
  EXPECT_EQ(FirstJump(8, 1), 0u);
  EXPECT_EQ(FirstJump(8, 4), 0u);
}

// The lead is smaller than that, or is a part of a round, which shows as a lead
// of 0.  Peers in step do not miss payloads.
TEST(RoundChooserTest, ANeighbourWhosePayloadsItMissesIsFollowed) {
  for (const uint64_t lead : {1, 2, 3}) {
    EXPECT_EQ(FirstJump(lead, 0), 0u);
    EXPECT_EQ(FirstJump(lead, 0, /*missing=*/true), 101u + 16);
    EXPECT_EQ(FirstJump(lead, 20, /*missing=*/true), 101u + 16) << "jitter";
    EXPECT_EQ(FirstJump(lead, 4, /*missing=*/true), 0u) << "it runs away";
  }
  EXPECT_EQ(FirstJump(0, 0, /*missing=*/true), 101u + 16);
  EXPECT_EQ(FirstJump(0, 0, /*missing=*/true, /*overlap=*/2), 0u)
      << "with h of 2 who is in step is a round ahead";
  EXPECT_EQ(FirstJump(1, 0, /*missing=*/true, /*overlap=*/2), 101u + 16);
}

// A neighbour of a later row need not be in step.
TEST(RoundChooserTest, RandomNeighborsMayBeAFewRoundsAhead) {
  RoundChooser chooser;
  for (uint64_t round = 100; round < 200; ++round) {
    ASSERT_EQ(chooser.Next(round, kOverlap,
                           {.heard = {round, round, round + 3},
                            .missing = {round, round + 3},
                            .static_graph = false}),
              round + 1);
  }
}

// A peer that joins at a later round waits like that.
TEST(RoundChooserTest, ANeighbourThatWaitsAtALaterRoundIsNotFollowed) {
  RoundChooser chooser;
  for (uint64_t round = 100; round < 200; ++round) {
    ASSERT_EQ(
        chooser.Next(round, kOverlap, {.heard = {round, round, round, 200}}),
        round + 1);
  }
}

// A lead that was large some time ago is not steady.
TEST(RoundChooserTest, ALeadCountsAfterSixteenRoundsInARow) {
  RoundChooser chooser;
  for (uint64_t round = 100; round < 300; ++round) {
    const uint64_t lead = round % 10 == 0 ? 1 : 8;
    ASSERT_EQ(chooser.Next(round, kOverlap,
                           {.heard = {round, round, round, round + lead}}),
              round + 1);
  }
}

// The service's answers are old, and the other peers have gone on as this one
// did.
TEST(RoundChooserTest, TheFleetsRoundGrowsBetweenAnswers) {
  RoundChooser chooser;
  const RoundsSeen seen = {.heard = {130, 130, 130}, .fleet = 95};
  EXPECT_EQ(chooser.Next(100, kOverlap, seen), 101u);
  chooser.Answered(60);
  EXPECT_EQ(chooser.Next(100, kOverlap, seen), 101u) << "one is not enough";
  chooser.Answered(80);
  EXPECT_EQ(chooser.Next(100, kOverlap, seen), 130u);
  chooser.Answered(100);
  EXPECT_EQ(chooser.Next(100, kOverlap, seen), 95u + 20);
}

TEST(RoundChooserTest, GoesWhereTwoPeersAreAndANeighbourIsSeen) {
  RoundChooser chooser;
  const RoundsSeen seen = {
      .heard = {10, 10, 11, 40}, .fleet = 60, .second = 35};
  EXPECT_EQ(chooser.Next(10, kOverlap, seen), 35u);
}

// A false number costs nothing to send: neither of two neighbours nor of four
// may one take the others to the end of the run.
TEST(RoundChooserTest, ASinglePeerFarAheadIsNotFollowed) {
  for (const size_t honest : {1, 3}) {
    RoundChooser chooser;
    for (uint64_t round = 100; round < 1000; ++round) {
      RoundsSeen seen = {.heard = std::vector<uint64_t>(honest, round),
                         .fleet = 900'100,
                         .second = round + 1,
                         .last = 1'000'000};
      seen.heard.push_back(900'100);
      ASSERT_EQ(chooser.Next(round, kOverlap, seen), round + 1);
      if (round % 100 == 0) chooser.Answered(round);
    }
  }
}

// The other peer of a fleet of two may have trained alone for so long.
TEST(RoundChooserTest, InAFleetOfTwoAPeerFollowsTheOther) {
  RoundChooser chooser;
  EXPECT_EQ(chooser.Next(100, kOverlap, {.heard = {900'100}, .pair = true}),
            900'100u);
}

// A peer that knows the rule can lead by as much as is believed at once, or
// wait and lead by more.  The others' reports then follow the round to which it
// has led this peer.
TEST(RoundChooserTest, ALeadingNeighbourSpeedsAPeerUpByABoundedFactor) {
  for (const uint64_t patience : {1, 2, 10, 50}) {
    RoundChooser chooser;
    uint64_t round = 100, second = 100;
    constexpr uint64_t kMade = 2000;
    for (uint64_t made = 0; made < kMade; ++made) {
      const uint64_t lead = 16 * patience;
      round = chooser.Next(round, kOverlap,
                           {.heard = {round, round + lead},
                            .fleet = round + lead,
                            .second = second});
      if (made % 50 != 0) continue;
      chooser.Answered(round);
      second = round;
    }
    EXPECT_LE(round, 100 + 50 * kMade) << patience;
  }
}

}  // namespace round_chooser_test
}  // namespace gossamer
