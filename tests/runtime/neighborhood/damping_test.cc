// Damping of late corrections: it acts on the oldest, forgets, and keeps the
// worst mode of mixing stable.

#include "runtime/neighborhood/damping.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "algorithms/base/ids.h"
#include "algorithms/compress/codec.h"

namespace gossamer {
namespace damping_test {

void Correct(Damping& damping, uint64_t round, uint64_t now) {
  damping.OnCorrection({.id = MakeExchangeId(round), .c = 0.5F});
  damping.Completed(MakeExchangeId(now + 1));
}

TEST(Damping, LeavesWhatIsOnTimeAlone) {
  Damping damping;
  EXPECT_EQ(damping.Factor(0.1, 1), 1);
  for (uint64_t round = 1; round < 50; ++round) {
    Correct(damping, round, round);
    damping.Completed(MakeExchangeId(round + 1));  // no correction
    EXPECT_EQ(damping.Factor(0.1, 8), 1);
  }
}

TEST(Damping, ForgetsWhatWasLateOnce) {
  Damping damping;
  Correct(damping, 10, 13);
  EXPECT_EQ(damping.lateness(), 3);
  const double before = damping.Factor(1, 1);
  EXPECT_LT(before, 0.5);
  Correct(damping, 14, 14);
  EXPECT_EQ(damping.lateness(), 2);
  EXPECT_GT(damping.Factor(1, 1), before);
  for (uint64_t round = 15; round < 25; ++round) Correct(damping, round, round);
  EXPECT_EQ(damping.Factor(1, 1), 1);
}

TEST(Damping, TheOldestOfSeveralCounts) {
  Damping damping;
  damping.OnCorrection({.id = MakeExchangeId(7), .c = 0.5F});
  damping.OnCorrection({.id = MakeExchangeId(9), .c = 0.5F});
  damping.Completed(MakeExchangeId(10));
  EXPECT_EQ(damping.lateness(), 2);
  Correct(damping, 1, uint64_t{1} << 30);
  EXPECT_EQ(damping.lateness(), 16);
  EXPECT_GT(damping.Factor(1, 1), 0);
}

TEST(Damping, CountsRoundsThatMixedNothingOnceTheyAreDue) {
  constexpr uint64_t kOverlap = 3;
  Damping damping;
  // No round counts before the edge begins, or while nothing is due.
  for (uint64_t round = 1; round < 20; ++round) {
    if (round >= 15) damping.Emitted(round);
    damping.Completed(MakeExchangeId(round + 2 - kOverlap));
    EXPECT_EQ(damping.missed(), round < 17 ? 0 : static_cast<int>(round - 16));
  }
  // A round has two phases, of which the second corrects.
  damping.Emitted(20);
  damping.Completed(MakeExchangeId(20, 1));
  EXPECT_EQ(damping.missed(), 6);  // rounds 15 to 20
  damping.Emitted(20);
  Correct(damping, 20, 20);
  EXPECT_EQ(damping.missed(), 5);
  for (uint64_t round = 21; round < 36; ++round) {
    damping.Emitted(round);
    Correct(damping, round, round);
  }
  EXPECT_EQ(damping.missed(), 0);
}

// Iterates x(t + 1) = x(t) - c x(t - age), the worst mode of mixing.  With the
// factor it shrinks at every age; without it, it grows from an age of a few
// rounds on.
TEST(Damping, KeepsTheWorstModeStable) {
  constexpr double kStep = 2.0 / 3;  // for age 1, which allows 1
  constexpr double kStable = 2.0 / 3 * 2 / kStep;
  for (int late = 0; late <= 12; ++late) {
    Damping damping;
    Correct(damping, 100, 100 + static_cast<uint64_t>(late));
    const auto grows = [&](double c) {
      std::deque<double> past(static_cast<size_t>(late) + 2, 1.0);
      double largest = 0;
      for (int t = 0; t < 4000; ++t) {
        past.push_back(past.back() - c * past.front());
        past.pop_front();
        if (t > 3900) largest = std::max(largest, std::abs(past.back()));
      }
      return largest > 1;
    };
    EXPECT_FALSE(grows(kStep * damping.Factor(kStable, 2))) << late;
    EXPECT_EQ(grows(kStep), late >= 1) << late;
  }
}

}  // namespace damping_test
}  // namespace gossamer
