// `gossamer methods` from outside, and what `gossamer compare --methods` makes
// of its names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace methods_command_test {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class MethodsCommand : public Cli {};

TEST_F(MethodsCommand, ListsAndExplains) {
  const Result all = Run("methods");
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out,
              AllOf(StartsWith("algorithm\n"), HasSubstr("\ncodec\n"),
                    HasSubstr("bits 1.000, state 2 per peer, 3 per edge, "
                              "gamma 0.05; needs lasting neighbours, "
                              "every message, a static graph")));
  const Result one = Run("methods cold");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(StartsWith("name      cold\n"),
                             HasSubstr("--set     algorithm=cold\n--set     "
                                       "step.optimizer=cold\n"),
                             HasSubstr("# COLD and Dyna-COLD"),
                             HasSubstr("**Paper.**")));
}

TEST_F(MethodsCommand, JsonHasTheKeysOfItsHelp) {
  const auto all = ordered_json::parse(Run("methods --json").out);
  EXPECT_GT(all.size(), 15u);
  const auto one = ordered_json::parse(Run("methods power-gossip --json").out);
  ASSERT_EQ(one.size(), 1u);
  const std::string help = Run("methods --help").out;
  for (const auto& [key, value] : one[0].items()) {
    EXPECT_THAT(help, HasSubstr(key));
  }
  EXPECT_FALSE(all[0].contains("page"));
  EXPECT_THAT(one[0]["page"].get<std::string>(), StartsWith("# PowerGossip"));
}

TEST_F(MethodsCommand, UnknownNamesAreRefusedWithTheKnownOnes) {
  for (const char* line :
       {"methods chocolate",
        "compare --config c.textproto --methods dense-f32,chocolate"}) {
    Write("c.textproto", "game { quadratic { dimension: 64 } }\n");
    const Result r = Run(line);
    EXPECT_EQ(r.code, 2) << line;
    EXPECT_THAT(r.err, AllOf(HasSubstr("\"chocolate\"; known: caller, cold"),
                             HasSubstr("power-gossip")));
  }
}

TEST_F(MethodsCommand, OldNamesAreRefusedWithTheNewOne) {
  Write("c.textproto", "game { quadratic { dimension: 64 } }\n");
  for (const auto& [line, says] :
       {std::pair("methods choco-int4",
                  "\"choco-int4\": write \"innov-int4\" instead"),
        {"compare --config c.textproto --methods cold,choco-topk:k=32",
         "\"choco-topk\": write \"innov-topk\" instead"},
        {"compare --config c.textproto --methods dense",
         "\"dense\": write \"dense-f32\" instead"}}) {
    const Result r = Run(line);
    EXPECT_EQ(r.code, 2) << line;
    EXPECT_THAT(r.err, HasSubstr(says));
  }
}

TEST_F(MethodsCommand, CompareTakesMethods) {
  Write("c.textproto",
        "name: \"q\" peers: 4 rounds: 30 step { optimizer: \"sgd\" }\n"
        "game { quadratic { dimension: 1100 heterogeneity: 1 } }\n"
        "evaluation { every: 10 }\n");
  const Result r =
      Run("compare --rehearse --step-time 10ms --rtt 20ms --config c.textproto "
          "--json "
          "--methods cold,dense-f32,diff-int8");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out)["games"][0];
  ASSERT_EQ(json["settings"].size(), 3u);
  EXPECT_EQ(json["settings"][0]["algorithm"], "cold");
  EXPECT_EQ(json["settings"][1]["algorithm"], "dense-f32");
  const auto bytes = [&](int i) {
    return json["settings"][i]["bytes_per_round_mean"].get<double>();
  };
  EXPECT_LT(bytes(2), 0.3 * bytes(1));
}

// Compares configurations of which each has the settings of one name.
class Variants : public Cli {
 protected:
  // Compares in virtual time, in a folder of that name.
  Result Compare(const std::string& name, const std::string& more) {
    return Run(
        "compare --rehearse --step-time 10ms --rtt 20ms --config c.textproto "
        "--name " +
        name + " " + more);
  }
  // Returns the resolved configuration of a run.
  std::string Configuration(const std::string& name,
                            const std::string& variant) {
    return ReadAll(folder_.path() + "/runs/" + name + "/20ms--rehearsed/" +
                   variant + "-seed-1/config.textproto");
  }
  void WriteGame(const std::string& more) {
    Write("c.textproto",
          "name: \"q\" peers: 4 rounds: 20\n"
          "game { quadratic { dimension: 1100 heterogeneity: 1 } }\n" +
              more);
  }
};

TEST_F(Variants, TheBaselineTakesTheFastestAllReduce) {
  const auto expect = [this](const std::string& name, const std::string& more,
                             const std::string& variant,
                             const std::string& all_reduce) {
    const Result r = Compare(name, more);
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_THAT(Configuration(name, variant),
                HasSubstr("all_reduce: \"" + all_reduce + "\""))
        << name;
  };
  WriteGame("algorithm: \"cp-oadam\"\n");
  expect("own", "--algorithms dp-oadam,cp-oadam", "cp-oadam", "auto");
  expect("method", "--methods cp-oadam", "cp-oadam", "auto");
  expect("qsgd", "--methods qsgd", "qsgd", "all-gather");
  WriteGame("algorithm: \"cp-oadam\" mixing { all_reduce: \"tree\" }\n");
  expect("file", "--algorithms cp-oadam", "cp-oadam", "tree");
  WriteGame("");
  expect("set", "--algorithms cp-oadam --set mixing.all_reduce=ring",
         "cp-oadam", "ring");
  expect("name", "--algorithms cp-oadam+mixing.all_reduce=star",
         "cp-oadam-mixing.all_reduce-star", "star");
}

// Each name of the list is explained under it, and compared under it unless the
// explanation says why not.
TEST_F(Variants, EveryListedMethodIsComparedOrSaysWhyNot) {
  WriteGame("step { optimizer: \"sgd\" }\n");
  for (const auto& method : ordered_json::parse(Run("methods --json").out)) {
    const std::string name = method["name"];
    const Result one = Run("methods " + name);
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_THAT(one.out, StartsWith("name      " + name + "\n"));
    const Result r = Compare(name, "--methods " + name + " --set rounds=4");
    const std::map<std::string, std::string> why_not = {
        {"caller", "the steps of a program's own loop"},
        {"datalens", "learns from votes"},
        {"lgc", "lgc: gradient method"}};
    if (const auto why = why_not.find(name); why != why_not.end()) {
      EXPECT_EQ(r.code, 2) << name;
      EXPECT_THAT(r.err, HasSubstr(why->second));
      continue;
    }
    EXPECT_EQ(r.code, 0) << name << ": " << r.err;
    // The settings are those that the method lists: a codec of edges in one
    // place, one of gradients in another.
    for (const std::string setting : method["settings"]) {
      const size_t equals = setting.find('=');
      const size_t dot = setting.find('.');
      const std::string field = dot < equals
                                    ? setting.substr(dot + 1, equals - dot - 1)
                                    : setting.substr(0, equals);
      if (field == "sites") continue;
      EXPECT_THAT(Configuration(name, name),
                  HasSubstr(field + ": \"" + setting.substr(equals + 1)))
          << setting;
    }
  }
}

TEST_F(Variants, EveryMethodIsCheckedBeforeTheFirstRuns) {
  WriteGame("");
  for (const auto& [name, says] :
       {std::pair("datalens", "is datalens, which learns from votes"),
        {"lgc", "lgc: gradient method lgc learns an autoencoder"}}) {
    const Result r = Compare(name, absl::StrCat("--methods dense-f32,", name));
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_THAT(r.err, HasSubstr(says));
    EXPECT_EQ(Configuration(name, "dense-f32"), "");
  }
}

TEST_F(Variants, AllMethodsAreComparedButThoseThatCannotRun) {
  WriteGame("step { optimizer: \"sgd\" }\n");
  const Result r = Compare("all", "--methods all --set rounds=4");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("q without lgc: gradient method lgc learns"));
  EXPECT_THAT(r.err, Not(HasSubstr("without dense")));
  for (const char* name :
       {"dposg", "dense-f32", "dyna-cold", "qsgd", "adacomp"}) {
    EXPECT_NE(Configuration("all", name), "") << name;
  }
  EXPECT_EQ(Configuration("all", "lgc"), "");
  EXPECT_EQ(Configuration("all", "dyna"), "") << "the same as dyna-cold";
  EXPECT_THAT(ReadAll(folder_.path() + "/runs/all/report.html"),
              HasSubstr("left out: gradient method lgc learns"));
}

// Two games side by side in one report: each has its own settings, and a
// picture of four panels, of which two are the score over time and traffic.
TEST_F(Variants, AllMethodsOnTwoGamesMakeOneReport) {
  WriteGame("step { optimizer: \"sgd\" } evaluation { every: 4 }\n");
  Write("b.textproto",
        "name: \"b\" peers: 4 rounds: 20 step { optimizer: \"ogda\" }\n"
        "game { bilinear { dimension: 1100 } } evaluation { every: 4 }\n");
  const Result r =
      Compare("two", "--methods all --also b.textproto --set rounds=8 --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto games = ordered_json::parse(r.out)["games"];
  ASSERT_EQ(games.size(), 2u);
  const std::string folder = folder_.path() + "/runs/two/";
  const std::string html = ReadAll(folder + "report.html");
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "q" : "b";
    EXPECT_EQ(games[i]["game"], name);
    EXPECT_EQ(games[i]["settings"].size(), games[0]["settings"].size());
    EXPECT_GT(games[i]["settings"].size(), 20u);
    EXPECT_THAT(r.err, HasSubstr(name + " without lgc: "));
    EXPECT_THAT(html, AllOf(HasSubstr(name + "</h"), HasSubstr("<img")));
    for (const auto& run : games[i]["runs"]) {
      const std::string method = run["algorithm"];
      EXPECT_TRUE(run["summary"]["finished"]) << name << " " << method;
      const std::string config =
          ReadAll(folder_.path() + "/" + run["folder"].get<std::string>() +
                  "/config.textproto");
      EXPECT_THAT(config, HasSubstr(i == 0 ? "quadratic {" : "bilinear {"));
      if (method != "dense-f32") continue;
      EXPECT_THAT(config, AllOf(HasSubstr("codec: \"dense-f32\""),
                                HasSubstr(i == 0 ? "\"sgd\"" : "\"ogda\"")));
    }
    // Width and height of the PNG: two panels by two, below a title.
    const std::string png = ReadAll(folder + "comparison-" + name + ".png");
    ASSERT_GT(png.size(), 24u);
    EXPECT_EQ(png.substr(16, 8), std::string("\0\0\x06\x40\0\0\x04\x20", 8));
  }
}

TEST_F(Variants, PeersStayAtTheSitesOfTheFile) {
  WriteGame("mixing { graph: \"locality-skewed\" sites: \"a:1,3 b:2,4\" }\n");
  const Result r = Compare("sites", "--methods locality-skewed,cp-oadam");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(Configuration("sites", "locality-skewed"),
              HasSubstr("sites: \"a:1,3 b:2,4\""));
  EXPECT_THAT(Configuration("sites", "cp-oadam"),
              AllOf(HasSubstr("graph: \"complete\""), Not(HasSubstr("sites"))));
}

TEST_F(Variants, EachComparedAlgorithmGetsTheSettingsThatItImplies) {
  WriteGame("mixing { codec: \"innov-int4\" gamma: 1 overlap_steps: 1 }\n");
  const Result r = Compare("cold", "--algorithms cold,dyna-cold");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(
      Configuration("cold", "cold"),
      AllOf(HasSubstr("codec: \"innov-int4\""), HasSubstr("gamma: 0.5\n")));
  EXPECT_THAT(Configuration("cold", "dyna-cold"),
              AllOf(HasSubstr("codec: \"dyna\""), HasSubstr("gamma: 0.05\n")));
  const Result other =
      Compare("other", "--algorithms dyna-cold+mixing.codec=innov-int4");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("take algorithm cold"));
}

}  // namespace methods_command_test
}  // namespace gossamer
