// `gossamer plan` from outside; what it predicts is tested in tests/plan.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kModel[] = " --parameters 100000 --step-time 40ms";

class PlanCommand : public Cli {
 protected:
  void SetUp() override {
    Write("net.txt",
          "names a b c d\n"
          "rtt_ms\n- 300 10 10\n300 - 10 10\n10 10 - 300\n10 10 300 -\n"
          "mbit 100\n");
  }
};

std::vector<std::string> Keys(const ordered_json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

TEST_F(PlanCommand, SaysWhatToUseAndWhy) {
  const Result r = Run(absl::StrCat("plan --matrix net.txt", kModel));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(
      r.out,
      AllOf(StartsWith("net: 4 peers, 100000 parameters, steps of 40"),
            HasSubstr("ranks: 0 a, 1 b, 2 c, 3 d"), HasSubstr("rounds/s"),
            HasSubstr("\nrecommended: "), HasSubstr("cp-oadam"),
            HasSubstr("\nmixing {\n"), HasSubstr("  overlap_steps: ")));
  EXPECT_EQ(r.err, "");
}

TEST_F(PlanCommand, JsonHasTheKeysOfItsHelp) {
  const Result r = Run(absl::StrCat("plan --json --matrix net.txt", kModel));
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out);
  EXPECT_THAT(Keys(json),
              ElementsAre("network", "peers", "hosts", "parameters",
                          "step_seconds", "warnings", "recommended",
                          "candidates", "centralized", "sites", "checks"));
  EXPECT_EQ(json["candidates"].size(), 10u);
  EXPECT_THAT(Keys(json["candidates"][0]),
              ElementsAre("name", "graph", "schedule", "edges", "codec",
                          "overlap_steps", "gamma", "rounds_per_second",
                          "seconds_per_round", "hidden", "busy_seconds",
                          "exchange_seconds", "bytes_per_round",
                          "consensus_distance", "contraction"));
  EXPECT_EQ(json["checks"], nullptr);
  const std::string help = Run("plan --help").out;
  for (const auto& part : {json, json["recommended"], json["centralized"]}) {
    for (const std::string& key : Keys(part)) {
      EXPECT_THAT(help, HasSubstr(key));
    }
  }
}

// What it prints is what a configuration takes.
TEST_F(PlanCommand, ItsLinesAreAConfiguration) {
  const Result r = Run(absl::StrCat("plan --json --matrix net.txt", kModel));
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out);
  Write("c.textproto",
        absl::StrCat("peers: 4 game { synthetic { parameters: 100000 } }\n",
                     json["recommended"]["configuration"].get<std::string>()));
  const Result again = Run("plan --json --matrix net.txt --config c.textproto");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, r.out);  // synthetic: 40 ms unless it says otherwise
}

// What it proposes is a schedule that there is.
TEST_F(PlanCommand, ProposesSitesWhereRoundTripsShowSome) {
  Write("two.txt",
        "rtt_ms\n- 80 1 2 79\n80 - 81 80 2\n1 81 - 1 80\n2 80 1 - 82\n"
        "79 2 80 82 -\nmbit 100\n");
  const std::string sites = "site-1:1,3-4 site-2:2,5";
  const Result r = Run(absl::StrCat("plan --matrix two.txt", kModel));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out,
              AllOf(HasSubstr("sites: round trips are 2 ms and less within, "
                              "79 ms and more between them"),
                    HasSubstr(absl::StrCat("sites: \"", sites, "\"\n"))));
  const auto json = ordered_json::parse(
      Run(absl::StrCat("plan --json --matrix two.txt", kModel)).out);
  EXPECT_EQ(json["sites"], sites);
  EXPECT_EQ(Run(absl::StrCat("graph --schedule locality-skewed --peers 5 "
                             "--sites \"",
                             sites, "\""))
                .code,
            0);
  // In net.txt everybody is near two others.
  const auto none = ordered_json::parse(
      Run(absl::StrCat("plan --json --matrix net.txt", kModel)).out);
  EXPECT_EQ(none["sites"], "");
}

TEST_F(PlanCommand, TakesScenariosAndTheFirstPeers) {
  Write("s.textproto",
        "name: \"far\" link { rtt: \"100ms\" rate: \"50mbit\" loss: 0.01 }");
  const Result r =
      Run(absl::StrCat("plan --json --scenario s.textproto --peers 3", kModel));
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out);
  EXPECT_EQ(json["network"], "far");
  EXPECT_EQ(json["peers"], 3);
  EXPECT_EQ(json["warnings"].size(), 1u);
  const auto first = ordered_json::parse(
      Run(absl::StrCat("plan --json --matrix net.txt --peers 2", kModel)).out);
  EXPECT_THAT(first["hosts"], ElementsAre("a", "b"));
}

TEST_F(PlanCommand, RefusesNonsenseWithItsPlace) {
  Write("bad.txt", "rtt_ms\n- 5\n6 -\nmbit 100\n");
  const auto error = [this](const std::string& arguments) {
    const Result r = Run("plan " + arguments);
    EXPECT_EQ(r.code, 2) << arguments;
    EXPECT_EQ(r.out, "");
    return r.err;
  };
  EXPECT_THAT(error(absl::StrCat("--matrix bad.txt", kModel)),
              StartsWith("gossamer plan: bad.txt:3: "));
  EXPECT_THAT(error(absl::StrCat("--matrix none.txt", kModel)),
              HasSubstr("none.txt: cannot be read"));
  EXPECT_THAT(error(absl::StrCat("--matrix net.txt --peers 5", kModel)),
              HasSubstr("has 4 peers, but 5"));
  EXPECT_THAT(error(kModel), HasSubstr("--scenario and --matrix"));
  EXPECT_THAT(error("--matrix net.txt --step-time 40ms"),
              HasSubstr("--parameters"));
  EXPECT_THAT(error("--matrix net.txt --parameters 100000"),
              HasSubstr("--step-time"));
  EXPECT_THAT(error("--matrix net.txt --parameters 9 --step-time 40"),
              HasSubstr("40ms"));
  EXPECT_THAT(error("--matrix net.txt --parameters 9 --step-time 2h"),
              HasSubstr("3600 s"));
  EXPECT_THAT(error("--matrix net.txt --set peers=4 --parameters 9"),
              HasSubstr("--config"));
  error("--matrix net.txt --scenario s.textproto");
  error("--matrix net.txt --peers 1");
}

// Scripts in place of the lab: what a check starts and how it reads runs.
TEST_F(PlanCommand, ChecksAgainstRuns) {
  const fs::path bin = folder_.path() + "/bin";
  fs::create_directories(bin);
  fs::copy_file(GOSSAMER_PROGRAM, bin / "plan");
  const std::string lab = (bin / "gossamer").string();
  Write(
      "bin/gossamer",
      "#!/bin/sh\n"
      "echo \"$@\" >>calls\n"
      "while [ $# -gt 0 ]; do case $1 in\n"
      "  --runs) runs=$2; shift;; --name) name=$2; shift;;\n"
      "  --config) config=$2; shift;;\n"
      "esac; shift; done\n"
      "grep -q 'parameters: 100000 step_time: \"40000us\"' $config || exit 3\n"
      "for p in 0 1; do folder=$runs/$name/peer-$p; mkdir -p $folder\n"
      "for r in 1 2 3 4 5 6 7 8; do echo '{\"round\":'$r',"
      "\"finished\":\"2026-01-01T00:00:0'$r'.0Z\","
      "\"seconds_computing\":0.5}' >>$folder/metrics.jsonl; done; done\n"
      "echo 'peers: 2 game { quadratic { } }' >$runs/$name/config.textproto\n");
  fs::permissions(lab, fs::perms::owner_all);
  program_ = (bin / "plan").string();
  const Result r = Run(
      absl::StrCat("plan --check --json --runs r --matrix net.txt", kModel));
  ASSERT_EQ(r.code, 0) << r.err;
  const auto checks = ordered_json::parse(r.out)["checks"];
  ASSERT_EQ(checks.size(), 3u);
  EXPECT_EQ(checks[0]["why"], "recommended");
  EXPECT_EQ(checks[1]["candidate"]["overlap_steps"], 0);
  EXPECT_EQ(checks[2]["candidate"]["name"], "ring");
  for (const auto& check : checks) {
    EXPECT_EQ(check["measured_rounds_per_second"], 1);
    EXPECT_EQ(check["measured_step_seconds"], 0.5);
    EXPECT_NEAR(check["error"],
                check["candidate"]["rounds_per_second"].get<double>() - 1,
                1e-9);
    EXPECT_LT(check["predicted_with_that_step"], 2);
  }
  EXPECT_THAT(ReadAll(folder_.path() + "/r/plan-net/network.textproto"),
              HasSubstr("a: \"host-0\" b: \"host-1\" rtt: \"300.000000ms\""));
  EXPECT_THAT(ReadAll(folder_.path() + "/calls"),
              HasSubstr("lab --scenario r/plan-net/network.textproto"));

  Write("bin/gossamer", "#!/bin/sh\nexit 1\n");
  const Result failed =
      Run(absl::StrCat("plan --check --runs r --matrix net.txt", kModel));
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, HasSubstr("ended with code 1"));
}

}  // namespace
}  // namespace gossamer
