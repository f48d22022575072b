// A paced game takes at least its time for a gradient, and changes nothing
// else.

#include "runtime/config/paced_game.h"

#include <algorithm>
#include <ctime>
#include <memory>

#include "absl/time/clock.h"
#include "algorithms/game/synthetic_game.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace paced_game_test {

constexpr absl::Duration kStep = absl::Milliseconds(30);

std::unique_ptr<Game> Synthetic() {
  return *SyntheticGame::Create({.parameters = 100}, 0, 1, 1);
}

// The test has a lower bound only, which holds on the slowest machine.
TEST(PacedGameTest, AGradientTakesItsTimeAndIsTheGames) {
  const auto plain = Synthetic();
  ASSERT_TRUE(plain->Gradient(Players::kBoth, RngKey(1)).ok());
  for (const Pace pace : {Pace::kBurn, Pace::kSleep}) {
    PacedGame paced(Synthetic(), kStep, pace);
    const absl::Time before = absl::Now();
    const std::clock_t cpu = std::clock();
    const auto losses = paced.Gradient(Players::kBoth, RngKey(1));
    ASSERT_TRUE(losses.ok());
    EXPECT_GE(absl::Now() - before, kStep);
    if (pace == Pace::kSleep) {
      EXPECT_LT(std::clock() - cpu,
                absl::ToDoubleSeconds(kStep) * CLOCKS_PER_SEC);
    }
    EXPECT_TRUE(std::ranges::equal(paced.gradients(), plain->gradients()));
    EXPECT_EQ(paced.evaluator()->score_name(), "distance");
  }
}

}  // namespace paced_game_test
}  // namespace gossamer
