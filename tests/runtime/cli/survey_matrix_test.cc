#include "runtime/cli/survey_matrix.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

wire::LinkSurveyStatus Answer(const std::vector<double>& rtt,
                              const std::vector<double>& rate) {
  wire::LinkSurveyStatus status;
  status.add_member_id(4);
  status.add_member_id(9);
  for (const double v : rtt) status.add_rtt_seconds(v);
  for (const double v : rate) status.add_bytes_per_second(v);
  return status;
}

TEST(SurveyMatrixTest, WhatWasMeasuredCanBePlannedWith) {
  const auto matrix =
      MatrixOf(Answer({-1, 0.030, 0.020, -1}, {0, 12.5e6, 1e-3, 0}));
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_THAT(matrix->names, ElementsAre("peer-4", "peer-9"));
  EXPECT_THAT(matrix->rtt_ms[0], ElementsAre(0, 20));
  EXPECT_THAT(matrix->mbit[0], ElementsAre(0, DoubleNear(103.59, 0.01)));
  EXPECT_THAT(matrix->mbit[1], ElementsAre(kLeastMatrixMbit, 0))
      << "the slowest that a matrix has";
  const auto read = ParseNetworkMatrix(MatrixText(*matrix), "f");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rtt_ms, matrix->rtt_ms);
  const auto fast = MatrixOf(Answer({0, 0, 0, 0}, {0, 1e300, 0, 0}));
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_THAT(fast->mbit[0], ElementsAre(0, 0)) << "no limit was seen";
}

TEST(SurveyMatrixTest, WhatIsNoNumberWasNotMeasured) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& answer : {Answer({0, -1, 1, 0}, {0, 1, 1, 0}),
                             Answer({0, nan, 1, 0}, {0, 1, 1, 0}),
                             Answer({0, inf, 1, 0}, {0, 1, 1, 0}),
                             Answer({0, 1, 1, 0}, {0, nan, 1, 0}),
                             Answer({0, 1, 1, 0}, {0, inf, 1, 0})}) {
    const auto matrix = MatrixOf(answer);
    EXPECT_TRUE(absl::IsUnavailable(matrix.status())) << matrix.status();
    EXPECT_THAT(std::string(matrix.status().message()),
                HasSubstr("not measured: peer 4 to 9;"));
  }
}

TEST(SurveyMatrixTest, WhatIsNoMatrixIsRefused) {
  EXPECT_TRUE(absl::IsInternal(MatrixOf(Answer({0, 1}, {0, 1})).status()));
  auto twice = Answer({0, 1, 1, 0}, {0, 1, 1, 0});
  twice.set_member_id(1, 4);
  EXPECT_TRUE(absl::IsInternal(MatrixOf(twice).status()));
  EXPECT_TRUE(absl::IsInternal(MatrixOf({}).status()));
}

}  // namespace
}  // namespace gossamer
