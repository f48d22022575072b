// The program `gossamer` from outside: its output, its files and its exit
// codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "runtime/telemetry/summary.h"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace cli_test {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> KeysOf(const ordered_json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

TEST_F(Cli, EveryCommandHasHelpWithExamples) {
  const Result all = Run("--help");
  EXPECT_EQ(all.code, 0);
  for (const std::string command :
       {"train", "compare", "sample", "evaluate", "graph", "plan", "measure",
        "doctor", "status", "stop"}) {
    EXPECT_THAT(all.out, HasSubstr(command));
    const Result help = Run(command + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, AllOf(HasSubstr("examples:"),
                                HasSubstr("gossamer " + command)));
  }
  EXPECT_THAT(Run("--version").out, StartsWith("gossamer "));
}

TEST_F(Cli, WrongCommandLinesReturnTwo) {
  EXPECT_EQ(Run("").code, 2);
  EXPECT_EQ(Run("fly").code, 2);
  EXPECT_EQ(Run("train").code, 2);
  EXPECT_EQ(Run("graph --peers many").code, 2);
  EXPECT_EQ(Run("train --config x --resume --overwrite").code, 2);
}

TEST_F(Cli, ConfigurationErrorsHaveTheirPlace) {
  Write("bad.textproto", "peers: 4\nmixing { codek: \"x\" }\n");
  for (const std::string command : {"train", "compare"}) {
    const Result r = Run(command + " --config bad.textproto");
    EXPECT_EQ(r.code, 2);
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, AllOf(StartsWith("gossamer " + command + ": "),
                             HasSubstr("bad.textproto:2:10: there is no key "
                                       "\"codek\" in mixing; did you "
                                       "mean \"codec\"?")));
  }
}

TEST_F(Cli, AGanWithoutDataSaysHowToGetThem) {
  Write("gan.textproto", "peers: 2");
  const Result r = Run("train --config gan.textproto");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("gossamer-models render-emoji --out"));
  EXPECT_EQ(Run("train --config gan.textproto --data nowhere").code, 2);
}

TEST_F(Cli, AProgramsOwnGameIsTrainedByThatProgram) {
  Write("own.textproto", "game { caller {} }");
  const Result r = Run("train --config own.textproto");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("by python -m gossamer.run"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/runs"));
}

TEST_F(Cli, GraphGivesNumbersAndAPicture) {
  const Result r = Run("graph --graph torus --peers 16 --out g.png --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out);
  EXPECT_THAT(
      KeysOf(json),
      ElementsAre("graph", "peers", "round", "edges", "least_degree",
                  "most_degree", "row_sum_error", "column_sum_error",
                  "symmetry_error", "smallest_entry", "spectral_gap",
                  "schedule_gap", "contraction", "contraction_standard_error",
                  "contraction_estimated", "rounds_to_tenth", "picture"));
  EXPECT_EQ(json["edges"], 32);
  EXPECT_EQ(json["most_degree"], 4);
  // Metropolis on a 4x4 torus has the eigenvalues 1/5 + 2/5 (cos a + cos b), so
  // the second is 3/5 and the last -3/5.
  EXPECT_NEAR(json["spectral_gap"].get<double>(), 0.4, 1e-9);
  EXPECT_NEAR(json["schedule_gap"].get<double>(), 0.4, 1e-9);
  EXPECT_EQ(ReadAll(folder_.path() + "/g.png").substr(1, 3), "PNG");
}

// One round of pairs leaves most peers apart and has no gap; the schedule has
// one.
TEST_F(Cli, GraphSaysTheGapOfASchedule) {
  const std::string skewed =
      "graph --graph locality-skewed --peers 16 --sites \"a:1-8 b:9-16\"";
  const auto json = ordered_json::parse(Run(skewed + " --json").out);
  EXPECT_NEAR(json["spectral_gap"].get<double>(), 0, 1e-9);
  // Between sites 0.850 of the squared distance is left, as in locality.md.
  EXPECT_NEAR(json["schedule_gap"].get<double>(), 1 - std::sqrt(0.8498), 1e-4);
  EXPECT_THAT(Run(skewed).out, HasSubstr("spectral gap  0.07815"));
  EXPECT_THAT(Run("graph --graph one-peer-exponential --peers 8").out,
              HasSubstr("spectral gap  1, of a fixed W that contracts as"));
  EXPECT_THAT(Run("graph --graph torus --peers 16").out,
              HasSubstr("spectral gap  0.4\n"));
}

TEST_F(Cli, GraphRefusesAnImpossibleGraph) {
  const Result r = Run("graph --graph hypercube --peers 6");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, StartsWith("gossamer graph: "));
}

TEST_F(Cli, DoctorHasStableKeys) {
  const Result r = Run("doctor --json");
  const auto json = ordered_json::parse(r.out);
  EXPECT_THAT(KeysOf(json), ElementsAre("level", "checks"));
  EXPECT_EQ(r.code, json["level"] == "fail" ? 1 : 0);
  std::vector<std::string> names;
  for (const auto& check : json["checks"]) {
    EXPECT_THAT(KeysOf(check),
                ElementsAre("name", "level", "found", "why", "advice"));
    EXPECT_NE(check["found"], "");
    if (check["name"] == "versions") {
      EXPECT_THAT(check["found"].get<std::string>(),
                  ContainsRegex("gossamer [0-9].*gRPC [0-9].*protobuf [0-9]"));
    }
    EXPECT_EQ(check["advice"] == "", check["level"] == "ok") << check;
    names.push_back(check["name"]);
  }
  const auto gpu = std::ranges::find(names, "gpu");
  ASSERT_NE(gpu, names.end());
  EXPECT_THAT(std::vector(names.begin(), gpu),
              ElementsAre("versions", "cpu", "cores", "memory", "disk",
                          "open files", "gossamer-topology", "gossamer-peer",
                          "gossamer-peer-networks", "gossamer-models",
                          "emoji font", "ports", "clock", "tcp buffers",
                          "tcp idle", "tcp congestion"));
  // A machine with a GPU has more.
  EXPECT_THAT(std::vector(gpu + 1, names.end()),
              Each(AnyOf("cuda", "torch cuda", "nccl", "peer access")));
}

TEST_F(Cli, NoServiceIsAClearFailure) {
  for (const std::string command : {"status", "stop"}) {
    const Result r = Run(command + " --topology 127.0.0.1:1 --timeout 2");
    EXPECT_EQ(r.code, 1);
    EXPECT_THAT(r.err, HasSubstr("topology service at 127.0.0.1:1: "));
  }
}

TEST_F(Cli, SampleNeedsARun) {
  const Result r = Run("sample --run nothing");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, HasSubstr("no config.textproto"));
}

// A fleet of scripts instead of real peers, beside a copy of the program.
class FleetOfScripts : public Cli {
 protected:
  void SetUp() override {
    const fs::path bin = folder_.path() + "/bin";
    fs::create_directories(bin);
    fs::copy_file(GOSSAMER_PROGRAM, bin / "gossamer");
    program_ = (bin / "gossamer").string();
    Write("game.textproto",
          "name: \"toy\" peers: 2 rounds: 2 game { quadratic { } }\n");
    // The script names a port without a listener, and ends once both peers
    // have.
    Script("gossamer-topology",
           "while [ $# -gt 0 ]; do case $1 in\n"
           "  --port-file) port=$2; shift;; --state) state=$2; shift;;\n"
           "esac; shift; done\n"
           "echo 1 >$port.new; mv $port.new $port\n"
           "run=$(dirname $state)\n"
           "until [ -e $run/peer-1/end ] && [ -e $run/peer-2/end ]; do "
           "sleep 0.02; done\n");
    PeerScript("");
  }

  void Script(const std::string& name, const std::string& text) {
    const std::string path = "bin/" + name;
    Write(path, "#!/bin/sh\n" + text);
    fs::permissions(folder_.path() + "/" + path, fs::perms::owner_all);
  }

  // `extra` runs before the peer has logged a line.
  void PeerScript(const std::string& extra) {
    Script(
        "gossamer-peer",
        "echo \"$@\"\n"
        "while [ $# -gt 0 ]; do case $1 in\n"
        "  --id) id=$2; shift;; --run-dir) run=$2; shift;;\n"
        "esac; shift; done\n"
        "folder=$run/peer-$id; mkdir -p $folder\n" +
            extra +
            "for r in 1 2; do echo '{\"round\":'$r',\"steps\":'$r',"
            "\"finished\":\"2026-01-01T00:00:0'$r'.0Z\","
            "\"generator_loss\":0.5,\"bytes_sent\":'$((r * 1000))',"
            "\"scores\":[['$r','$((3 - r))']]}' >>$folder/metrics.jsonl; done\n"
            "touch $folder/end\n");
  }
};

TEST_F(FleetOfScripts, EventsOfThePeersAreCountedInTheSummary) {
  PeerScript(
      "echo '{\"kind\":\"edge_refused\",\"times\":3}' "
      ">>$folder/events.jsonl\n"
      "echo '{\"kind\":\"checkpoint\"}' >>$folder/events.jsonl\n");
  const Result r = Run("train --config game.textproto");
  ASSERT_EQ(r.code, 0) << r.err;
  // Events that ask for no action are only in the summary.
  EXPECT_THAT(r.out, AllOf(HasSubstr("event    edge_refused, 6 times: the same "
                                     "release there"),
                           Not(HasSubstr("event    checkpoint"))));
  EXPECT_EQ(ordered_json::parse(
                ReadAll(folder_.path() + "/runs/toy/summary.json"))["events"],
            ordered_json({{"checkpoint", 2}, {"edge_refused", 6}}));
}

TEST_F(FleetOfScripts, TrainsAndLeavesItsResults) {
  const Result r = Run("train --config game.textproto --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out);
  EXPECT_THAT(KeysOf(json),
              ElementsAre("folder", "samples", "curves", "summary"));
  EXPECT_EQ(json["folder"], "runs/toy");
  const auto& summary = json["summary"];
  EXPECT_EQ(summary["finished"], true);
  EXPECT_EQ(summary["rounds"], 2);
  EXPECT_EQ(summary["first_score"], 2);
  EXPECT_EQ(summary["last_score"], 1);
  EXPECT_EQ(summary["bytes_per_round"], 1000);
  const std::string run = folder_.path() + "/runs/toy";
  EXPECT_EQ(ordered_json::parse(ReadAll(run + "/summary.json")), summary);
  EXPECT_EQ(ReadAll(run + "/curves.png").substr(1, 3), "PNG");
  EXPECT_THAT(ReadAll(run + "/config.textproto"), HasSubstr("rounds: 2"));
  EXPECT_THAT(ReadAll(run + "/logs/peer-2.log"),
              AllOf(HasSubstr("--topology 127.0.0.1:1 "), HasSubstr("--id 2"),
                    HasSubstr("--listen 127.0.0.1:0")));
}

TEST_F(FleetOfScripts, TrainingEndsByNamingItsFolderAndCurves) {
  const Result r = Run("train --config game.textproto --name other");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(StartsWith("trained 2 of 2 rounds"),
                           HasSubstr("2 at round 1, 1 at round 2"),
                           HasSubstr("folder   runs/other\n"),
                           HasSubstr("curves   runs/other/curves.png\n")));
}

TEST_F(FleetOfScripts, AnExistingRunIsKeptUnlessResumedOrOverwritten) {
  ASSERT_EQ(Run("train --config game.textproto").code, 0);
  const Result again = Run("train --config game.textproto");
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err,
              AllOf(HasSubstr("--resume"), HasSubstr("--overwrite")));
  EXPECT_EQ(Run("train --config game.textproto --overwrite").code, 0);
  const Result other =
      Run("train --config game.textproto --resume --set mixing.gamma=0.5");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("mixing.gamma"));
  const Result resumed = Run("train --config game.textproto --resume");
  EXPECT_EQ(resumed.code, 0);
  EXPECT_THAT(ReadAll(folder_.path() + "/runs/toy/logs/peer-1.log"),
              HasSubstr("--resume"));
}

TEST_F(FleetOfScripts, NeverRemovesAFolderThatIsNoRun) {
  fs::create_directories(folder_.path() + "/runs/toy");
  Write("runs/toy/precious", "data");
  EXPECT_EQ(Run("train --config game.textproto --overwrite").code, 2);
  EXPECT_EQ(ReadAll(folder_.path() + "/runs/toy/precious"), "data");
}

TEST_F(FleetOfScripts, ADeadPeerIsExplained) {
  PeerScript("[ $id = 2 ] && { echo out of luck; exit 7; }\n");
  const Result r = Run("train --config game.textproto");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, AllOf(HasSubstr("peer 2 ended with code 7"),
                           HasSubstr("out of luck"),
                           HasSubstr("there is no checkpoint")));
}

TEST_F(FleetOfScripts, ASettingThatPeersRefuseLeavesOneLineAndNoFolder) {
  PeerScript("echo 'gossamer-peer: codec \"x\": too many fragments'; exit 2\n");
  const Result r = Run("train --config game.textproto");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err,
              HasSubstr("gossamer train: codec \"x\": too many fragments\n"));
  EXPECT_THAT(r.err, Not(HasSubstr("the end of")));
  EXPECT_FALSE(fs::exists(folder_.path() + "/runs/toy"));
}

TEST_F(FleetOfScripts, AMissingProgramIsNamed) {
  fs::remove(folder_.path() + "/bin/gossamer-peer");
  const Result r = Run("train --config game.textproto");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, HasSubstr("bin/gossamer-peer: "));
}

TEST_F(FleetOfScripts, AComparisonKeepsRunsThatHaveFinished) {
  const std::string command =
      "compare --config game.textproto --seeds 1,2 "
      "--algorithms dp-oadam,cp-oadam --json";
  const Result r = Run(command);
  ASSERT_EQ(r.code, 0) << r.err;
  const auto games = ordered_json::parse(r.out)["games"];
  ASSERT_EQ(games.size(), 1u);
  const auto& json = games[0];
  ASSERT_EQ(json["settings"].size(), 2u);
  ASSERT_EQ(json["runs"].size(), 4u);
  EXPECT_THAT(KeysOf(json),
              ElementsAre("game", "score_name", "target", "settings", "runs"));
  EXPECT_THAT(
      KeysOf(json["settings"][0]),
      testing::IsSupersetOf({"network", "algorithm", "seeds", "score_mean",
                             "seconds_to_target_mean", "bytes_to_target_mean",
                             "waiting_seconds_per_round_mean",
                             "bytes_per_round_deviation"}));
  EXPECT_THAT(KeysOf(json["runs"][0]),
              ElementsAre("network", "algorithm", "seed", "folder", "images",
                          "summary"));
  EXPECT_EQ(json["settings"][1]["algorithm"], "cp-oadam");
  EXPECT_EQ(json["settings"][1]["score_mean"], 1);
  EXPECT_EQ(json["target"], 1);
  const std::string folder = folder_.path() + "/runs/compare-toy";
  EXPECT_EQ(ReadAll(folder + "/report.json"), r.out);
  EXPECT_EQ(ReadAll(folder + "/comparison.png").substr(1, 3), "PNG");
  const std::string page = ReadAll(folder + "/report.html");
  EXPECT_THAT(page, AllOf(StartsWith("<!doctype html>"), HasSubstr("cp-oadam"),
                          HasSubstr("data:image/png;base64,"),
                          HasSubstr("gossamer compare --config")));
  EXPECT_THAT(page, testing::Not(HasSubstr("src=\"http")));

  fs::remove_all(folder + "/cp-oadam-seed-2");
  const Result again = Run(command);
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, r.out);
  EXPECT_THAT(again.err, HasSubstr("toy, dp-oadam, seed 1, in local: kept"));

  // A run with another configuration is neither lost nor mixed in.
  const Result other = Run(command + " --set mixing.gamma=0.5");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("mixing.gamma"),
                               HasSubstr("dp-oadam-seed-1 holds a run")));
  EXPECT_EQ(ReadAll(folder + "/report.json"), r.out);
}

TEST_F(FleetOfScripts, ComparesVariantsOfAnAlgorithm) {
  const Result r =
      Run("compare --config game.textproto --json --name v --algorithms "
          "dp-oadam,dp-oadam+mixing.codec=dense-f32+mixing.gamma=0.5");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(ordered_json::parse(r.out)["games"][0]["settings"].size(), 2u);
  EXPECT_THAT(ReadAll(folder_.path() +
                      "/runs/v/dp-oadam-mixing.codec-dense-f32-mixing.gamma-"
                      "0.5-seed-1/config.textproto"),
              AllOf(HasSubstr("dense-f32"), HasSubstr("gamma: 0.5")));
  const Result bad =
      Run("compare --config game.textproto --algorithms "
          "dp-oadam+mixing.codek=x");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("codec"));
  EXPECT_EQ(Run("compare --config game.textproto --rate 10mbit").code, 2);
  const Result twice =
      Run("compare --config game.textproto --also game.textproto");
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("both called \"toy\""));
  EXPECT_THAT(Run("compare --config game.textproto --rtt fast").err,
              HasSubstr("--rtt"));
}

TEST_F(FleetOfScripts, ComparesOnSeveralGamesInOneReport) {
  const std::string toy = ReadAll(folder_.path() + "/game.textproto");
  std::ofstream(folder_.path() + "/other.textproto")
      << absl::StrReplaceAll(toy, {{"\"toy\"", "\"other\""}});
  const Result r =
      Run("compare --config game.textproto --also other.textproto --name both "
          "--algorithms dp-oadam,cp-oadam --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto games = ordered_json::parse(r.out)["games"];
  ASSERT_EQ(games.size(), 2u);
  EXPECT_EQ(games[0]["game"], "toy");
  EXPECT_EQ(games[1]["game"], "other");
  EXPECT_EQ(games[1]["runs"].size(), 2u);
  const std::string folder = folder_.path() + "/runs/both";
  EXPECT_THAT(games[1]["runs"][0]["folder"].get<std::string>(),
              testing::EndsWith("both/other/dp-oadam-seed-1"));
  EXPECT_EQ(ReadAll(folder + "/comparison-other.png").substr(1, 3), "PNG");
  EXPECT_THAT(ReadAll(folder + "/report.html"),
              AllOf(HasSubstr("<h2>toy</h2>"), HasSubstr("<h2>other</h2>"),
                    HasSubstr("--also other.textproto")));
}

}  // namespace cli_test
}  // namespace gossamer
