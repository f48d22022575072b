// Comparisons of several runs: the target, and the runs that reached it.

#include "runtime/cli/comparison.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "runtime/cli/compare_panels.h"
#include "runtime/cli/report.h"
#include "runtime/cli/run_folder.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace comparison_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Makes a run that was scored once a second.
ComparedRun RunOf(const std::string& algorithm, std::vector<double> scores) {
  ComparedRun run;
  run.game = "toy";
  run.algorithm = algorithm;
  run.seed = 1;
  run.summary.score_name = "distance";
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto t = static_cast<double>(i + 1);
    run.scores.push_back(
        {.round = i + 1, .seconds = t, .bytes = 10 * t, .score = scores[i]});
  }
  run.summary.last_score = Sample{scores.size(), scores.back()};
  run.summary.best_score = Sample{scores.size(), scores.back()};
  return run;
}

TEST(ComparisonTest, TheTargetIsWhatEveryRunHasReached) {
  const auto games = Compare(
      {RunOf("a", {4, 1}), RunOf("b", {3, 1.5}), RunOf("c", {2, 1.9})}, {});
  ASSERT_EQ(games.size(), 1u);
  EXPECT_EQ(games[0].target, 1.9);
  EXPECT_THAT(games[0].settings[0].seconds_to_target, ElementsAre(2));
  EXPECT_THAT(games[0].settings[2].bytes_to_target, ElementsAre(20));
}

TEST(ComparisonTest, ARunThatLearntNothingDoesNotSetTheTarget) {
  const auto games = Compare(
      {RunOf("a", {40, 1}), RunOf("b", {30, 2}), RunOf("lost", {50, 49})}, {});
  EXPECT_EQ(games[0].target, 4);
  EXPECT_THAT(games[0].settings[1].seconds_to_target, ElementsAre(2));
  EXPECT_THAT(games[0].settings[2].seconds_to_target, IsEmpty());
}

TEST(ComparisonTest, ACallersTargetIsKept) {
  const auto games = Compare({RunOf("a", {40, 1}), RunOf("b", {30, 2})}, 35);
  EXPECT_EQ(games[0].target, 35);
  EXPECT_THAT(games[0].settings[1].seconds_to_target, ElementsAre(1));
}

// Pictures of several games are read side by side.
TEST(ComparisonPanelsTest, TitlesNameTheGameAndTheAxes) {
  const TemporaryFolder folder;
  for (const std::string game : {"toy", "bilinear"}) {
    std::vector<ComparedRun> runs = {RunOf("a", {4, 1}), RunOf("b", {3, 2})};
    for (ComparedRun& run : runs) {
      run.game = game;
      run.folder = folder.path() + "/" + game + run.algorithm;
      std::filesystem::create_directories(run.folder);
      std::ofstream(RunFolder(run.folder).ConsensusPath())
          << "{\"round\": 1, \"consensus_distance\": 0.5}\n";
    }
    std::vector<std::string> titles;
    for (const Panel& panel : ComparisonPanels(runs)) {
      titles.push_back(panel.title);
      EXPECT_THAT(panel.title, HasSubstr(" by " + panel.x_label));
      EXPECT_EQ(panel.series.size(), 2u);
    }
    EXPECT_THAT(
        titles,
        ElementsAre(game + ": distance (lower is better) by round",
                    game + ": distance (lower is better) by seconds",
                    game + ": distance (lower is better) by MB sent by the "
                           "first peer",
                    game + ": consensus distance by round"));
  }
}

TEST(ReportTest, SaysWhatANameChanges) {
  Report report{.title = "toys", .games = {}, .command = "", .machine = {}};
  ReportGame& game = report.games.emplace_back();
  game.comparison =
      Compare({RunOf("dense", {2, 1}), RunOf("int4", {2, 1})}, {})[0];
  game.differences = {{"int4", "mixing.codec: \"a\" -> \"b\""}};
  const std::string page = ReportHtml(report);
  EXPECT_THAT(page, HasSubstr("What is not as with dense"));
  EXPECT_THAT(page, HasSubstr("mixing.codec: &quot;a&quot; -&gt; "));
  // This game has no pictures.
  EXPECT_THAT(page, Not(HasSubstr("images")));
}

}  // namespace comparison_test
}  // namespace gossamer
