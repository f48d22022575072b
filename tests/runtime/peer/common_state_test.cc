// An edge that ends has its sum taken back between steps, never within one.

#include "runtime/peer/common_state.h"

#include <map>
#include <memory>
#include <vector>

#include "algorithms/game/quadratic_game.h"
#include "algorithms/method/registry.h"
#include "algorithms/optim/local_step.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace common_state_test {

using ::testing::Each;
using ::testing::FloatNear;

std::unique_ptr<Game> Quadratic() {
  return *QuadraticGame::Create({.dimension = 4}, 0, 2, 7);
}

// The parameter says whether the method tracks gradients.
class CommonStateTest : public testing::TestWithParam<bool> {
 protected:
  CommonStateTest() {
    if (GetParam())
      game_ = FindMethod("gradient-tracking")->game(std::move(game_));
    const std::string name = GetParam() ? "sgd" : "cold";
    const OptimizerSpec rule = {
        .name = name, .make = OwnRule(name), .learning_rate = 0.5};
    step_ = *LocalStep::Create({.generator = rule, .discriminator = rule},
                               game_.get());
  }
  // Adds `value` as a correction does, to the parameters and to the dual.
  void Add(float value) {
    const std::vector<float> all(game_->parameters().size(), value);
    for (float& x : game_->parameters()) x += value;
    step_->hooks()->OnCorrection(1, all);
  }

  std::unique_ptr<Game> game_ = Quadratic();
  std::unique_ptr<LocalStep> step_;
};

INSTANTIATE_TEST_SUITE_P(Methods, CommonStateTest, testing::Bool());

TEST_P(CommonStateTest, AnEdgeThatEndsDuringAStepWaitsForTheStepsEnd) {
  CommonState common(step_->hooks());
  Add(2);
  EXPECT_THAT(step_->hooks()->Added(), Each(FloatNear(2, 1e-6)));
  const std::vector<float> sum(common.extent().size, 0.5f);
  common.OnEdgeEnd(sum);
  EXPECT_THAT(step_->hooks()->Added(), Each(FloatNear(1.5, 1e-6)));
  common.BeginStep();
  common.OnEdgeEnd(sum);
  common.OnEdgeEnd(sum);
  EXPECT_THAT(step_->hooks()->Added(), Each(FloatNear(1.5, 1e-6)));
  common.EndStep();
  EXPECT_THAT(step_->hooks()->Added(), Each(FloatNear(0.5, 1e-6)));
  common.EndStep();
  EXPECT_THAT(step_->hooks()->Added(), Each(FloatNear(0.5, 1e-6)));
}

TEST_P(CommonStateTest, AfterACheckpointOnlyItsEdgesHaveAddedSomething) {
  CommonState common(step_->hooks());
  Add(2);
  SavedEdges edges;
  edges[PeerId{2}].codec_state.sum.assign(common.extent().size, 2.0f);
  common.Restored(edges);
  EXPECT_THAT(step_->hooks()->Added(), Each(FloatNear(2, 1e-6)));
  edges[PeerId{2}].codec_state.sum.assign(common.extent().size, 0.75f);
  common.Restored(edges);
  EXPECT_THAT(step_->hooks()->Added(), Each(FloatNear(0.75, 1e-6)));
  common.Restored({});
  EXPECT_THAT(step_->hooks()->Added(), Each(FloatNear(0, 1e-6)));
}

}  // namespace common_state_test
}  // namespace gossamer
