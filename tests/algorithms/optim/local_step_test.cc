// A local step of both players: which player moves, at which rate, along which
// gradient.

#include "algorithms/optim/local_step.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace local_step_test {

// A game with constant gradients, 3 for the two parameters of the generator and
// 4 for the one of the discriminator.  It counts the calls.
class ConstantGame final : public Game {
 public:
  ConstantGame()
      : layout_({{"g", Player::kGenerator, {2}, {}},
                 {"d", Player::kDiscriminator, {1}, {}}}) {}
  const ParameterLayout& layout() const override { return layout_; }
  DeviceSpan<float> device_parameters() override { return x_; }
  DeviceSpan<const float> device_gradients() const override { return g_; }
  absl::StatusOr<Losses> Gradient(Players players, RngKey) override {
    asked.push_back(players);
    if (fails) return absl::DataLossError("gradient of d is not finite");
    return Losses{1, 2};
  }
  std::vector<Players> asked;
  bool fails = false;

 private:
  ParameterLayout layout_;
  std::vector<float> x_ = {0, 0, 0};
  std::vector<float> g_ = {3, 3, 4};
};

LocalStepSpec Sgd(double rate) {
  LocalStepSpec spec;
  spec.generator = {.name = "sgd", .learning_rate = rate};
  spec.discriminator = {.name = "sgd", .learning_rate = rate};
  return spec;
}

TEST(LocalStepTest, NCriticMovesTheDiscriminatorAloneFirst) {
  ConstantGame game;
  LocalStepSpec spec = Sgd(1);
  spec.n_critic = 3;
  auto step = *LocalStep::Create(spec, &game);
  for (uint64_t k = 0; k < 6; ++k) ASSERT_TRUE(step->Run(k, 1, RngKey(k)).ok());
  EXPECT_THAT(game.asked, testing::ElementsAre(
                              Players::kDiscriminator, Players::kDiscriminator,
                              Players::kBoth, Players::kDiscriminator,
                              Players::kDiscriminator, Players::kBoth));
  EXPECT_THAT(game.parameters(), testing::ElementsAre(-6, -6, -24));
}

TEST(LocalStepTest, RatesFallLinearlyToTheLastRound) {
  LocalStepSpec spec = Sgd(1);
  spec.decay_from_round = 10;
  spec.last_round = 19;
  for (const auto& [round, scale] : std::vector<std::pair<uint64_t, float>>{
           {1, 1}, {10, 1}, {11, 0.9f}, {15, 0.5f}, {19, 0.1f}}) {
    ConstantGame game;
    auto step = *LocalStep::Create(spec, &game);
    ASSERT_TRUE(step->Run(0, round, RngKey(1)).ok());
    EXPECT_NEAR(game.parameters()[2], -4 * scale, 1e-6) << round;
  }
}

TEST(LocalStepTest, ClipsEachPlayersNorm) {
  ConstantGame game;
  LocalStepSpec spec = Sgd(1);
  spec.gradient_clip = 2;
  auto step = *LocalStep::Create(spec, &game);
  ASSERT_TRUE(step->Run(0, 1, RngKey(1)).ok());
  EXPECT_NEAR(game.parameters()[0], -2 / std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(game.parameters()[1], -2 / std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(game.parameters()[2], -2, 1e-6);
}

TEST(LocalStepTest, ShortGradientsAreNotClipped) {
  ConstantGame game;
  LocalStepSpec spec = Sgd(1);
  spec.gradient_clip = 100;
  auto step = *LocalStep::Create(spec, &game);
  ASSERT_TRUE(step->Run(0, 1, RngKey(1)).ok());
  EXPECT_THAT(game.parameters(), testing::ElementsAre(-3, -3, -4));
}

TEST(LocalStepTest, AFailedGradientMovesNothing) {
  ConstantGame game;
  auto step = *LocalStep::Create(Sgd(1), &game);
  game.fails = true;
  EXPECT_EQ(step->Run(0, 1, RngKey(1)).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_THAT(game.parameters(), testing::Each(0));
}

// The vectors that a rule's state has, whatever their names.
std::vector<float> VectorsOf(LocalStep& step) {
  class Gatherer final : public StateVisitor {
   public:
    bool loads() const override { return false; }
    void Floats(std::string_view, std::span<float> values) override {
      all.insert(all.end(), values.begin(), values.end());
    }
    void Counter(std::string_view, uint64_t&) override {}
    void Bytes(std::string_view, std::vector<std::byte>&) override {}
    std::vector<float> all;
  } gatherer;
  step.VisitState(gatherer);
  return gatherer.all;
}

TEST(LocalStepTest, VectorsOfEveryRuleStayConstantUntilTheCall) {
  const std::vector<float> other = {5, 6, 7};
  for (const std::string_view name : Optimizer::Names()) {
    ConstantGame game;
    LocalStepSpec spec = Sgd(0.1);
    spec.generator.name = spec.discriminator.name = std::string(name);
    auto step = *LocalStep::Create(spec, &game);
    for (uint64_t k = 0; k < 3; ++k)
      ASSERT_TRUE(step->Run(k, 1, RngKey(k)).ok());
    const std::vector<float> before = VectorsOf(*step);
    int calls = 0;
    step->BeforeChange([&] {
      ++calls;
      EXPECT_EQ(VectorsOf(*step), before) << name;
    });
    ASSERT_TRUE(step->Gradient(3, RngKey(3)).ok());
    EXPECT_EQ(calls, 0) << name;
    EXPECT_EQ(VectorsOf(*step), before) << name;
    step->Apply(3, 1, other);
    EXPECT_EQ(calls, 1) << name;
    if (!before.empty()) {
      EXPECT_NE(VectorsOf(*step), before) << name;
    }
    ASSERT_TRUE(step->Run(4, 1, RngKey(4)).ok());
    EXPECT_EQ(calls, 1) << name;
    // A former call comes before a new one takes its place.
    step->BeforeChange([&] { ++calls; });
    step->BeforeChange([] {});
    EXPECT_EQ(calls, 2) << name;
  }
}

TEST(LocalStepTest, UnknownOptimizerIsRefused) {
  ConstantGame game;
  LocalStepSpec spec = Sgd(1);
  spec.discriminator.name = "oadma";
  const auto step = LocalStep::Create(spec, &game);
  EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(step.status().message()),
              testing::HasSubstr("oadam"));
}

}  // namespace local_step_test
}  // namespace gossamer
