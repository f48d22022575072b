// The failure detector probes through others before it suspects, and its health
// multiplier is bounded.

#include "runtime/membership/failure_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gossamer {
namespace failure_detector_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr PeerId kA{1}, kB{2};

// Two neighbours and a clock; ticks come when they are due.
class FailureDetectorTest : public testing::Test {
 protected:
  FailureDetectorTest() { detector_.Watch({kA, kB}, now_); }
  using IndirectProbe = FailureDetector::IndirectProbe;

  // Ticks until `seconds` have passed; `kB` is heard of before each.
  std::vector<PeerId> Run(double seconds) {
    FailureDetector::Probes probes;
    const absl::Time end = now_ + absl::Seconds(seconds);
    while (now_ < end) {
      now_ += detector_.period();
      detector_.Heard(kB, now_);
      probes = detector_.Tick(now_);
    }
    indirect_ = probes.indirect;
    return probes.direct;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  FailureDetector detector_{absl::Seconds(2)};
  std::vector<IndirectProbe> indirect_;  // asked at the last tick
};

TEST_F(FailureDetectorTest, ASilentPeerIsProbedAndThenSuspected) {
  EXPECT_THAT(Run(0.5), IsEmpty());
  EXPECT_THAT(Run(0.5), ElementsAre(kA));
  EXPECT_THAT(detector_.suspected(), IsEmpty());
  Run(1);
  EXPECT_THAT(detector_.suspected(), IsEmpty());
  Run(0.3);
  EXPECT_THAT(detector_.suspected(), ElementsAre(kA));
  detector_.Heard(kA, now_);
  Run(0.1);
  EXPECT_THAT(detector_.suspected(), IsEmpty());
}

TEST_F(FailureDetectorTest, OtherPeersAreAskedAboutASilentOne) {
  Run(1);
  EXPECT_THAT(indirect_, IsEmpty());
  Run(0.25);
  EXPECT_THAT(indirect_, ElementsAre(IndirectProbe{.proxy = kB, .target = kA}));
}

TEST_F(FailureDetectorTest, ProxiesTakeTurns) {
  constexpr PeerId kC{3}, kD{4};
  std::set<PeerId> asked;
  for (int tick = 1; tick <= 7; ++tick) {
    detector_.Watch({kA, kB, kC, kD}, now_);
    now_ += detector_.period();
    for (const PeerId peer : {kB, kC, kD}) detector_.Heard(peer, now_);
    const auto probes = detector_.Tick(now_).indirect;
    EXPECT_EQ(probes.size(), tick == 5 || tick == 7 ? 2u : 0u) << tick;
    for (const IndirectProbe& q : probes) asked.insert(q.proxy);
  }
  EXPECT_THAT(asked, ElementsAre(kB, kC, kD));
}

// A proxy that falsely answers for a dead peer gains it one suspicion time.
TEST_F(FailureDetectorTest, APeerWithIndirectAcksGainsOneSuspicionTime) {
  for (int acks = 0; acks < 14; ++acks) {
    Run(0.25);
    EXPECT_THAT(detector_.suspected(), IsEmpty()) << acks;
    detector_.OnIndirectAck(kA, now_);
  }
  EXPECT_THAT(indirect_, IsEmpty());
  Run(1);
  EXPECT_THAT(detector_.suspected(), ElementsAre(kA));
  // The peer's next silence is a new one.
  detector_.Heard(kA, now_);
  Run(4.25);
  EXPECT_THAT(detector_.suspected(), ElementsAre(kA));
}

// The service answers once the peer is suspected.
TEST_F(FailureDetectorTest, AnAckThatComesAfterASuspicionEndsItForAWhile) {
  Run(2.3);
  EXPECT_THAT(detector_.suspected(), ElementsAre(kA));
  detector_.OnIndirectAck(kA, now_);
  Run(1.5);
  EXPECT_THAT(detector_.suspected(), IsEmpty());
  EXPECT_TRUE(detector_.HasIndirectAck(kA));
  Run(0.5);
  EXPECT_THAT(detector_.suspected(), ElementsAre(kA));
}

TEST_F(FailureDetectorTest, AnAckOfASilenceThatIsOverCountsForNoOther) {
  Run(2.3);
  detector_.Heard(kA, now_);
  detector_.OnIndirectAck(kA, now_);
  EXPECT_FALSE(detector_.HasIndirectAck(kA));
  // It was suspected for nothing, and has twice the time.
  Run(4.3);
  EXPECT_THAT(detector_.suspected(), ElementsAre(kA));
}

// A link with pauses of seconds: 600 ms, losses and a full queue.
TEST_F(FailureDetectorTest, APeerThatWasSuspectedForNothingGetsMoreTime) {
  for (const double seconds : {2.0, 4.0, 8.0, 8.0}) {
    Run(seconds);
    EXPECT_THAT(detector_.suspected(), IsEmpty()) << seconds;
    Run(0.3);
    EXPECT_THAT(detector_.suspected(), ElementsAre(kA)) << seconds;
    detector_.Heard(kA, now_);
  }
  for (int i = 0; i < 301; ++i) {
    Run(1);
    detector_.Heard(kA, now_);
  }
  Run(2.3);
  EXPECT_THAT(detector_.suspected(), ElementsAre(kA));
}

TEST_F(FailureDetectorTest, APeerThatWasFrozenSuspectsNobodyAtOnce) {
  Run(1);
  now_ += absl::Seconds(60);  // the peer is frozen
  detector_.Tick(now_);
  EXPECT_THAT(detector_.suspected(), IsEmpty());
  EXPECT_EQ(detector_.health_multiplier(), 2);
  Run(1.3);  // 2.3 s of its own time
  EXPECT_THAT(detector_.suspected(), IsEmpty());
  Run(2);
  EXPECT_THAT(detector_.suspected(), ElementsAre(kA));
}

TEST_F(FailureDetectorTest, TheHealthMultiplierIsBoundedAndReturnsToOne) {
  for (int i = 0; i < 100; ++i) {
    now_ += absl::Seconds(1);
    detector_.Tick(now_);
  }
  EXPECT_EQ(detector_.health_multiplier(), 8);
  Run(100);
  EXPECT_EQ(detector_.health_multiplier(), 1);
}

TEST_F(FailureDetectorTest, APeerThatIsNoLongerWatchedIsForgotten) {
  Run(10);
  EXPECT_THAT(detector_.suspected(), ElementsAre(kA));
  detector_.Watch({kB}, now_);
  Run(0.1);
  EXPECT_THAT(detector_.suspected(), IsEmpty());
  // A peer that is watched again counts as heard of now.
  detector_.Watch({kA, kB}, now_);
  Run(1);
  EXPECT_THAT(detector_.suspected(), IsEmpty());
}

}  // namespace failure_detector_test
}  // namespace gossamer
