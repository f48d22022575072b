// `gossamer lab --rehearse` and `gossamer compare --rehearse`: runs in virtual
// time against hand-computed times and bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace rehearse_command_test {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using ::testing::HasSubstr;

constexpr char kNetwork[] = "name: \"far\"\nlink { rtt: \"100ms\" ";

// The program in a folder with a far network and a configuration.
class Rehearse : public Cli {
 protected:
  void SetUp() override {
    Write("far.textproto", absl::StrCat(kNetwork, "}\n"));
    Write("c.textproto",
          "name: \"r\" peers: 4 rounds: 100 mixing { codec: \"dense-f32\" } "
          "game { synthetic { parameters: 20000 step_time: \"40ms\" } }");
  }
  // Returns the summary of a run with these changes, on far.textproto.
  ordered_json Summary(const std::string& more) {
    const Result r =
        Run("lab --rehearse --scenario far.textproto --config c.textproto "
            "--overwrite --json " +
            more);
    if (r.code != 0) throw std::runtime_error(r.err);
    return ordered_json::parse(r.out)["summary"];
  }
  // The last event of these kinds that peer 1 has reported.
  ordered_json LastChoice(const std::set<std::string>& kinds) {
    std::istringstream events(
        ReadAll(folder_.path() + "/runs/r/peer-1/events.jsonl"));
    ordered_json last;
    for (std::string line; std::getline(events, line);) {
      ordered_json event = ordered_json::parse(line);
      if (kinds.contains(event["kind"])) last = std::move(event);
    }
    return last;
  }
  // Of the run's rounds after this one.
  void ExpectNoWaiting(int peer, int after = 20) {
    std::istringstream rounds(ReadAll(
        absl::StrCat(folder_.path(), "/runs/r/peer-", peer, "/metrics.jsonl")));
    double waiting = 0, computing = 0;
    for (std::string line; std::getline(rounds, line);) {
      const auto round = ordered_json::parse(line);
      if (round["round"] <= after) continue;
      waiting += round["seconds_waiting"].get<double>();
      computing += round["seconds_computing"].get<double>();
    }
    EXPECT_GT(computing, 3) << peer;
    EXPECT_LT(waiting, 0.01 * computing) << peer;
  }
};

TEST_F(Rehearse, RoundTimesFollowFromLatencyAndSteps) {
  // The round with h = 0 is step + L, with h = 1 max(step, L), with h = 2 the
  // step alone.
  for (const auto& [h, seconds] :
       {std::pair(0, 0.090), {1, 0.050}, {2, 0.040}}) {
    const ordered_json s =
        Summary(absl::StrCat("--set mixing.overlap_steps=", h));
    EXPECT_NEAR(1 / s["rounds_per_second"].get<double>(), seconds,
                0.03 * seconds)
        << h;
    // Four peers have two edges each; the last round does not wait for later
    // exchanges.
    EXPECT_GE(s["corrections"], 4 * 2 * (h > 1 ? 101 - h : 100));
  }
}

TEST_F(Rehearse, ARateIncludesTheHeadersOfPackets) {
  // A host sends 80 kB at 8 Mbit/s, in packets of 1500 bytes, on each of two
  // links.
  Write("far.textproto", absl::StrCat(kNetwork, "rate: \"8mbit\" }\n"));
  const ordered_json s = Summary("--set mixing.overlap_steps=0");
  const double transfer = 8e4 / 1e6 * 1500 / 1448;
  EXPECT_NEAR(1 / s["rounds_per_second"].get<double>(),
              0.040 + 0.050 + transfer, 0.005);
}

// Two sites of four peers: the exact share of far pairs, from the counts by
// link.
TEST_F(Rehearse, ASkewedScheduleSendsLittleBetweenSites) {
  const auto far_bytes = [this](const std::string& schedule) {
    const Result r =
        Run("lab --rehearse --scenario far.textproto --config c.textproto "
            "--overwrite --out sites --set peers=8 --set rounds=300 "
            "--set mixing.graph=" +
            schedule);
    if (r.code != 0) throw std::runtime_error(r.err);
    const auto network =
        ordered_json::parse(ReadAll(folder_.path() + "/sites/network.json"));
    double bytes = 0;
    for (const auto& link : network["links"]) {
      if ((link["from"] < 4) != (link["to"] < 4)) {
        bytes += link["bytes"].get<double>();
      }
    }
    return bytes;
  };
  // The count is of 300 rounds of 16/7 far pairs, 80 kB each way.
  const double plain = far_bytes("random-matching");
  EXPECT_NEAR(plain, 300 * 16 / 7.0 * 2 * 8e4, 0.1 * plain);
  const double skewed = far_bytes(
      "locality-skewed --set mixing.sites='a:1-4 b:5-8' "
      "--set mixing.variance_budget=1");
  // L = 3/7 and D = 1 make s* = 5.9 and Z = 3.1.
  EXPECT_NEAR(plain / skewed, 3.1, 0.4);
}

// The setting of deploy/configs/two_sites.textproto: the bytes between the
// sites, and the distance between peers from round 100 on.
TEST_F(Rehearse, TwoSitesSaveTwoThirdsOfTheBytesBetweenThem) {
  Write("sites.textproto",
        "name: \"s\" peers: 16 rounds: 600 step { optimizer: \"sgd\" "
        "generator_learning_rate: 0.05 discriminator_learning_rate: 0.05 } "
        "mixing { variance_budget: 1.15 codec: \"innov-int4\" "
        "overlap_steps: 1 } "
        "game { quadratic { dimension: 5000 heterogeneity: 1 } }");
  const auto run = [this](const std::string& more) {
    const Result r =
        Run("lab --rehearse --step-time 40ms --scenario far.textproto "
            "--config sites.textproto --overwrite --out two " +
            more);
    if (r.code != 0) throw std::runtime_error(r.err);
    double bytes = 0, distance = 0;
    int samples = 0;
    const auto network =
        ordered_json::parse(ReadAll(folder_.path() + "/two/network.json"));
    for (const auto& link : network["links"]) {
      if ((link["from"] < 8) != (link["to"] < 8)) {
        bytes += link["bytes"].get<double>();
      }
    }
    std::istringstream lines(ReadAll(folder_.path() + "/two/consensus.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const ordered_json sample = ordered_json::parse(line);
      if (sample["round"] < 100) continue;
      distance += sample["consensus_distance"].get<double>();
      ++samples;
    }
    return std::pair(bytes, distance / samples);
  };
  double farther = 0;
  for (const int seed : {1, 2, 3}) {
    const std::string set = absl::StrCat("--set seed=", seed);
    const auto plain = run(set + " --set mixing.graph=random-matching");
    const auto skewed = run(set +
                            " --set mixing.graph=locality-skewed "
                            "--set mixing.sites='a:1-8 b:9-16'");
    EXPECT_GE(plain.first / skewed.first, 3) << seed;
    farther += skewed.second / plain.second / 3;
  }
  EXPECT_LE(farther, 1.5);
}

TEST_F(Rehearse, OutagesHoldRoundsUp) {
  const double calm = Summary("")["training_seconds"];
  Write("far.textproto",
        absl::StrCat(kNetwork,
                     "}\nlink { a: \"host-0\" b: \"host-1\" "
                     "outage { from: \"2s\" to: \"3s\" } }\n"));
  const double held = Summary("")["training_seconds"];
  EXPECT_NEAR(held - calm, 1, 0.1);
}

TEST_F(Rehearse, OverlapAutoHidesTheLatency) {
  const ordered_json s = Summary(
      "--set rounds=400 --set mixing.overlap_steps=auto "
      "--set mixing.deadline=none");
  EXPECT_GT(s["rounds_per_second"].get<double>(), 22);  // it is 20 with h = 1
}

// The last choice of `auto` holds from round 20 on, and no round waits then:
// in a cell of 200 ms whose uplinks just carry one bit a parameter in 40 ms,
// between continents, where twenty rounds are shorter than three heartbeats,
// and on a line from home that the first payloads fill for seconds.
TEST_F(Rehearse, AutoHasSettledByRoundTwenty) {
  const std::string cell = "uplink: \"12mbit\" link { rtt: \"200ms\" }";
  for (const auto& [network, step, parameters] :
       {std::tuple(cell, "200ms", 200000),
        {cell, "40ms", 200000},
        {"link { like: \"ocean\" }", "40ms", 2258308},
        {"link { like: \"world\" }", "40ms", 2258308},
        {"link { like: \"home\" }", "200ms", 2258308}}) {
    SCOPED_TRACE(network + step);
    Write("far.textproto", absl::StrCat("name: \"far\" ", network));
    Summary(
        absl::StrCat("--set rounds=100 --set mixing.codec=auto "
                     "--set mixing.overlap_steps=auto --step-time ",
                     step, " --set game.synthetic.parameters=", parameters));
    const ordered_json last = LastChoice({"overlap", "codec"});
    EXPECT_GT(last["round"], 1);
    EXPECT_LE(last["round"], 20);
    ExpectNoWaiting(1);
  }
}

// The links become others after about 60 rounds.  A wider format and a smaller
// overlap may come later: neither makes a round shorter.
TEST_F(Rehearse, NoRoundWaitsTwentyRoundsAfterTheLinksHaveChanged) {
  for (const auto& [before, after] :
       {std::pair("region", "home"), {"world", "region"}}) {
    SCOPED_TRACE(absl::StrCat(before, " to ", after));
    Write("far.textproto",
          absl::StrCat("name: \"far\" link { like: \"", before, "\" }"));
    Summary(absl::StrCat(
        "--set rounds=140 --set mixing.codec=auto "
        "--set mixing.overlap_steps=auto --step-time 200ms "
        "--set game.synthetic.parameters=2258308 --at '12.7s links ",
        after, "'"));
    EXPECT_GT(LastChoice({"overlap", "codec"})["round"], 60)
        << "no choice has followed the links";
    ExpectNoWaiting(1, /*after=*/80);
  }
}

// Uplinks that carry the payloads of a round in somewhat more than a step, or
// in four: no overlap hides that, and a larger one than fills them is not
// chosen.
TEST_F(Rehearse, OverlapAutoStaysSmallOnAFullLink) {
  for (const auto& [uplink, most] : {std::pair("29mbit", 3), {"8mbit", 5}}) {
    Write("far.textproto", absl::StrCat("name: \"far\" uplink: \"", uplink,
                                        "\" link { rtt: \"2ms\" }"));
    Summary(
        "--set rounds=400 --set mixing.overlap_steps=auto "
        "--set mixing.deadline=none");
    const std::string last = LastChoice({"overlap"})["detail"];
    int overlap = 0;
    ASSERT_EQ(std::sscanf(last.c_str(), "overlap_steps %d ", &overlap), 1);
    EXPECT_GT(overlap, 1) << uplink;
    EXPECT_LE(overlap, most) << uplink;
  }
}

// The far edge of a host takes its share of the uplink and no more: the near
// ones get theirs, and no round waits for either.
TEST_F(Rehearse, AFarEdgeDoesNotStarveANearOne) {
  Write("far.textproto",
        "name: \"far\" uplink: \"12mbit\" link { rtt: \"1ms\" }\n"
        "link { a: \"host-0\" b: \"host-1\" rtt: \"300ms\" }");
  Summary(
      "--set rounds=100 --set mixing.codec=auto --step-time 100ms "
      "--set mixing.overlap_steps=auto "
      "--set game.synthetic.parameters=200000");
  for (const int peer : {1, 2, 3, 4}) ExpectNoWaiting(peer);
}

TEST_F(Rehearse, RepeatingARehearsalGivesTheSameLogs) {
  const auto left = [this] {
    Summary("--set mixing.graph=permuted-ring");
    const std::string run = folder_.path() + "/runs/r/";
    return std::pair(ReadAll(run + "peer-3/metrics.jsonl"),
                     ReadAll(run + "consensus.jsonl"));
  };
  const auto first = left();
  EXPECT_FALSE(first.first.empty());
  EXPECT_FALSE(first.second.empty());
  EXPECT_EQ(first, left());
}

TEST_F(Rehearse, ACentralizedRoundTakesAStepAndAnAllReduce) {
  const ordered_json s = Summary(
      "--set algorithm=cp-oadam --set mixing.all_reduce=mesh "
      "--set mixing.overlap_steps=0");
  // An all-reduce is two messages one after the other: reduce-scatter, then
  // all-gather.
  EXPECT_NEAR(1 / s["rounds_per_second"].get<double>(), 0.140, 0.005);
}

TEST_F(Rehearse, MeasuredStepTimesStandForNetworks) {
  Summary("");
  Write("gan.textproto", "name: \"g\" peers: 4 rounds: 50");
  const Result r =
      Run("lab --rehearse --scenario far.textproto --config gan.textproto "
          "--steps-of runs/r --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const double rate =
      ordered_json::parse(r.out)["summary"]["rounds_per_second"];
  EXPECT_NEAR(rate, 20, 0.6);
  const auto told =
      ordered_json::parse(ReadAll(folder_.path() + "/runs/g/conditions.json"));
  EXPECT_EQ(told["step_times"], "measured in runs/r");
}

TEST_F(Rehearse, ComparisonsNeedNoLab) {
  const Result r =
      Run("compare --config c.textproto --rehearse --rtt 0ms,100ms "
          "--algorithms dp-oadam,cp-oadam --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto settings = ordered_json::parse(r.out)["games"][0]["settings"];
  ASSERT_EQ(settings.size(), 4u);
  EXPECT_EQ(settings[2]["network"], "100ms, rehearsed");
  EXPECT_GT(settings[2]["rounds_per_second_mean"].get<double>(),
            2 * settings[3]["rounds_per_second_mean"].get<double>());
}

// A comparison keeps only runs that its command stands for.
TEST_F(Rehearse, AComparisonOfOtherConditionsIsRefused) {
  const std::string compare =
      "compare --config c.textproto --rehearse --scenarios far.textproto "
      "--algorithms dp-oadam --step-time ";
  ASSERT_EQ(Run(compare + "10ms").code, 0);
  const Result again = Run(compare + "10ms");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("kept, it has finished"));

  const auto refused = [&](const std::string& command,
                           const std::string& difference) {
    const Result r = Run(command);
    EXPECT_EQ(r.code, 2) << command;
    EXPECT_THAT(r.err, HasSubstr(difference + "\n")) << command;
    EXPECT_THAT(r.err, HasSubstr("choose another --name")) << command;
  };
  refused(compare + "50ms", "step_times: \"10ms\" -> \"50ms\"");
  refused(compare + "10ms --set evaluation.samples=64",
          "modified: evaluation.samples: 1024 -> 64");
  Write("far.textproto",
        "name: \"far\"\nlink { rtt: \"100ms\" rate: \"8mbit\" }");
  refused(compare + "10ms",
          "scenario/links/0/bits_per_second: null -> 8000000");
  fs::remove(folder_.path() +
             "/runs/compare-r/far--rehearsed/dp-oadam-seed-1/conditions.json");
  refused(compare + "10ms", "place: none -> \"rehearsal\"");
}

// A peer sends as much in a large fleet as in a small one, and of a large fleet
// the first peers have logs.
TEST_F(Rehearse, APeerOfAThousandSendsWhatOneOfFiftyDoes) {
  const auto bytes_of_a_peer = [this](int peers) {
    const std::string out = absl::StrCat(folder_.path(), "/of-", peers);
    Summary(absl::StrCat("--out ", out, " --set peers=", peers,
                         " --set rounds=10 --set mixing.graph=random-regular "
                         "--set mixing.degree=4 "
                         "--set game.synthetic.parameters=200"));
    const auto network = ordered_json::parse(ReadAll(out + "/network.json"));
    double bytes = 0;
    for (const auto& link : network["links"]) {
      bytes += link["bytes"].get<double>();
    }
    EXPECT_EQ(network["links"].size(), 4 * peers);
    EXPECT_TRUE(fs::exists(
        absl::StrCat(out, "/peer-", std::min(peers, 200), "/metrics.jsonl")));
    EXPECT_FALSE(fs::exists(out + "/peer-201"));
    return bytes / peers;
  };
  const double of_fifty = bytes_of_a_peer(50);
  EXPECT_NEAR(bytes_of_a_peer(1000) / of_fifty, 1, 0.02);
}

// A join storm, the loss of a tenth at once and a dead service: the fleet
// settles after each, and trains on while the service is down.
TEST_F(Rehearse, AFleetSettlesAfterEvents) {
  Summary(
      "--set peers=100 --set rounds=800 --set mixing.graph=random-regular "
      "--set mixing.degree=4 --set game.synthetic.parameters=200 "
      "--at '5s join 50' --at '15s lose 15' --at '30s service-down 6s'");
  const auto events =
      ordered_json::parse(ReadAll(folder_.path() + "/runs/r/events.json"));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["event"], "5s join 50");
  EXPECT_EQ(events[0]["peers"], 150);
  EXPECT_EQ(events[1]["peers"], 135);
  EXPECT_EQ(events[2]["peers"], 135);
  for (const auto& event : events) {
    EXPECT_LT(event["settled_after_s"], 10) << event;
    EXPECT_LT(event["round_before"], event["round_after"]) << event;
  }
  // A round takes 50 ms.
  EXPECT_GE(events[2]["round_after"].get<int>(),
            events[2]["round_before"].get<int>() + 100);
  const auto conditions =
      ordered_json::parse(ReadAll(folder_.path() + "/runs/r/conditions.json"));
  EXPECT_EQ(conditions["events"].size(), 3u);
  EXPECT_TRUE(fs::exists(folder_.path() + "/runs/r/peer-150/metrics.jsonl"));
}

TEST_F(Rehearse, EventsAfterTheEndAreReported) {
  const Result r =
      Run("lab --rehearse --scenario far.textproto --config c.textproto "
          "--at '1h join 1'");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("after 1 of 1 events; give it more rounds"));
}

TEST_F(Rehearse, AMissingOrWrongOptionIsNamed) {
  Write("gan.textproto", "name: \"g\" peers: 4");
  Write("q.textproto", "name: \"q\" game { quadratic { dimension: 64 } }");
  Write("two.textproto", "name: \"two\" hosts: 2 link { rtt: \"1ms\" }");
  const std::string lab = "lab --rehearse --scenario far.textproto --config ";
  const struct {
    std::string command, says;
  } wrong[] = {
      {lab + "gan.textproto", "--steps-of a run"},
      {lab + "gan.textproto --step-time 40ms", "--parameters"},
      {lab + "c.textproto --step-time 40", "with its unit"},
      {lab + "gan.textproto --steps-of nowhere", "--steps-of: nowhere: not a"},
      {lab + "c.textproto --step-time 1ms --steps-of x", "give one"},
      {lab + "c.textproto --resume", "no checkpoints"},
      {"lab --scenario far.textproto --config c.textproto --step-time 1ms",
       "are of --rehearse"},
      {"lab --scenario far.textproto --config c.textproto --at '1s join 1'",
       "are of --rehearse"},
      {lab + "c.textproto --at 'soon join 1'", "30s join 1000"},
      {lab + "c.textproto --at '1s lose 3'", "leaves fewer than 2 of 4 peers"},
      {lab + "c.textproto --at '1s join 1' --set algorithm=cp-oadam "
             "--set mixing.overlap_steps=0",
       "takes no peers under way"},
      {"lab --rehearse --scenario far.textproto", "exactly one of"},
      {"lab --rehearse --scenario two.textproto --config c.textproto",
       "2 hosts"},
      {"lab --scenario far.textproto --config c.textproto --set peers=201",
       "more than 200"},
      {"plan --scenario far.textproto --config c.textproto --set peers=201",
       "at most 200"},
      {"lab --rehearse --scenario far.textproto --config c.textproto "
       "--set peers=20000",
       "16384"},
      {"compare --config c.textproto --rehearse", "give --scenarios or --rtt"},
      {"compare --config q.textproto --rehearse --rtt 1ms",
       "how long does a step take"},
      {"compare --config gan.textproto --rehearse --rtt 1ms",
       "no networks are trained"},
  };
  for (const auto& w : wrong) {
    const Result r = Run(w.command);
    EXPECT_EQ(r.code, 2) << w.command << "\n" << r.err;
    EXPECT_THAT(r.err, HasSubstr(w.says)) << w.command;
  }
}

}  // namespace rehearse_command_test
}  // namespace gossamer
