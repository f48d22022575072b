// Every schedule is symmetric and doubly stochastic in every round, a pure
// function of seed and round, and contracts as its formula says.

#include "topology/mixing_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "topology/mixing_matrix.h"

namespace gossamer {
namespace mixing_schedule_test {

using ::testing::HasSubstr;

constexpr char kSites[] = "near:1-3,9-20 far:4-8,21-64";

// The graph of that name with all that it needs.
ScheduleSpec Named(const std::string& schedule, int size) {
  ScheduleSpec spec;
  spec.graph = schedule;
  spec.degree = std::min(3, size - 1);
  spec.sites = kSites;
  for (int rank = 1; rank < size; ++rank) {
    absl::StrAppend(&spec.edges, " ", rank - 1, "-", rank);
  }
  return spec;
}

std::unique_ptr<MixingSchedule> Make(const std::string& schedule, int size,
                                     uint64_t seed = 1) {
  auto made = MakeSchedule(Named(schedule, size), size, seed);
  EXPECT_TRUE(made.ok()) << made.status();
  return std::move(made).value();
}

class EverySchedule : public testing::TestWithParam<std::string> {};

TEST_P(EverySchedule, IsSymmetricAndDoublyStochasticInEveryRound) {
  for (int size : {1, 2, 4, 8, 32}) {
    if (size == 1 && GetParam() == "torus") continue;  // has two at least
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const auto schedule = Make(GetParam(), size, seed);
      ASSERT_EQ(schedule->size(), size);
      for (uint64_t round : {1, 2, 3, 50, 1000000007}) {
        const absl::Status ok =
            CheckMixingMatrix(MatrixOfRound(*schedule, round));
        EXPECT_TRUE(ok.ok()) << size << " round " << round << ": " << ok;
      }
    }
  }
}

TEST_P(EverySchedule, RowsAreSortedAndAPureFunction) {
  const auto schedule = Make(GetParam(), 16, 3);
  const auto again = Make(GetParam(), 16, 3);
  for (uint64_t round = 1; round < 30; ++round) {
    for (int rank = 15; rank >= 0; --rank) {
      const MixingRow row = schedule->Row(rank, round);
      EXPECT_EQ(row.neighbors, again->Row(rank, round).neighbors);
      for (size_t i = 0; i < row.neighbors.size(); ++i) {
        EXPECT_NE(row.neighbors[i].rank, rank);
        if (i > 0) {
          EXPECT_GT(row.neighbors[i].rank, row.neighbors[i - 1].rank);
        }
      }
    }
  }
}

TEST_P(EverySchedule, FixedAndPeriodSayWhatTheRowsDo) {
  for (int size : {1, 2, 3, 4, 8}) {
    const auto made = MakeSchedule(Named(GetParam(), size), size, 1);
    if (!made.ok()) continue;  // hypercubes of three
    bool changes = false;
    for (uint64_t round = 2; round < 50; ++round) {
      for (int rank = 0; rank < size; ++rank) {
        changes |= (*made)->Row(rank, round).neighbors !=
                   (*made)->Row(rank, 1).neighbors;
        if (const uint64_t period = (*made)->period(); period > 0) {
          EXPECT_EQ((*made)->Row(rank, round).neighbors,
                    (*made)->Row(rank, round + period).neighbors);
        }
      }
    }
    EXPECT_EQ((*made)->is_static(), !changes) << GetParam() << size;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EverySchedule,
                         testing::ValuesIn(std::vector<std::string>(
                             GraphNames().begin(), GraphNames().end())),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

// Known figures: rho^2 of the ring, and (M/3 - 1)/(M - 1) of the permuted ring.
struct Row {
  int size;
  double fixed;
  double permuted;
};

class ContractionTable : public testing::TestWithParam<Row> {};

TEST_P(ContractionTable, FormulasGiveThePublishedFigures) {
  const auto& [size, fixed, permuted] = GetParam();
  EXPECT_NEAR(ExpectedContraction(*Make("ring", size)).factor, fixed, 6e-4);
  EXPECT_NEAR(ExpectedContraction(*Make("permuted-ring", size)).factor,
              permuted, 6e-4);
}

TEST_P(ContractionTable, MeasuredMeanSquareAgreesWithTheFormula) {
  for (const char* name : {"permuted-ring", "random-matching"}) {
    const auto schedule = Make(name, GetParam().size, 17);
    const Contraction measured = EstimateContraction(*schedule, 1, 4000, 5);
    EXPECT_NEAR(measured.factor, *schedule->expected_contraction(),
                3 * measured.standard_error)
        << name;
    EXPECT_LT(measured.standard_error, 0.005);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ContractionTable,
                         testing::Values(Row{4, 0.111, 0.111},
                                         Row{8, 0.648, 0.238},
                                         Row{16, 0.901, 0.289},
                                         Row{32, 0.975, 0.312},
                                         Row{64, 0.994, 0.323}));

TEST(MixingScheduleTest, OddMatchingLetsOnePeerRest) {
  const auto schedule = Make("random-matching", 7);
  for (uint64_t round = 1; round < 20; ++round) {
    int resting = 0;
    for (int rank = 0; rank < 7; ++rank) {
      resting += schedule->Row(rank, round).neighbors.empty();
    }
    EXPECT_EQ(resting, 1);
  }
  const Contraction measured = EstimateContraction(*schedule, 1, 4000, 5);
  EXPECT_NEAR(measured.factor, 0.5, 3 * measured.standard_error);
}

TEST(MixingScheduleTest, SeedsGiveDifferentRounds) {
  const auto one = Make("permuted-ring", 16, 1);
  const auto two = Make("permuted-ring", 16, 2);
  int different = 0;
  for (uint64_t round = 1; round <= 20; ++round) {
    different += one->Row(0, round).neighbors != two->Row(0, round).neighbors;
  }
  EXPECT_GT(different, 10);
}

TEST(MixingScheduleTest, ExponentialIsAGraphNameToo) {
  ScheduleSpec spec;
  spec.graph = "one-peer-exponential";
  const auto schedule = MakeSchedule(spec, 8, 1);
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ((*schedule)->period(), 3);
  EXPECT_EQ((*schedule)->Row(5, 4).neighbors,
            (std::vector<Neighbor>{{.rank = 7, .weight = 0.5}}));
}

TEST(MixingScheduleTest, MinDegreeOverAllRounds) {
  const auto fewest = [](const std::string& graph, int size) {
    ScheduleSpec spec;
    spec.graph = graph;
    const auto schedule = MakeSchedule(spec, size, 1);
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    return MinDegree(**schedule);
  };
  EXPECT_EQ(fewest("ring", 8), 2);
  EXPECT_EQ(fewest("star", 8), 1);
  EXPECT_EQ(fewest("torus", 9), 4);
  EXPECT_EQ(fewest("torus", 8), 3);
  EXPECT_EQ(fewest("complete", 8), 7);
  EXPECT_EQ(fewest("one-peer-exponential", 16), 4);
  EXPECT_EQ(MinDegree(*Make("permuted-ring", 8)), 7);
}

TEST(MixingScheduleTest, RefusesWhatCannotBe) {
  ScheduleSpec spec;
  spec.graph = "one-peer-exponential";
  EXPECT_THAT(std::string(MakeSchedule(spec, 6, 1).status().message()),
              HasSubstr("power of two"));
  spec.graph = "rign";
  EXPECT_THAT(std::string(MakeSchedule(spec, 6, 1).status().message()),
              HasSubstr("did you mean \"ring\""));
  EXPECT_FALSE(MakeSchedule({}, 0, 1).ok());
  EXPECT_FALSE(MakeSchedule({}, 1 << 30, 1).ok());
}

}  // namespace mixing_schedule_test
}  // namespace gossamer
