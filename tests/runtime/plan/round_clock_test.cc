#include "runtime/plan/round_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "topology/mixing_schedule.h"

namespace gossamer {
namespace {

ScheduleRounds Rounds(const ScheduleSpec& spec, int size) {
  const auto made = MakeSchedule(spec, size, 1);
  EXPECT_TRUE(made.ok()) << made.status();
  return ScheduleRounds(**made);
}

ScheduleRounds Ring(int size) { return Rounds({.edges = ""}, size); }

LinkTimes Alike(int size, double latency, double seconds_per_byte) {
  LinkTimes links(size);
  for (LinkTimes::Link& link : links.links) link = {latency, seconds_per_byte};
  return links;
}

const AllReduceSchedule& AllReduceOf(const std::string& name) {
  for (const AllReduceSchedule& s : AllReduceSchedules()) {
    if (s.name == name) return s;
  }
  ADD_FAILURE() << name;
  return AllReduceSchedules()[0];
}

TEST(RoundClock, WithoutOverlapAddsUp) {
  // 40 ms of step, 100 ms of latency, 25 ms for 1000 bytes.
  const RoundTimes t = PredictRound(Alike(4, 0.1, 25e-6), Ring(4),
                                    {.step = 0.04, .bytes = 1000}, 0);
  EXPECT_NEAR(t.round, 0.165, 1e-9);
  EXPECT_NEAR(t.exchange, 0.125, 1e-9);
  EXPECT_NEAR(t.sent, 2000, 1e-9);
}

TEST(RoundClock, OverlapDividesTheExchangeUntilTheStepIsLonger) {
  const LinkTimes links = Alike(5, 0.1, 25e-6);
  const RoundCosts costs{.step = 0.04, .bytes = 1000};
  for (const auto& [h, round] : {std::pair(1, 0.125),
                                 {2, 0.0625},
                                 {3, 0.125 / 3},
                                 {4, 0.04},
                                 {8, 0.04}}) {
    EXPECT_NEAR(PredictRound(links, Ring(5), costs, h).round, round, 1e-4) << h;
  }
}

TEST(RoundClock, NoOverlapHidesBandwidth) {
  const RoundTimes t = PredictRound(Alike(3, 0.1, 70e-6), Ring(3),
                                    {.step = 0.04, .bytes = 1000}, 8);
  EXPECT_NEAR(t.round, 0.07, 1e-6);
}

TEST(RoundClock, CodingIsOnTopOfStepAndExchange) {
  const RoundCosts costs{.step = 0.04,
                         .encode_once = 0.002,
                         .encode_edge = 0.003,
                         .apply_edge = 0.004,
                         .bytes = 1000};
  // No network: 2 + 2 · 3 to encode, 40, 2 · 4 to apply.
  EXPECT_NEAR(PredictRound(LinkTimes(4), Ring(4), costs, 1).round, 0.056, 1e-9);
  // The last frame leaves after all encoding.
  EXPECT_NEAR(PredictRound(Alike(4, 0.1, 0), Ring(4), costs, 0).round,
              0.008 + 0.1 + 0.008 + 0.04, 1e-9);
}

TEST(RoundClock, OneSlowEdgeHoldsAllUp) {
  LinkTimes links = Alike(4, 0.01, 0);
  links(0, 1) = links(1, 0) = {.latency = 0.2};
  const RoundCosts costs{.step = 0.04, .bytes = 1};
  EXPECT_NEAR(PredictRound(links, Ring(4), costs, 0).round, 0.24, 1e-9);
  // The edge 0-2 is not in this ring, the edge 0-1 is not in the other.
  const ScheduleRounds other =
      Rounds({.graph = "edge-list", .edges = "0-2 2-1 1-3 3-0"}, 4);
  EXPECT_NEAR(PredictRound(links, other, costs, 0).round, 0.05, 1e-9);
}

// What one direction loses the other gains: of two peers that wait for each
// other, the mean of both directions counts.
TEST(RoundClock, DirectionsAverage) {
  LinkTimes links(2);
  links(0, 1).latency = 0.1;
  links(1, 0).latency = 0.3;
  EXPECT_NEAR(PredictRound(links, Ring(2), {.step = 0.04, .bytes = 1}, 0).round,
              0.24, 1e-3);
}

TEST(RoundClock, PairsSendHalfOfWhatARingSends) {
  const ScheduleRounds pairs =
      Rounds({.schedule = "random-matching", .edges = ""}, 6);
  const RoundTimes t =
      PredictRound(Alike(6, 0.1, 0), pairs, {.step = 0.04, .bytes = 1000}, 0);
  EXPECT_NEAR(t.round, 0.14, 1e-9);
  EXPECT_NEAR(t.sent, 1000, 1e-9);
}

TEST(RoundClock, AllReducesTakeTheirLatencies) {
  // Latency alone: as all_reduce_schedule.h says.
  const LinkTimes links = Alike(8, 0.1, 0);
  for (const auto& [name, latencies] : {std::pair("ring", 14),
                                        {"mesh", 2},
                                        {"all-gather", 1},
                                        {"recursive-doubling", 3},
                                        {"tree", 6},
                                        {"star", 2}}) {
    EXPECT_NEAR(PredictAllReduceRound(links, AllReduceOf(name), 800, 0.04),
                0.04 + 0.1 * latencies, 1e-9)
        << name;
  }
  EXPECT_EQ(FastestAllReduce(links, 800, 0.04).name, "all-gather");
}

TEST(RoundClock, AllReducesTakeTheirBytes) {
  // 1 ms for the 4 n = 4000 bytes of everything, on each link by itself.
  const LinkTimes links = Alike(4, 0, 1e-3 / 4000);
  const auto seconds = [&](const char* name) {
    return PredictAllReduceRound(links, AllReduceOf(name), 1000, 0.04) - 0.04;
  };
  EXPECT_NEAR(seconds("ring"), 6 * 0.25e-3, 1e-9);
  EXPECT_NEAR(seconds("mesh"), 2 * 0.25e-3, 1e-9);
  EXPECT_NEAR(seconds("all-gather"), 1e-3, 1e-9);
  EXPECT_NEAR(seconds("recursive-doubling"), 2e-3, 1e-9);
  EXPECT_EQ(FastestAllReduce(links, 1000, 0.04).name, "mesh");
}

TEST(RoundClock, PartsOfAnAllReduceHideALatency) {
  // A quarter of the vector takes 0.2 s on a link: each half of a mesh does.
  const LinkTimes links = Alike(4, 0.05, 0.2 / 1600);
  const auto seconds = [&](const char* name) {
    return PredictAllReduceRound(links, AllReduceOf(name), 1600, 0.04) - 0.04;
  };
  EXPECT_NEAR(seconds("mesh"), 2 * 0.2 + 2 * 0.05, 1e-9);
  EXPECT_NEAR(seconds("mesh/4"), 2 * 0.2 + 0.05, 1e-9);
  EXPECT_LT(seconds("ring/4"), seconds("ring"));
  EXPECT_EQ(FastestAllReduce(links, 1600, 0.04).name, "mesh/4");
}

}  // namespace
}  // namespace gossamer
