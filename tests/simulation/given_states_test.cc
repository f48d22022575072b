#include "tests/simulation/given_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gossamer::simulation {
namespace given_states_test {

TEST(GivenStatesTest, AnAverageLiesBetweenTheStates) {
  GivenStates given;
  given.Give(std::vector<float>{1, -2});
  given.Give(std::vector<float>{3, -4});
  EXPECT_EQ(given.Check(std::vector<float>{2, -3}), "");
  EXPECT_EQ(given.Check(std::vector<float>{1, -4}), "");
  EXPECT_THAT(given.Check(std::vector<float>{2, -5}),
              ::testing::HasSubstr("got -5 as parameter 1"));
  // The sum of both instead of their average.
  EXPECT_NE(given.Check(std::vector<float>{4, -6}), "");
}

}  // namespace given_states_test
}  // namespace gossamer::simulation
