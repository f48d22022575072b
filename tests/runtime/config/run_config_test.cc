// A run's configuration: defaults, checks with the place of each mistake, and
// the settings that an algorithm chooses.

#include "runtime/config/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/spelling.h"
#include "algorithms/method/registry.h"
#include "google/protobuf/util/message_differencer.h"
#include "runtime/config/composition_check.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace run_config_test {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

RunConfig Parse(std::string_view text,
                std::vector<std::string> overrides = {}) {
  auto config = ParseRunConfig(text, "f.textproto", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : RunConfig();
}

std::string Error(std::string_view text,
                  std::vector<std::string> overrides = {}) {
  const auto config = ParseRunConfig(text, "f.textproto", overrides);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument)
      << config.status();
  return std::string(config.status().message());
}

TEST(ParseRunConfig, AnEmptyFileMeansTheDefaults) {
  const RunConfig config = Parse("");
  EXPECT_TRUE(config.has_seed());
  EXPECT_EQ(config.algorithm(), "dp-oadam");
  EXPECT_EQ(config.mixing().graph(), "ring");
  EXPECT_EQ(config.step().optimizer(), "oadam");
  EXPECT_TRUE(config.game().gan().has_width());
  EXPECT_TRUE(config.game().gan().data().has_dirichlet_alpha());
  EXPECT_FALSE(config.game().has_bilinear());
}

TEST(ParseRunConfig, MisspeltKeyHasAPlaceAndASuggestion) {
  EXPECT_EQ(Error("name: \"x\"\n  mixing {\n    codek: \"dense-f32\"\n}\n"),
            "f.textproto:3:5: there is no key \"codek\" in mixing; did you "
            "mean \"codec\"?");
  EXPECT_EQ(
      Error("step{learning_rate_of_the_generator: 1}"),
      "f.textproto:1:6: there is no key \"learning_rate_of_the_generator\" "
      "in step; known: optimizer, generator_learning_rate, "
      "discriminator_learning_rate, beta1, beta2, decay_from_round, "
      "gradient_clip, n_critic, steps_per_round, precision");
}

TEST(ParseRunConfig, AnOldSpellingIsAnsweredWithItsPlaceAndTheNewOne) {
  const std::pair<const char*, const char*> cases[] = {
      {"mixing { schedule: \"permuted-ring\" }", "graph: \"permuted-ring\""},
      {"mixing { weights: \"uniform\" }", "leave it out: edges weigh"},
      {"mixing { gossip: \"chebyshev\" }", "write chebyshev: true"},
      {"mixing { order: \"step-then-mix\" }", "leave it out: the algorithm"},
      {"mixing { largest_parameter: 5 }", "leave it out: it is 1e6"},
      {"step { epsilon: 1e-8 }", "leave it out: it is 1e-8"},
      {"game { gan { one_backward: false } }", "leave it out: one backward"},
      {"game { gan { data { shard: \"dirichlet\" } } }",
       "write dirichlet_alpha: 0.5"},
      {"game { gan { data { alpha: 1 } } }", "write dirichlet_alpha"},
      {"game { synthetic { heterogeneity: 1 } }", "leave it out: it is 1"},
      {"evaluation { who: \"all\" }", "leave it out: peer 1 evaluates"}};
  for (const auto& [text, advice] : cases) {
    EXPECT_THAT(Error(absl::StrCat("seed: 1\n", text)),
                AllOf(StartsWith("f.textproto:2:"),
                      HasSubstr("is no key any more; "), HasSubstr(advice)))
        << text;
  }
  EXPECT_THAT(Error("", {"mixing.schedule=fixed"}),
              AllOf(StartsWith("--set mixing.schedule=fixed: "),
                    HasSubstr("leave \"fixed\" out")));
}

TEST(ParseRunConfig, TransportIsOneOfThree) {
  EXPECT_EQ(Parse("").transport(), "auto");
  EXPECT_EQ(
      Parse("transport: \"nccl\" resources { device: \"cuda\" }").transport(),
      "nccl");
  EXPECT_THAT(Error("transport: \"ncc\""),
              AllOf(StartsWith("f.textproto:1:1: transport is \"ncc\""),
                    HasSubstr("auto, grpc, nccl")));
}

TEST(ParseRunConfig, DeviceIsTheCpuUnlessAGpuIsAskedFor) {
  EXPECT_EQ(Parse("").resources().device(), "cpu");
  for (const std::string device : {"auto", "cpu", "cuda", "cuda:3"}) {
    EXPECT_EQ(Parse("", {"resources.device=" + device}).resources().device(),
              device);
  }
  EXPECT_THAT(Error("resources { device: \"gpu\" }"),
              AllOf(StartsWith("f.textproto:1:13: resources.device is \"gpu\""),
                    HasSubstr("write auto, cpu, cuda, or cuda:N")));
}

TEST(ParseRunConfig, FabricIsAName) {
  EXPECT_EQ(Parse("", {"resources.fabric=rack-1"}).resources().fabric(),
            "rack-1");
  for (const std::string fabric : {"a/b", "a b"}) {
    EXPECT_THAT(Error("resources { fabric: \"" + fabric + "\" }"),
                HasSubstr("resources.fabric is \"" + fabric +
                          "\"; a fabric's name is"));
  }
}

TEST(ParseRunConfig, CongestionControlIsAName) {
  EXPECT_EQ(Parse("").resources().congestion_control(), "auto");
  EXPECT_EQ(Parse("", {"resources.congestion_control=bbr"})
                .resources()
                .congestion_control(),
            "bbr");
  for (const std::string name : {"", "b b r", "sixteen_letters_"}) {
    EXPECT_THAT(Error("resources { congestion_control: \"" + name + "\" }"),
                HasSubstr("resources.congestion_control is \"" + name +
                          "\"; give it auto, cubic, bbr"));
  }
}

TEST(ParseRunConfig, PlaceIsTheKeysEvenIfTheNextTokenIsElsewhere) {
  EXPECT_THAT(Error("mixin\n\n{ codec: \"dense-f32\" }"),
              StartsWith("f.textproto:1:1: there is no key \"mixin\""));
}

TEST(ParseRunConfig, WrongTypesHaveAPlace) {
  EXPECT_THAT(Error("\nrounds: \"many\""), StartsWith("f.textproto:2:9: "));
  EXPECT_THAT(Error("peers: -3"), StartsWith("f.textproto:1:8: "));
  EXPECT_THAT(Error("mixing { codec: innov }"),
              StartsWith("f.textproto:1:17: "));
  EXPECT_THAT(Error("seed: 1\nseed: 2"), StartsWith("f.textproto:2:"));
  EXPECT_THAT(Error("mixing {"), StartsWith("f.textproto:1:"));
}

TEST(ParseRunConfig, EveryProblemIsReportedAtOnceWithItsPlace) {
  const std::vector<std::string> lines = absl::StrSplit(
      Error("peers: 0\nmixing {\n  codec: \"innov-int5\"\n  mixing_rounds: 0\n"
            "}\n"
            "step { beta1: 1.5 }\n",
            {"mixing.deadline=soon"}),
      '\n');
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[0], StartsWith("f.textproto:1:1: peers is 0; it must lie "
                                   "between 1 and 16384"));
  EXPECT_THAT(lines[1],
              AllOf(StartsWith("f.textproto:3:3: mixing.codec is "
                               "\"innov-int5\": unknown codec \"innov-int5\"; "
                               "known: "),
                    HasSubstr("dense-f32"), HasSubstr("did you mean")));
  EXPECT_THAT(lines[2], StartsWith("f.textproto:4:3: mixing.mixing_rounds is "
                                   "0"));
  EXPECT_THAT(lines[3], AllOf(StartsWith("--set mixing.deadline=soon: "),
                              HasSubstr("none, auto, or a duration")));
  EXPECT_THAT(lines[4], StartsWith("f.textproto:6:8: step.beta1"));
}

TEST(ParseRunConfig, OverlapIsANumberOrAuto) {
  EXPECT_EQ(Parse("").mixing().overlap_steps(), 1);
  EXPECT_EQ(Parse("mixing { overlap_steps: 3 }").mixing().overlap_steps(), 3);
  EXPECT_EQ(Parse("mixing { overlap_steps: auto }").mixing().overlap_steps(),
            MixingConfig::auto_);
  EXPECT_EQ(Parse("", {"mixing.overlap_steps=auto"}).mixing().overlap_steps(),
            MixingConfig::auto_);
  EXPECT_THAT(Error("mixing {\n overlap_steps: 9 }"),
              StartsWith("f.textproto:2:19: overlap_steps is \"9\"; known: "
                         "auto, 0, 1, 2"));
  EXPECT_THAT(Error("", {"mixing.overlap_steps=many"}),
              HasSubstr("\"many\" is not one of auto, 0, 1"));
}

TEST(ParseRunConfig, OptionsOfACodecFollowItsName) {
  EXPECT_EQ(Parse("mixing { codec: \"innov-topk:k=32\" }").mixing().codec(),
            "innov-topk:k=32");
  EXPECT_THAT(Error("mixing { codec: \"innov-topk:j=32\" }"),
              AllOf(StartsWith("f.textproto:1:10: mixing.codec is "
                               "\"innov-topk:j=32\": "),
                    HasSubstr("no option \"j\"; known: k")));
  EXPECT_THAT(Error("mixing { codec: \"innov-tpk:k=32\" }"),
              HasSubstr("did you mean \"innov-topk\""));
}

TEST(LoadRunConfig, SaysWhichFileIsNotThere) {
  const auto config = LoadRunConfig("/nowhere/x.textproto");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(config.status().message()),
              StartsWith("/nowhere/x.textproto: "));
}

TEST(LoadRunConfig, ReadsAFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/c.textproto";
  std::ofstream(path) << "# a comment\nrounds: 12\n";
  const auto config = LoadRunConfig(path, std::vector<std::string>{"seed=9"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rounds(), 12u);
  EXPECT_EQ(config->seed(), 9u);
}

TEST(Overrides, SetFieldsOfEveryType) {
  const RunConfig config =
      Parse("game { gan { data { classes: \"face\" } } }",
            {"mixing.codec=innov-int8", "mixing.gamma=0.5", "rounds=7",
             "game.gan.data.flip=true", "game.gan.data.classes=face,hand",
             "mixing.gamma=0.25"});
  EXPECT_EQ(config.mixing().codec(), "innov-int8");
  EXPECT_EQ(config.mixing().gamma(), 0.25);
  EXPECT_EQ(config.rounds(), 7u);
  EXPECT_TRUE(config.game().gan().data().flip());
  ASSERT_EQ(config.game().gan().data().classes_size(), 2);
  EXPECT_EQ(config.game().gan().data().classes(1), "hand");
}

TEST(Overrides, ChooseAnotherGame) {
  const RunConfig config =
      Parse("game { gan { width: 8 } }", {"game.quadratic.noise=0.1"});
  EXPECT_FALSE(config.game().has_gan());
  EXPECT_EQ(config.game().quadratic().dimension(), 64u);
}

TEST(Overrides, ErrorsSayWhatFits) {
  const auto error = [](std::string assignment) {
    const absl::Status status =
        ParseRunConfig("", "c", {{std::move(assignment)}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(error("mixing.codex=x"),
            "--set mixing.codex=x: there is no key \"codex\" in mixing; did "
            "you mean \"codec\"?");
  EXPECT_EQ(error("rounds=ten"),
            "--set rounds=ten: \"ten\" is not a whole number, 0 or more, "
            "which rounds takes");
  EXPECT_EQ(error("mixing=ring"),
            "--set mixing=ring: mixing is a group; set one of its fields, as "
            "in mixing.graph=...");
  EXPECT_THAT(error("rounds.x=1"), HasSubstr("rounds is a value"));
  EXPECT_THAT(error("rounds"), HasSubstr("write path=value"));
}

TEST(Resolve, FillsWhatTheAlgorithmImplies) {
  const RunConfig dposg = Parse("algorithm: \"dposg\"");
  EXPECT_EQ(dposg.mixing().graph(), "ring");
  EXPECT_EQ(dposg.step().optimizer(), "osg");
  EXPECT_EQ(dposg.mixing().overlap_steps(), MixingConfig::steps_0);
  const RunConfig overlap = Parse("algorithm: \"dposg-overlap\"");
  EXPECT_EQ(overlap.step().optimizer(), "osg");
  EXPECT_EQ(overlap.mixing().overlap_steps(), MixingConfig::steps_1);
  const RunConfig rand = Parse("algorithm: \"rand-dp-oadam\"");
  EXPECT_EQ(rand.mixing().graph(), "permuted-ring");
  EXPECT_EQ(rand.step().optimizer(), "oadam");
  const RunConfig central = Parse("algorithm: \"cp-oadam\"");
  EXPECT_EQ(central.mixing().graph(), "complete");
  EXPECT_EQ(central.mixing().overlap_steps(), MixingConfig::steps_0);
  EXPECT_EQ(Parse("mixing { mixing_rounds: 3 }").mixing().overlap_steps(),
            MixingConfig::steps_0);
}

TEST(Resolve, KeepsWhatIsSetAndIsIdempotent) {
  RunConfig config =
      Parse("mixing { graph: \"torus\" } step { optimizer: \"sgd\" }");
  EXPECT_EQ(config.mixing().graph(), "torus");
  EXPECT_EQ(config.step().optimizer(), "sgd");
  const RunConfig once = config;
  ResolveRunConfig(config);
  EXPECT_TRUE(MessageDifferencer::Equals(once, config));
}

TEST(Resolve, TextReadsBackTheSame) {
  const RunConfig config =
      Parse("name: \"a-b\" game { gan { data { classes: \"face\" } } }");
  EXPECT_TRUE(MessageDifferencer::Equals(config, Parse(ToTextProto(config))));
}

TEST(Validate, SitesNeedALocalitySkewedGraphAndHoldEveryPeer) {
  const auto with = [](const std::string& sites, const std::string& more = "") {
    return "peers: 4 mixing { graph: \"locality-skewed\" sites: \"" + sites +
           "\" " + more + " }";
  };
  EXPECT_EQ(ScheduleSpecOf(Parse(with("a:1-2 b:3-4")).mixing()).sites,
            "a:1-2 b:3-4");
  Parse(with("a:1-2 b:3-9"));  // some may join later
  EXPECT_THAT(Error(with("a:1-2 b:3")), HasSubstr("where peer 4 of 4 is"));
  EXPECT_THAT(Error(with("a:1-4")), HasSubstr("one site"));
  EXPECT_THAT(Error(with("")), HasSubstr("no site"));
  EXPECT_THAT(Error(with("a:1-4 b:5")), HasSubstr("nothing is far"));
  EXPECT_THAT(Error(with("a:1 b:2 c:3 d:4")), HasSubstr("nothing is near"));
  EXPECT_THAT(Error(with("a:1-2 b:2-4")), HasSubstr("there twice"));
  EXPECT_THAT(Error(with("a:1-2 b:3-4", "variance_budget: -1")),
              HasSubstr("mixing.variance_budget is -1"));
  EXPECT_THAT(Error("mixing { sites: \"a:1-2 b:3-4\" }"),
              HasSubstr("take graph locality-skewed"));
}

TEST(Validate, CompositionsThatCannotWorkAreRefused) {
  EXPECT_THAT(Error("mixing { mixing_rounds: 2 overlap_steps: 1 }"),
              HasSubstr("needs mixing.overlap_steps: 0"));
  // The middle eigenvalues make the second phase 1.68 times the first.
  EXPECT_THAT(
      Error("peers: 4 mixing { graph: \"edge-list\" edges: \"0-1:0.85 1-2:0.05 "
            "2-3:0.85 3-0:0.05\" chebyshev: true mixing_rounds: 2 "
            "codec: \"dense-f32\" overlap_steps: steps_0 }"),
      HasSubstr("weighs an edge of this graph by 1.42"));
  EXPECT_THAT(Error("mixing { chebyshev: true mixing_rounds: 2 }"),
              HasSubstr("needs the same graph every round, a dense codec"));
  Parse(
      "mixing { chebyshev: true mixing_rounds: 2 codec: "
      "\"dense-f32\" }");
  EXPECT_THAT(Error("mixing { gamma: 0.5 overlap_steps: auto }"),
              HasSubstr("follows the overlap"));
  // On a ring with weights 1/3 and with snapshots one round old, γ must stay
  // below 3/4.
  EXPECT_THAT(Error("peers: 4 mixing { gamma: 0.8 overlap_steps: 2 }"),
              HasSubstr("stay below 0.75"));
  Parse("peers: 4 mixing { gamma: 0.7 overlap_steps: 2 }");
  EXPECT_THAT(Error("mixing { gamma: 1 codec: \"innov-topk\" }"),
              HasSubstr("mixing.gamma is 1, but codec \"innov-topk\" is stable "
                        "up to 0.0"));
  EXPECT_THAT(Error("mixing { gamma: 0.04 codec: \"innov-topk\" }"),
              HasSubstr("stable up to 0.03125, above which peers drift apart: "
                        "leave it out to get 0.03125"));
  Parse("mixing { gamma: 0.03125 codec: \"innov-topk\" }");
  // As the message gives it: 0.100098 of 0.10009765.
  EXPECT_THAT(Error("mixing { gamma: 0.1002 codec: \"innov-topk:k=205\" }"),
              HasSubstr("stable up to 0.100098"));
  Parse("mixing { gamma: 0.100098 codec: \"innov-topk:k=205\" }");
  Parse("mixing { gamma: 1 codec: \"innov-sign\" }");
  EXPECT_THAT(Error("algorithm: \"dyna-cold\" mixing { gamma: 0.25 }"),
              HasSubstr("codec \"dyna\" is stable up to 0.2"));
  Parse("algorithm: \"dyna-cold\" mixing { gamma: 0.2 }");
  // A setting that is left out fits the codec, whatever the algorithm.
  EXPECT_EQ(
      Parse("algorithm: \"cold\" mixing { codec: \"dyna\" }").mixing().gamma(),
      0.05);
  // On a ring with weights 1/3 λmax(I − W) is 4/3.
  EXPECT_THAT(Error("algorithm: \"cold\" peers: 8 mixing { gamma: 0.8 }"),
              HasSubstr("1/λmax(I − W), 0.75 on this graph"));
  Parse("algorithm: \"cold\" peers: 8 mixing { gamma: 0.75 }");
  EXPECT_THAT(Error("peers: 6 mixing { graph: \"hypercube\" }"),
              StartsWith("f.textproto:1:19: mixing.graph with 6 peers: "));
  EXPECT_THAT(Error("algorithm: \"rand-dp-oadam\" "
                    "mixing { graph: \"ring\" }"),
              HasSubstr("permuted-ring, random-matching"));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" mixing { overlap_steps: 1 }"),
              HasSubstr("leave it out or set 0"));
  EXPECT_THAT(Error("mixing { gradient_codec: \"qsgd\" }"),
              HasSubstr("dp-oadam sends no gradients"));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" "
                    "mixing { gradient_codec: \"qsgd\" all_reduce: \"ring\" }"),
              HasSubstr("encoded again at every hop"));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" "
                    "mixing { gradient_codec: \"innov-int4\" }"),
              HasSubstr("known: adacomp, dense-f32, lgc, qsgd"));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" "
                    "mixing { gradient_codec: \"qsgd:levels=3\" }"),
              HasSubstr("1, 7 or 127"));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" "
                    "mixing { gradient_codec: \"qsgd:fragments=2\" }"),
              HasSubstr("no option \"fragments\""));
  EXPECT_THAT(Error("mixing { chebyshev: true mixing_rounds: 2 codec: "
                    "\"dense-f32:fragments=2\" }"),
              HasSubstr("without fragments"));
  const auto all_reduce_of = [](const std::string& method) {
    return Parse("algorithm: \"cp-oadam\" mixing { gradient_codec: \"" +
                 method + "\" }")
        .mixing()
        .all_reduce();
  };
  EXPECT_EQ(all_reduce_of("qsgd"), "all-gather");
  EXPECT_EQ(all_reduce_of("adacomp:bin=500"), "all-gather");
  EXPECT_EQ(all_reduce_of("top-k:rate=100"), "all-gather");
  EXPECT_EQ(all_reduce_of("scalecom:rate=100,beta=0.1"), "mesh");
  EXPECT_EQ(all_reduce_of("lgc:rate=100"), "mesh");
  EXPECT_EQ(all_reduce_of("lgc:server=1"), "all-gather");
  EXPECT_EQ(all_reduce_of("dense-f32"), "mesh");
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" "
                    "mixing { gradient_codec: \"scalecom:beta=2\" }"),
              HasSubstr("beta of \"scalecom\" is \"2\""));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" "
                    "mixing { gradient_codec: \"lgc:learn=0\" }"),
              HasSubstr("learn of \"lgc\" is \"0\""));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" step { n_critic: 2 } "
                    "mixing { gradient_codec: \"lgc\" }"),
              HasSubstr("needs both players' gradients in every step"));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" mixing { gradient_codec: "
                    "\"lgc:server=1\" all_reduce: \"ring\" }"),
              HasSubstr("encoded again at every hop"));
  for (const char* lgc : {"lgc:full=0,server=1", "lgc:server=1.0,full=0",
                          "lgc:server=1,full=0.0,rate=100"}) {
    EXPECT_THAT(Error(absl::StrCat("algorithm: \"cp-oadam\" mixing { "
                                   "gradient_codec: \"",
                                   lgc, "\" }")),
                HasSubstr("begin with dense gradients, full=200"));
  }
  Parse(
      "algorithm: \"cp-oadam\" mixing { gradient_codec: "
      "\"lgc:server=1,full=1\" }");
  Parse("algorithm: \"cp-oadam\" mixing { gradient_codec: \"lgc:full=0\" }");
  Parse("algorithm: \"cold\" mixing { codec: \"innov-int4:fragments=1\" }");
  EXPECT_THAT(
      Error("algorithm: \"cold\" mixing { codec: \"innov-int4:fragments=2\" }"),
      HasSubstr("innov-int8, innov-int4 or dyna, whole"));
  EXPECT_THAT(Error("mixing { gradient_codec: \"lgc\" }"),
              HasSubstr("dp-oadam sends no gradients"));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" step { n_critic: 2 } "
                    "mixing { gradient_codec: \"scalecom\" }"),
              HasSubstr("needs both players' gradients in every step"));
  for (const char* overlap : {"1", "4", "auto"}) {
    EXPECT_THAT(Error(absl::StrCat("algorithm: \"dposg\" "
                                   "mixing { overlap_steps: ",
                                   overlap, " }")),
                HasSubstr("take algorithm dposg-overlap"));
  }
  EXPECT_THAT(Error("algorithm: \"dposg-overlap\" "
                    "mixing { overlap_steps: 0 }"),
              HasSubstr("or take algorithm dposg, which mixes first"));
  Parse("algorithm: \"dposg-overlap\" mixing { overlap_steps: 4 }");
  EXPECT_EQ(Parse("algorithm: \"gradient-tracking\"").step().optimizer(),
            "ogda");
  EXPECT_THAT(Error("algorithm: \"gradient-tracking\" "
                    "step { n_critic: 2 } mixing { codec: \"auto\" }"),
              AllOf(HasSubstr("what coarse innovations lag behind grows"),
                    HasSubstr("step.n_critic is 2, but gradient-tracking")));
  for (const char* codec :
       {"dense-bf16", "diff-int8", "power-gossip", "innov-int4:fragments=3"}) {
    Parse(absl::StrCat("algorithm: \"gradient-tracking\" mixing { codec: \"",
                       codec, "\" }"));
  }
  EXPECT_THAT(Error("algorithm: \"gradient-tracking\" "
                    "mixing { chebyshev: true codec: \"dense-f32\" "
                    "overlap_steps: 0 mixing_rounds: 2 }"),
              HasSubstr("moves tracked gradients by more"));
  EXPECT_THAT(Error("algorithm: \"gradient-tracking\" "
                    "mixing { gradient_codec: \"lgc\" }"),
              HasSubstr("gradient-tracking sends no gradients"));
  EXPECT_THAT(Error("algorithm: \"cold\" step { optimizer: \"sgd\" }"),
              HasSubstr("step.optimizer is sgd, but algorithm cold is the "
                        "optimizer cold"));
  EXPECT_THAT(Error("algorithm: \"dposg\" step { optimizer: \"adam\" }"),
              HasSubstr("take algorithm dp-oadam"));
  EXPECT_THAT(Error("algorithm: \"cold\" mixing { deadline: \"auto\" }"),
              HasSubstr("mixing.deadline is auto, but optimizer cold needs"));
  const RunConfig cold = Parse("algorithm: \"cold\"");
  EXPECT_EQ(cold.step().optimizer(), "cold");
  EXPECT_EQ(cold.mixing().overlap_steps(), MixingConfig::steps_0);
  EXPECT_EQ(cold.mixing().gamma(), 0.5);
  EXPECT_EQ(Parse("algorithm: \"dyna-cold\"").mixing().codec(), "dyna");
  EXPECT_THAT(
      Error("algorithm: \"dyna-cold\" mixing { codec: \"innov-int4\" }"),
      HasSubstr("dyna-cold is COLD with codec dyna: leave it out"));
  EXPECT_THAT(Error("algorithm: \"cold\" mixing { codec: \"innov-sign\" }"),
              HasSubstr("coarser innovations lag behind the dual"));
  EXPECT_THAT(Error("algorithm: \"cold\" mixing { overlap_steps: 1 "
                    "replica_memory_mb: 5 }"),
              AllOf(HasSubstr("mixing.overlap_steps is 1, but optimizer cold"),
                    HasSubstr("mixing.replica_memory_mb is 5")));
  EXPECT_THAT(Error("peers: 8 algorithm: \"cold\" "
                    "mixing { graph: \"random-matching\" }"),
              HasSubstr("the same matrix every round"));
  EXPECT_THAT(Error("algorithm: \"cold\" step { n_critic: 5 }"),
              HasSubstr("steps and mixes in turn"));
  for (const char* algorithm : {"cold", "dyna-cold"}) {
    EXPECT_THAT(Error(absl::StrCat("algorithm: \"", algorithm,
                                   "\" step { gradient_clip: 100 }")),
                HasSubstr("step.gradient_clip is 100, but optimizer cold "
                          "learns each peer's own gradient"));
  }
  for (const char* algorithm : {"cp-oadam", "dp-oadam", "gradient-tracking"}) {
    EXPECT_THAT(Error(absl::StrCat("algorithm: \"", algorithm,
                                   "\" step { optimizer: \"cold\" }")),
                HasSubstr("step.optimizer is cold, the rule of algorithm cold: "
                          "leave it out, or take that algorithm"));
  }
  EXPECT_THAT(Error("mixing { codec: \"dyna\" }"),
              HasSubstr("for algorithm cold or dyna-cold alone: its step "
                        "shrinks whatever the parameters do; take innov-sign"));
  EXPECT_THAT(Error("rounds: 10 step { decay_from_round: 11 }"),
              HasSubstr("after the last round (10)"));
}

TEST(Validate, CodecsOfSinglePlayersAreChecked) {
  const auto mixing = [](const std::string& codec,
                         const std::string& others = "") {
    return absl::StrCat("mixing { codec: \"", codec, "\" ", others, "} ");
  };
  for (const char* codec :
       {"innov-int4; generator=innov-sign every 4",
        "generator=auto; discriminator=diff-int8:fragments=2"}) {
    EXPECT_EQ(Parse(mixing(codec)).mixing().codec(), codec);
  }
  // A program's own players are known when it joins.
  Parse("game { caller {} } " + mixing("innov-int4; student=auto"));
  EXPECT_THAT(
      Error(mixing("innov-int4; generater=innov-sign")),
      HasSubstr(
          "mixing.codec is \"innov-int4; generater=innov-sign\": there is "
          "no player \"generater\" in this game; known: generator, "
          "discriminator (did you mean"));
  EXPECT_THAT(Error(mixing("generator=auto")),
              HasSubstr("player \"discriminator\" has no codec"));
  EXPECT_THAT(Error(mixing("innov-int4; generator=dyna")),
              HasSubstr("but dyna is for algorithm cold or dyna-cold alone"));
  EXPECT_THAT(Error(mixing("innov-int4 every 2", "replica_memory_mb: 10 ")),
              HasSubstr("mixing.replica_memory_mb is 10, but edges without "
                        "replicas have one codec for all players"));
  EXPECT_THAT(Error(mixing("dense-f32 every 2",
                           "chebyshev: true overlap_steps: steps_0 ")),
              HasSubstr("mixing.chebyshev is true"));
  for (const char* algorithm : {"cold", "gradient-tracking"}) {
    for (const char* codec :
         {"innov-int8 every 2", "innov-int8; generator=innov-int4"}) {
      EXPECT_THAT(
          Error(absl::StrCat("algorithm: \"", algorithm, "\" ", mixing(codec))),
          HasSubstr("mixing.codec is \""));
    }
  }
}

TEST(Validate, ClippingNeedsEnoughNeighbours) {
  const auto with = [](const std::string& mixing, int peers = 9,
                       const std::string& more = "") {
    return absl::StrCat("peers: ", peers, " ", more,
                        " mixing { clip_radius: 0.1 ", mixing, " }");
  };
  Parse(with("graph: \"torus\""));
  Parse(with("graph: \"complete\"", 5));
  Parse(with("graph: \"random-regular\" degree: 4"));
  Parse(with("graph: \"permuted-ring\""));
  Parse(with("graph: \"random-matching\"", 8));
  EXPECT_THAT(Error(with("")),
              HasSubstr("a peer of this graph mixes with only 2 others: one "
                        "liar is too large a part of what it hears"));
  EXPECT_THAT(Error(with("graph: \"torus\"", 8)), HasSubstr("only 3 others"));
  EXPECT_THAT(Error(with("graph: \"complete\"", 4)),
              HasSubstr("only 3 others"));
  EXPECT_THAT(Error(with("graph: \"star\"")), HasSubstr("only 1 others"));
  EXPECT_THAT(Error(with("", 9, "algorithm: \"cp-oadam\"")),
              HasSubstr("all-reduce is a sum already"));
  EXPECT_THAT(Error(with("graph: \"torus\"", 9, "algorithm: \"cold\"")),
              HasSubstr("its dual would grow"));
  EXPECT_THAT(Error(with("graph: \"torus\" chebyshev: true "
                         "mixing_rounds: 2 codec: \"dense-f32\"")),
              HasSubstr("amplifies"));
  EXPECT_THAT(Error("mixing { clip_radius: -1 }"),
              HasSubstr("mixing.clip_radius is -1; it must be 0 or more"));
  EXPECT_THAT(Error("mixing { clip_radius: nan }"),
              HasSubstr("it must be 0 or more"));
}

TEST(FindUnused, SettingsThatTheAlgorithmIgnoresAreNamed) {
  const auto unused = [](const std::string& text) {
    return FindUnused(Parse(text));
  };
  EXPECT_THAT(unused("algorithm: \"cp-oadam\" mixing { deadline: \"auto\" "
                     "codec: \"innov-int8\" gamma: 0.3 all_reduce: \"ring\" }"),
              testing::UnorderedElementsAre("mixing.codec", "mixing.gamma",
                                            "mixing.deadline"));
  EXPECT_THAT(unused("mixing { deadline: \"auto\" all_reduce: \"ring\" }"),
              testing::ElementsAre("mixing.all_reduce"));
  for (const std::string_view algorithm : MethodNames()) {
    EXPECT_THAT(
        unused(absl::StrCat("algorithm: \"", std::string(algorithm), "\"")),
        testing::IsEmpty());
  }
}

TEST(Validate, OnlyQuadraticGamesMayDifferBetweenPeers) {
  Parse("game { quadratic { heterogeneity: 1 } }");
  EXPECT_THAT(Error("game { bilinear { heterogeneity: 1 } }"),
              HasSubstr("game.bilinear.heterogeneity is 1, but all peers"));
}

TEST(Validate, ValuesOutOfRangeAndUnknownNamesAreRefused) {
  EXPECT_THAT(Error("algorithm: \"dp-adam\""), HasSubstr("did you mean "
                                                         "\"dp-oadam\"?"));
  EXPECT_THAT(Error("step { generator_learning_rate: nan }"),
              HasSubstr("must be above 0"));
  EXPECT_THAT(Error("mixing { codec: \"choco-int4\" }"),
              HasSubstr("mixing.codec is \"choco-int4\": there is no codec "
                        "\"choco-int4\": write \"innov-int4\" instead"));
  EXPECT_THAT(Error("mixing { codec: \"innov-int5\" }"),
              HasSubstr("did you mean \"innov-int"));
  EXPECT_THAT(Error("mixing { codec: \"power-gossip:fragments=2\" }"),
              HasSubstr("\"power-gossip\" has no option \"fragments\"; "
                        "known: least"));
  EXPECT_THAT(
      Error("mixing { codec: \"power-gossip:least=64\" overlap_steps: 3 }"),
      HasSubstr("begins where the last one ended"));
  EXPECT_THAT(Error("mixing { gamma: nan }"), HasSubstr("between 0 and 1"));
  EXPECT_THAT(Error("mixing { liveness_limit: \"-1s\" }"),
              HasSubstr("a duration above 0"));
  EXPECT_THAT(Error("step { precision: \"fp8\" }"),
              HasSubstr("step.precision is \"fp8\""));
  EXPECT_THAT(Error("step { precision: \"bf16\" } game { bilinear {} }"),
              HasSubstr("only the networks of game gan have a choice"));
  EXPECT_THAT(Error("name: \"../up\""), HasSubstr("letters, digits"));
  EXPECT_THAT(Error("name: \"a/b\""), HasSubstr("letters, digits"));
  EXPECT_THAT(Error("checkpoint { keep: 0 }"), HasSubstr("checkpoint.keep"));
}

TEST(Validate, AGameThatCannotRunOnAGpuIsRefusedThere) {
  const std::string gpu = "resources { device: \"cuda\" } ";
  for (const char* game : {"bilinear", "quadratic", "synthetic"}) {
    const std::string text = absl::StrCat("game { ", game, " {} }");
    EXPECT_THAT(Error(gpu + text),
                AllOf(HasSubstr(absl::StrCat(
                          "resources.device is cuda, but game ", game)),
                      HasSubstr("take game gan, or set resources.device=cpu")));
    // `auto` stays on the CPU then.
    EXPECT_EQ(Parse(text, {"resources.device=auto"}).resources().device(),
              "auto");
  }
  EXPECT_THAT(Error(gpu + "algorithm: \"datalens\""),
              HasSubstr("resources.device is cuda, but game datalens"));
  for (const Method* method : Methods()) {
    RunConfig config;
    config.set_algorithm(std::string(method->name));
    ResolveRunConfig(config);
    EXPECT_EQ(WhyOnHost(config).empty(),
              config.game().has_gan() || config.game().has_caller())
        << method->name;
  }
  // The program decides where the parameters of its own game lie.
  EXPECT_THAT(Error(gpu + "game { caller {} }"),
              AllOf(HasSubstr("resources.device is cuda, but the parameters of "
                              "a program's own game"),
                    HasSubstr("leave it out")));
  EXPECT_EQ(Parse("transport: \"nccl\" game { caller {} }").transport(),
            "nccl");
}

TEST(Validate, NcclNeedsAGpu) {
  EXPECT_THAT(Error("transport: \"nccl\""),
              AllOf(StartsWith("f.textproto:1:1: transport is nccl"),
                    HasSubstr("set resources.device=cuda, or transport=auto")));
  // The machine decides.
  EXPECT_EQ(Parse("transport: \"nccl\" resources { device: \"auto\" }")
                .resources()
                .device(),
            "auto");
}

TEST(Validate, CodecsAndOptionsThatAreGoneSayWhatToWrite) {
  EXPECT_THAT(Error("mixing { codec: \"squeeze-sign\" }"),
              HasSubstr("there is no codec \"squeeze-sign\": write "
                        "\"innov-sign\" instead"));
  EXPECT_THAT(Error("mixing { codec: \"qsgd:levels=127\" }"),
              HasSubstr("there is no codec \"qsgd\": write \"innov-int4\""));
  EXPECT_THAT(
      Error("algorithm: \"cp-oadam\" mixing { gradient_codec: \"dense\" }"),
      HasSubstr("no gradient method \"dense\": write \"dense-f32\""));
  EXPECT_THAT(Error("algorithm: \"cp-oadam\" "
                    "mixing { gradient_codec: \"choco-int4\" }"),
              HasSubstr("unknown gradient method \"choco-int4\"; known: "));
  EXPECT_THAT(Error("mixing { codec: \"innov-int4:zstd=1\" }"),
              HasSubstr("option zstd of \"innov-int4\" is gone: leave zstd=1 "
                        "out"));
}

TEST(ConfigurationHash, TheHashCoversOnlySettingsThatPeersShare) {
  const uint64_t hash = ConfigurationHash(Parse(""));
  EXPECT_EQ(hash, ConfigurationHash(
                      Parse("name: \"other\" evaluation { every: 7 } "
                            "checkpoint { every: 9 keep: 1 } "
                            "game { gan { data { path: \"/data\" } } }")));
  EXPECT_EQ(hash, ConfigurationHash(Parse("mixing { codec: \"innov-int4\" "
                                          "edges: \"\" }")));
  // Peers on GPUs and peers in host memory train together.
  EXPECT_EQ(hash, ConfigurationHash(Parse("transport: \"grpc\"")));
  EXPECT_EQ(hash, ConfigurationHash(Parse("resources { device: \"cuda:1\" "
                                          "fabric: \"rack-1\" "
                                          "congestion_control: \"bbr\" "
                                          "connections: 1 "
                                          "tls_gate: false }")));
  EXPECT_NE(hash, ConfigurationHash(Parse("resources { connections: 4 }")));
  EXPECT_NE(hash, ConfigurationHash(Parse("seed: 2")));
  EXPECT_NE(hash, ConfigurationHash(Parse("mixing { gamma: 0.5 }")));
  EXPECT_NE(hash, ConfigurationHash(Parse("step { beta1: 0.4 }")));
}

TEST(ConfigurationLines, TheLinesAreTheValuesThatTheHashCovers) {
  const std::string lines = ConfigurationLines(
      Parse("name: \"other\" seed: 2 mixing { overlap_steps: auto } "
            "game { gan { data { classes: \"cat\" classes: \"dog\" } } }"));
  EXPECT_THAT(lines, AllOf(HasSubstr("seed: 2\n"),
                           HasSubstr("mixing.graph: \"ring\"\n"),
                           HasSubstr("mixing.overlap_steps: auto\n"),
                           HasSubstr("game.gan.data.classes: \"cat\"\n"
                                     "game.gan.data.classes: \"dog\"\n")));
  EXPECT_THAT(lines, testing::Not(HasSubstr("name: \"other\"")));
  EXPECT_EQ(lines, ConfigurationLines(Parse(
                       "seed: 2 mixing { graph: \"ring\" overlap_steps: auto } "
                       "game { gan { data { classes: [\"cat\", \"dog\"] } } } "
                       "transport: \"grpc\"")));
}

TEST(Nearest, IsNearOrNothing) {
  const std::vector<std::string_view> known = {"ring", "torus", "complete"};
  EXPECT_EQ(Nearest("rign", known), "ring");
  EXPECT_EQ(Nearest("completed", known), "complete");
  EXPECT_EQ(Nearest("hypercube", known), "");
}

}  // namespace run_config_test
}  // namespace gossamer
