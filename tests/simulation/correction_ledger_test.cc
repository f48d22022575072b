// The ledger accepts corrections that have their opposites, or whose opposites
// a crash excuses, and names every other one.

#include "tests/simulation/correction_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gossamer::simulation {
namespace correction_ledger_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr PeerId kOne{1}, kTwo{2};

// Two peers in their first incarnations, with epochs 10 and 20.
class CorrectionLedgerTest : public testing::Test {
 protected:
  CorrectionLedgerTest() {
    Live(kOne, 1, 10);
    Live(kTwo, 1, 20);
  }
  void Live(PeerId peer, uint64_t process, uint64_t epoch) {
    ledger_.Begin(peer, process);
    EXPECT_THAT(ledger_.Own(peer, process, epoch), IsEmpty());
  }
  const EdgeEndName one_{kOne, kTwo, 10, 20};
  const EdgeEndName two_{kTwo, kOne, 20, 10};
  CorrectionLedger ledger_;
};

TEST_F(CorrectionLedgerTest, OppositesAtBothEndsAreFine) {
  EXPECT_THAT(ledger_.Apply(one_, 256, 7), IsEmpty());
  EXPECT_THAT(ledger_.Apply(two_, 256, 7), IsEmpty());
  EXPECT_THAT(ledger_.Finish(), IsEmpty());
}

TEST_F(CorrectionLedgerTest, RepeatedUnequalAndMissingCorrectionsAreFound) {
  EXPECT_THAT(ledger_.Apply(one_, 256, 7), IsEmpty());
  EXPECT_THAT(ledger_.Apply(one_, 256, 7), HasSubstr("twice"));
  EXPECT_THAT(ledger_.Apply(two_, 256, 8), HasSubstr("not the opposite"));
  EXPECT_THAT(ledger_.Apply(two_, 512, 8), IsEmpty());
  EXPECT_THAT(ledger_.Finish(), HasSubstr("never did"));
}

TEST_F(CorrectionLedgerTest, ACrashExcusesItsIncarnation) {
  EXPECT_THAT(ledger_.Apply(one_, 256, 7), IsEmpty());
  ledger_.Crash(kTwo, 1);
  Live(kTwo, 2, 30);
  EXPECT_THAT(ledger_.Finish(), IsEmpty());
  EXPECT_THAT(ledger_.Apply({kOne, kTwo, 10, 30}, 512, 7), IsEmpty());
  EXPECT_THAT(ledger_.Finish(), HasSubstr("never did"));
}

TEST_F(CorrectionLedgerTest, ACrashExcusesOnlyTheLastCorrections) {
  for (const ExchangeId id : {256, 512, 768}) {
    EXPECT_THAT(ledger_.Apply(one_, id, 7), IsEmpty());
    if (id == 512) continue;
    EXPECT_THAT(ledger_.Apply(two_, id, 7), IsEmpty());
  }
  ledger_.Crash(kTwo, 1);
  EXPECT_THAT(ledger_.Finish(), HasSubstr("it applied later ones"));
}

TEST_F(CorrectionLedgerTest, AnEvictedPeerThatReportsItsLossIsExcused) {
  EXPECT_THAT(ledger_.Apply(two_, 256, 7), IsEmpty());
  const Event lost{{}, 2, "edge_lost", "peer 1 began anew"};
  ledger_.OnEvent(kTwo, lost);
  EXPECT_THAT(ledger_.Finish(), HasSubstr("never did"));
  ledger_.OnEvent(kOne, {{}, 1, "member_removed", "peer 2 is in no view"});
  EXPECT_THAT(ledger_.Finish(), HasSubstr("never did"));
  ledger_.OnEvent(kTwo, lost);
  EXPECT_THAT(ledger_.Finish(), IsEmpty());
}

TEST_F(CorrectionLedgerTest, ResumingFromARecordUndoesLaterCorrections) {
  // Peer 2 applies the second exchange after its cut; then both go on from it.
  for (const ExchangeId id : {256, 512}) {
    EXPECT_THAT(ledger_.Apply(one_, id, id), IsEmpty());
    EXPECT_THAT(ledger_.Apply(two_, id, id), IsEmpty());
  }
  EXPECT_THAT(ledger_.Apply(one_, 768, 768), IsEmpty());
  Live(kOne, 2, 11);
  ledger_.Resume(one_, 2, 768, 768);  // nothing was pending
  Live(kTwo, 2, 21);
  ledger_.Resume(two_, 2, 257, 768);
  EXPECT_THAT(ledger_.Finish(), HasSubstr("never did"));
  EXPECT_THAT(ledger_.Apply({kTwo, kOne, 21, 0}, 512, 512), IsEmpty());
  EXPECT_THAT(ledger_.Finish(), IsEmpty());
}

// The second incarnation saves a record before it has applied the exchanges
// that were pending in its own; so does the third.
TEST_F(CorrectionLedgerTest, AnExchangeMayBePendingInTwoIncarnations) {
  for (const ExchangeId id : {256, 512}) {
    EXPECT_THAT(ledger_.Apply(one_, id, id), IsEmpty());
    EXPECT_THAT(ledger_.Apply(two_, id, id), IsEmpty());
  }
  Live(kOne, 2, 11);
  ledger_.Resume(one_, 2, 513, 768);
  Live(kTwo, 2, 21);
  ledger_.Resume(two_, 2, 257, 768);
  EXPECT_THAT(ledger_.Apply({kTwo, kOne, 21, 11}, 512, 512), IsEmpty());
  EXPECT_THAT(ledger_.Finish(), IsEmpty());
  Live(kTwo, 3, 31);
  ledger_.Resume({kTwo, kOne, 21, 11}, 3, 257, 1024);
  EXPECT_THAT(ledger_.Finish(), HasSubstr("never did"));
  EXPECT_THAT(ledger_.Apply({kTwo, kOne, 31, 0}, 512, 512), IsEmpty());
  EXPECT_THAT(ledger_.Finish(), IsEmpty());
}

// The second incarnation closes the edge and begins it anew.  The third goes on
// from a record of the new edge, of which nothing is complete.
TEST_F(CorrectionLedgerTest, ANewIncarnationUndoesNothingOfTheOneBefore) {
  EXPECT_THAT(ledger_.Apply(one_, 256, 7), IsEmpty());
  EXPECT_THAT(ledger_.Apply(two_, 256, 7), IsEmpty());
  Live(kOne, 2, 11);
  Live(kTwo, 2, 21);
  ledger_.Resume(one_, 2, 512, 512);
  ledger_.Resume(two_, 2, 512, 512);
  EXPECT_THAT(ledger_.Own(kOne, 2, 12), IsEmpty());
  EXPECT_THAT(ledger_.Own(kTwo, 2, 22), IsEmpty());
  Live(kOne, 3, 13);
  Live(kTwo, 3, 23);
  ledger_.Resume({kOne, kTwo, 12, 22}, 3, 0, 1024);
  EXPECT_THAT(ledger_.Finish(), IsEmpty());
}

TEST_F(CorrectionLedgerTest, TwoProcessesMustNotShareAnEpoch) {
  ledger_.Begin(kOne, 2);
  EXPECT_THAT(ledger_.Own(kOne, 2, 10), HasSubstr("the same epoch"));
}

}  // namespace correction_ledger_test
}  // namespace gossamer::simulation
