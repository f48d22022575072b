// Vectors that several threads copy together.

#include "runtime/checkpoint/deferred_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {
namespace deferred_copy_test {

TEST(DeferredCopy, IsWholeWhicheverThreadFinishes) {
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<float> from(10 * DeferredCopy::kPiece + 7), to(from.size());
    std::iota(from.begin(), from.end(), static_cast<float>(turn));
    std::vector<float> little = {1, 2}, little_to(2);
    DeferredCopy copy;
    copy.Add(from, to.data());
    copy.Add({}, nullptr);
    copy.Add(little, little_to.data());
    std::thread helper([&] { copy.Help(); });
    std::thread second([&] { copy.Finish(); });
    copy.Finish();
    // Nothing is read any longer.
    const std::vector<float> then = from;
    std::fill(from.begin(), from.end(), -1.0f);
    EXPECT_EQ(to, then);
    EXPECT_EQ(little_to, little);
    helper.join();
    second.join();
    copy.Finish();
    EXPECT_EQ(to, then);
  }
}

TEST(DeferredCopy, BringsTheFloatsOfACheckpointThatItIsGiven) {
  std::vector<float> x = {1, 2, 3}, m = {4, 5};
  const auto visit = [&](StateVisitor& v) {
    v.Floats("x", x);
    v.Floats("optimizer.m", m);
  };
  Checkpoint spare = *TakeCheckpoint({.run_id = "r", .round = 1}, visit);
  spare.floats["gone"] = {9};
  const float* const memory = spare.floats["optimizer.m"].data();
  m = {6, 7};
  DeferredCopy copy;
  const Checkpoint taken =
      *TakeCheckpoint({.run_id = "r", .round = 2}, visit, std::move(spare),
                      {.prefix = "optimizer.", .copy = &copy});
  EXPECT_EQ(taken.floats.at("optimizer.m"), (std::vector<float>{4, 5}));
  x = {0, 0, 0};
  m = {8, 9};
  copy.Finish();
  m = {0, 0};
  EXPECT_EQ(taken.floats.at("x"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(taken.floats.at("optimizer.m"), (std::vector<float>{8, 9}));
  EXPECT_EQ(taken.floats.at("optimizer.m").data(), memory);
  EXPECT_FALSE(taken.floats.contains("gone"));
}

}  // namespace deferred_copy_test
}  // namespace gossamer
