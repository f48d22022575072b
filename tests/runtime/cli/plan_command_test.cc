// `gossamer plan` from outside: rankings whose right answer is clear.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace plan_command_test {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The program in a folder with a far network and a configuration.
class PlanCommand : public Cli {
 protected:
  void SetUp() override {
    // A far and narrow link, on which 80 kB take 320 ms.
    Write("far.textproto",
          "name: \"far\" link { rtt: \"100ms\" rate: \"2mbit\" }");
    Write("c.textproto",
          "peers: 4 game { synthetic { parameters: 20000 step_time: "
          "\"40ms\" } }");
  }
  ordered_json Plan(const std::string& arguments) {
    const Result r = Run("plan --json " + arguments);
    if (r.code != 0) throw std::runtime_error(r.err);
    return ordered_json::parse(r.out);
  }
};

std::vector<std::string> Keys(const ordered_json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

std::vector<std::string> Names(const ordered_json& plan) {
  std::vector<std::string> names;
  for (const auto& c : plan["candidates"]) names.push_back(c["name"]);
  return names;
}

const ordered_json& Named(const ordered_json& plan, const std::string& name) {
  for (const auto& c : plan["candidates"]) {
    if (c["name"] == name) return c;
  }
  throw std::runtime_error(name);
}

// Dense blocking rounds wait for 80 kB and half a round trip; four bits behind
// two steps do not wait.
TEST_F(PlanCommand, CompressedAndOverlappedWinsOverAFarLink) {
  const std::string dense = "mixing.codec=dense-f32,mixing.overlap_steps=0";
  const std::string hidden = "mixing.codec=innov-int4,mixing.overlap_steps=3";
  const ordered_json plan =
      Plan(absl::StrCat("--scenario far.textproto --config c.textproto "
                        "--rounds 60 --candidate ",
                        dense, " --candidate ", hidden));
  EXPECT_EQ(plan["recommended"]["name"], hidden);
  EXPECT_EQ(plan["recommended"]["flags"],
            "--set mixing.codec=innov-int4 --set mixing.overlap_steps=3");
  EXPECT_THAT(Names(plan), ElementsAre(hidden, "as configured", dense));
  // A round is 40 ms of step, 50 ms of delay, and 80 kB at 2 Mbit/s in packets
  // of 1500 bytes.
  const double blocking = 0.040 + 0.050 + 8e4 * 8 / 2e6 * 1500 / 1448;
  EXPECT_NEAR(1 / Named(plan, dense)["rounds_per_second"].get<double>(),
              blocking, 0.05 * blocking);
  EXPECT_NEAR(1 / Named(plan, hidden)["rounds_per_second"].get<double>(), 0.040,
              0.006);
  EXPECT_GT(Named(plan, dense)["waiting_share"], 0.8);
  EXPECT_LT(Named(plan, hidden)["waiting_share"], 0.15);
  EXPECT_NEAR(Named(plan, dense)["bytes_per_round"].get<double>(), 2 * 8e4,
              0.05 * 2 * 8e4);
  EXPECT_GT(Named(plan, dense)["bytes_per_round"].get<double>(),
            6 * Named(plan, hidden)["bytes_per_round"].get<double>());
}

TEST_F(PlanCommand, SkewedPairsSaveBytesBetweenSites) {
  Write("two.textproto",
        "name: \"two\" region { name: \"a\" hosts: 4 } region { name: \"b\" "
        "hosts: 4 } link { rtt: \"1ms\" } link { a: \"a\" b: \"b\" rtt: "
        "\"80ms\" rate: \"50mbit\" }");
  const ordered_json plan = Plan(
      "--scenario two.textproto --config c.textproto --set peers=8 --set "
      "game.synthetic.parameters=4000 --rounds "
      "120 --by bytes");
  const auto far = [&](const std::string& mixing) {
    return Named(plan, mixing + " innov-int8 overlap 1")["far_bytes_per_round"]
        .get<double>();
  };
  EXPECT_LT(2 * far("locality-skewed"), far("random-matching"));
  EXPECT_LT(far("locality-skewed"), far("permuted-ring"));
  EXPECT_LT(far("locality-skewed"), far("torus"));
  const ordered_json& skewed =
      Named(plan, "locality-skewed innov-int8 overlap 1");
  EXPECT_THAT(skewed["set"].dump(), HasSubstr("mixing.sites=a:1-4 b:5-8"));
  // Centralized training is in the table and is not recommended.
  EXPECT_TRUE(Named(plan, "cp-oadam")["baseline"]);
  EXPECT_FALSE(plan["recommended"]["baseline"]);
  // The given configuration: a ring of innov-int4 with overlap 1.
  EXPECT_TRUE(Named(plan, "ring innov-int4 overlap 1")["configured"]);
  EXPECT_EQ(plan["candidates"].size() + plan["left_out"].size(),
            5u * 4 * 3 + 1);
  double before = 0;
  for (const auto& c : plan["candidates"]) {
    const double bytes = c["bytes_per_round"];
    EXPECT_GT(bytes, 0.94 * before) << "sorted but for what is alike";
    before = std::max(before, bytes);
  }
}

TEST_F(PlanCommand, TheTableHasTheFlagsOfItsChoice) {
  const std::string arguments =
      "--scenario far.textproto --config c.textproto --rounds 20 --candidate "
      "mixing.graph=random-matching,mixing.overlap_steps=2";
  const Result r = Run("plan " + arguments);
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(
      r.out,
      AllOf(StartsWith("far: 4 peers, 20000 parameters, steps 40ms, 20 rounds"),
            HasSubstr("rounds/s"), HasSubstr("as configured"),
            HasSubstr("\nrecommended: mixing.graph=random-matching"),
            HasSubstr("  --set mixing.graph=random-matching --set "
                      "mixing.overlap_steps=2\n")));
  EXPECT_EQ(Run("plan --jobs 1 " + arguments).out, r.out)
      << "the same again is the same";
}

TEST_F(PlanCommand, JsonHasTheKeysOfItsHelp) {
  const ordered_json plan = Plan(
      "--scenario far.textproto --config c.textproto --rounds 20 --candidate "
      "mixing.overlap_steps=0");
  EXPECT_THAT(Keys(plan), ElementsAre("network", "peers", "hosts", "parameters",
                                      "step_times", "rounds", "by", "warnings",
                                      "recommended", "candidates", "left_out"));
  EXPECT_THAT(
      Keys(plan["candidates"][0]),
      ElementsAre("name", "set", "configured", "baseline", "rounds_per_second",
                  "waiting_share", "exchange_seconds", "bytes_per_round",
                  "far_bytes_per_round", "consensus_distance", "score"));
  EXPECT_EQ(plan["candidates"][0]["far_bytes_per_round"], nullptr);
  EXPECT_TRUE(plan["candidates"][0]["score"].is_number());
  const std::string help = Run("plan --help").out;
  for (const auto& part : {plan, plan["recommended"]}) {
    for (const std::string& key : Keys(part)) {
      EXPECT_THAT(help, HasSubstr(key));
    }
  }
}

TEST_F(PlanCommand, NetworksHaveAStandInOfTheirSize) {
  Write("gan.textproto", "peers: 4");
  Write("lossy.textproto",
        "name: \"lossy\" tcp: \"stock\" link { rtt: \"20ms\" loss: 0.01 }");
  const ordered_json plan = Plan(
      "--scenario lossy.textproto --config gan.textproto --parameters 3000 "
      "--step-time 20ms --rounds 20 --candidate mixing.codec=dense-bf16");
  EXPECT_EQ(plan["parameters"], 3000);
  EXPECT_EQ(plan["step_times"], "20ms");
  EXPECT_EQ(plan["candidates"][0]["score"], nullptr);
  EXPECT_EQ(plan["warnings"].size(), 2u);
}

TEST_F(PlanCommand, RefusesNonsenseInOneLine) {
  Write("gan.textproto", "peers: 4");
  Write("two.textproto", "name: \"two\" hosts: 2 link { rtt: \"1ms\" }");
  const std::string plan =
      "plan --scenario far.textproto --config c.textproto ";
  const struct {
    std::string command, says;
  } wrong[] = {
      {"plan --config c.textproto", "--scenario"},
      {"plan --scenario far.textproto", "--config"},
      {"plan --scenario none.textproto --config c.textproto",
       "none.textproto: cannot be read"},
      {"plan --scenario far.textproto --config none.textproto",
       "none.textproto"},
      {"plan --scenario two.textproto --config c.textproto",
       "has 2 hosts, but 4 are needed"},
      {plan + "--candidate mixing.grahp=torus", "grahp"},
      {plan + "--candidate torus", "--candidate torus"},
      {plan + "--candidate mixing.codec=dense-f33", "dense-f33"},
      {plan + "--candidate mixing.graph=hypercube --set peers=6", "hypercube"},
      {plan + "--by speed", "speed"},
      {plan + "--rounds 2", "--rounds"},
      {plan + "--step-time 40", "with its unit"},
      {"plan --scenario far.textproto --config gan.textproto --step-time 1ms",
       "--parameters"},
      {"plan --scenario far.textproto --config gan.textproto --parameters 9",
       "how long does a step take"},
      {"plan --scenario far.textproto --config gan.textproto --parameters 90 "
       "--step-time 1ms --by score",
       "--by score"},
  };
  for (const auto& w : wrong) {
    const Result r = Run(w.command);
    EXPECT_EQ(r.code, 2) << w.command << "\n" << r.err;
    EXPECT_THAT(r.err, HasSubstr(w.says)) << w.command;
    EXPECT_EQ(r.out, "") << w.command;
    EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << w.command;
  }
}

}  // namespace plan_command_test
}  // namespace gossamer
