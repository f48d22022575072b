// Gradient tracking by itself: the sum that it keeps, and its restart in a new
// incarnation.

#include <algorithm>
#include <memory>
#include <vector>

#include "algorithms/game/quadratic_game.h"
#include "algorithms/method/registry.h"
#include "algorithms/optim/local_step.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace gradient_tracking_test {

constexpr int kPeers = 3;
constexpr size_t kSize = 16;  // size of x

// A game whose gradients can be made to fail.
class FaintGame final : public Game {
 public:
  explicit FaintGame(int rank)
      : inner_(*QuadraticGame::Create(
            {.dimension = kSize / 2, .heterogeneity = 1}, rank, kPeers, 7)) {}
  const ParameterLayout& layout() const override { return inner_->layout(); }
  DeviceSpan<float> device_parameters() override {
    return inner_->device_parameters();
  }
  DeviceSpan<const float> device_gradients() const override {
    return inner_->device_gradients();
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    if (faint) return absl::DataLossError("not finite");
    return inner_->Gradient(players, key);
  }
  bool faint = false;

 private:
  const std::unique_ptr<QuadraticGame> inner_;
};

struct TrackingTest : testing::Test {
  TrackingTest() {
    for (int r = 0; r < kPeers; ++r) {
      auto game = std::make_unique<FaintGame>(r);
      inner.push_back(game.get());
      games.push_back(FindMethod("gradient-tracking")->game(std::move(game)));
    }
  }
  // Mixes over all edges of a triangle; the corrections of two ends are
  // opposite.
  void Mix() {
    for (int a = 0; a < kPeers; ++a) {
      const int b = (a + 1) % kPeers;
      const auto x = games[a]->parameters(), y = games[b]->parameters();
      for (size_t i = 0; i < x.size(); ++i) {
        const float d = 0.25f * (y[i] - x[i]);
        x[i] += d, y[i] -= d;
        if (i >= kSize) brought[a][i - kSize] += d;
      }
    }
  }
  void Step() {
    for (auto& game : games) {
      if (!game->Gradient(Players::kBoth, RngKey(1)).ok()) continue;
      const auto t = game->gradients();
      for (size_t i = 0; i < kSize; ++i) game->parameters()[i] -= 0.1f * t[i];
    }
  }
  // Returns the difference between the sum of all t and that of the last
  // gradients of `peers`.
  double Off(int peers = kPeers) {
    double off = 0;
    for (size_t i = 0; i < kSize; ++i) {
      double sum = 0;
      for (int r = 0; r < peers; ++r) {
        sum += games[r]->parameters()[kSize + i];
        sum -= inner[r]->gradients()[i];
      }
      off = std::max(off, std::abs(sum));
    }
    return off;
  }

  std::vector<FaintGame*> inner;
  // The sum that each peer's edge to the next has added to t.
  std::array<std::array<float, kSize>, kPeers> brought = {};
  std::vector<std::unique_ptr<Game>> games;
};

TEST_F(TrackingTest, TheSumStaysThatOfTheGradients) {
  for (int step = 0; step < 300; ++step) {
    inner[1]->faint = step % 5 == 2;
    Step();
    ASSERT_LT(Off(), 1e-5) << step;
    Mix();
    ASSERT_LT(Off(), 1e-5) << step;
  }
  for (int r = 0; r < kPeers; ++r) {
    for (const float t : games[r]->gradients()) ASSERT_NEAR(t, 0, 1e-4);
  }
}

TEST_F(TrackingTest, TakesBackWhatAnEndedEdgeHadAdded) {
  for (int step = 0; step < 5; ++step) Step(), Mix();
  // The third peer has gone, with its share of the others' gradients.
  EXPECT_GT(Off(2), 0.1);
  for (int r = 0; r < 2; ++r) {
    std::vector<float> left = games[r]->hooks()->Added();
    for (size_t i = 0; i < kSize; ++i) {
      left[i] -= (r == 0 ? 1 : -1) * brought[0][i];
    }
    games[r]->hooks()->OnEdgeEnd(left);
    // The sum holds after a step that failed.
    inner[r]->faint = true;
    EXPECT_FALSE(games[r]->Gradient(Players::kBoth, RngKey(1)).ok());
    inner[r]->faint = false;
  }
  Step();
  EXPECT_LT(Off(2), 1e-5);
}

// The new incarnation has parameters of others, and an exchange before its
// first gradient.
TEST_F(TrackingTest, ANewIncarnationAddsItsOwnGradientAlone) {
  for (int step = 0; step < 5; ++step) Step(), Mix();
  for (auto& game : games) {
    const auto t = game->parameters().last(kSize);
    std::ranges::fill(t, 3.0f + t[0]);
    game->hooks()->OnNewIncarnation();
    for (const float v : game->hooks()->Added()) EXPECT_EQ(v, 0);
  }
  Mix();
  Step();
  EXPECT_LT(Off(), 1e-5);
}

TEST_F(TrackingTest, KeepsTheGeneratorsExtentAndDoublesTheRest) {
  const ParameterLayout& own = games[0]->layout();
  EXPECT_EQ(own.size(), 2 * kSize);
  EXPECT_EQ(own.extent(Player::kGenerator),
            inner[0]->layout().extent(Player::kGenerator));
  EXPECT_NE(own.fingerprint(), inner[0]->layout().fingerprint());
  Step();
  const auto g = games[0]->gradients();
  EXPECT_TRUE(
      std::all_of(g.begin() + kSize, g.end(), [](float x) { return x == 0; }));
}

TEST_F(TrackingTest, AFailedStepChangesNothing) {
  Step();
  const auto x = games[0]->parameters();
  const std::vector<float> before(x.begin(), x.end());
  inner[0]->faint = true;
  EXPECT_FALSE(games[0]->Gradient(Players::kBoth, RngKey(2)).ok());
  EXPECT_EQ(
      games[0]->Gradient(Players::kDiscriminator, RngKey(2)).status().code(),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(x, testing::ElementsAreArray(before));
}

}  // namespace gradient_tracking_test
}  // namespace gossamer
