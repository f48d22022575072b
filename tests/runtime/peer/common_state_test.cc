// What an edge had brought is given back between steps, never in one.

#include "runtime/peer/common_state.h"

#include <map>
#include <memory>
#include <vector>

#include "algorithms/game/quadratic_game.h"
#include "algorithms/game/tracked_game.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::Each;
using ::testing::FloatNear;

std::unique_ptr<Game> Quadratic() {
  return *QuadraticGame::Create({.dimension = 4}, 0, 2, 7);
}

class CommonStateTest : public testing::TestWithParam<bool> {  // tracked?
 protected:
  CommonStateTest() {
    if (GetParam()) game_ = std::make_unique<TrackedGame>(std::move(game_));
    const OptimizerSpec rule = {.name = GetParam() ? "sgd" : "cold",
                                .learning_rate = 0.5};
    step_ = *LocalStep::Create({.generator = rule, .discriminator = rule},
                               game_.get());
  }
  // As a correction does: to the parameters, and to the dual.
  void Bring(float value) {
    const std::vector<float> all(game_->parameters().size(), value);
    for (float& x : game_->parameters()) x += value;
    if (step_->has_dual()) step_->OnCorrection(1, all);
  }

  std::unique_ptr<Game> game_ = Quadratic();
  std::unique_ptr<LocalStep> step_;
};

INSTANTIATE_TEST_SUITE_P(Methods, CommonStateTest, testing::Bool());

TEST_P(CommonStateTest, WhatIsLostWhileAStepIsUnderWayWaitsForItsEnd) {
  CommonState common(step_.get());
  Bring(2);
  EXPECT_THAT(step_->Brought(), Each(FloatNear(2, 1e-6)));
  const std::vector<float> sum(common.extent().size, 0.5f);
  common.OnLost(sum);
  EXPECT_THAT(step_->Brought(), Each(FloatNear(1.5, 1e-6)));
  common.BeginStep();
  common.OnLost(sum);
  common.OnLost(sum);
  EXPECT_THAT(step_->Brought(), Each(FloatNear(1.5, 1e-6)));
  common.EndStep();
  EXPECT_THAT(step_->Brought(), Each(FloatNear(0.5, 1e-6)));
  common.EndStep();
  EXPECT_THAT(step_->Brought(), Each(FloatNear(0.5, 1e-6)));
}

TEST_P(CommonStateTest, AfterACheckpointOnlyItsEdgesHaveBroughtSomething) {
  CommonState common(step_.get());
  Bring(2);
  SavedEdges edges;
  edges[PeerId{2}].side.sum.assign(common.extent().size, 2.0f);
  common.Restored(edges);
  EXPECT_THAT(step_->Brought(), Each(FloatNear(2, 1e-6)));
  edges[PeerId{2}].side.sum.assign(common.extent().size, 0.75f);
  common.Restored(edges);
  EXPECT_THAT(step_->Brought(), Each(FloatNear(0.75, 1e-6)));
  common.Restored({});
  EXPECT_THAT(step_->Brought(), Each(FloatNear(0, 1e-6)));
}

}  // namespace
}  // namespace gossamer
