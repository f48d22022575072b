#include "runtime/plan/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace gossamer {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

PlanRequest Request(int peers, double latency, double mbit) {
  PlanRequest request{.links = LinkTimes(peers),
                      .parameters = 100000,
                      .step_seconds = 0.04,
                      .codec_bytes_per_second = 1e12};
  for (LinkTimes::Link& link : request.links.links) {
    link = {.latency = latency, .seconds_per_byte = 8e-6 / mbit};
  }
  return request;
}

std::set<std::string> Names(const Plan& plan) {
  std::set<std::string> names;
  for (const Candidate& c : plan.candidates) names.insert(c.name);
  return names;
}

double Fastest(const Plan& plan) {
  double fastest = INFINITY;
  for (const Candidate& c : plan.candidates) {
    fastest = std::min(fastest, c.seconds_per_round);
  }
  return fastest;
}

TEST(Planner, FastNetworksNeedNoOverlapToSpeakOf) {
  const auto plan = MakePlan(Request(4, 1e-5, 100000));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Candidate& best = plan->candidates[0];
  EXPECT_TRUE(Hidden(best));
  EXPECT_LE(best.overlap, 1);
  EXPECT_EQ(best.name, "complete");  // nothing mixes better, and it is free
}

TEST(Planner, LatencyIsHiddenByTheLeastOverlapThatDoes) {
  // 100 ms one way and 40 ms steps.
  const auto plan = MakePlan(Request(4, 0.1, 1000));
  ASSERT_TRUE(plan.ok());
  const Candidate& best = plan->candidates[0];
  EXPECT_TRUE(Hidden(best));
  EXPECT_EQ(best.overlap, 3);
  EXPECT_NEAR(best.seconds_per_round, 0.04, 0.04 * kAlike);
}

TEST(Planner, StarvedLinksGetTheSmallestCodec) {
  const auto plan = MakePlan(Request(4, 0.001, 0.5));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->candidates[0].codec, "innov-sign");
  EXPECT_FALSE(Hidden(plan->candidates[0]));
  EXPECT_GT(plan->centralized.round, plan->candidates[0].seconds_per_round);
}

TEST(Planner, TheFirstIsFastAndClose) {
  for (double latency : {0.0, 0.02, 0.2}) {
    const auto plan = MakePlan(Request(6, latency, 20));
    ASSERT_TRUE(plan.ok());
    const Candidate& best = plan->candidates[0];
    const double limit = Fastest(*plan) / (1 - kAlike);
    EXPECT_LE(best.seconds_per_round, limit);
    for (const Candidate& c : plan->candidates) {
      if (c.seconds_per_round > limit) continue;
      EXPECT_LE(best.consensus_distance, c.consensus_distance * (1 + kAlike));
    }
  }
}

TEST(Planner, GraphsThatAreTheSameCountOnce) {
  // All links are alike: the ring as numbered is a best ring.  A torus of 5 is
  // a ring, and 5 is no power of two.
  const auto five = MakePlan(Request(5, 0.01, 100));
  ASSERT_TRUE(five.ok());
  EXPECT_EQ(Names(*five),
            (std::set<std::string>{"ring", "complete", "permuted-ring",
                                   "random-matching"}));
  EXPECT_EQ(five->candidates.size(), 4u * 5 * 9);
  const auto two = MakePlan(Request(2, 0.01, 100));
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(Names(*two), std::set<std::string>{"ring"});
  EXPECT_THAT(Names(*MakePlan(Request(8, 0.01, 100))),
              IsSupersetOf({"torus", "one-peer-exponential"}));
}

TEST(Planner, AFarPairIsLeftOutOfTheRing) {
  PlanRequest request = Request(4, 0.001, 1000);
  for (auto [a, b] : {std::pair(0, 1), {2, 3}}) {
    request.links(a, b).latency = request.links(b, a).latency = 0.3;
  }
  const auto plan = MakePlan(request);
  ASSERT_TRUE(plan.ok());
  const auto ring =
      std::ranges::find_if(plan->candidates, [](const Candidate& c) {
        return c.name == "best ring" && c.overlap == 0;
      });
  ASSERT_NE(ring, plan->candidates.end());
  EXPECT_EQ(ring->schedule.edges, "0-2 2-1 1-3 3-0");
  EXPECT_LT(ring->seconds_per_round, 0.05);
  EXPECT_THAT(
      ConfigurationOf(*ring),
      HasSubstr("  graph: \"edge-list\"\n  edges: \"0-2 2-1 1-3 3-0\"\n"));
}

TEST(Planner, PredictsOneAsInThePlan) {
  const PlanRequest request = Request(8, 0.05, 10);
  const auto plan = MakePlan(request);
  ASSERT_TRUE(plan.ok());
  for (size_t i : {size_t{0}, size_t{50}, plan->candidates.size() - 1}) {
    const Candidate& c = plan->candidates[i];
    const auto again = Predict(request, c);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->seconds_per_round, c.seconds_per_round);
    EXPECT_EQ(again->consensus_distance, c.consensus_distance);
    EXPECT_EQ(again->gamma, c.gamma);
  }
}

TEST(Planner, BytesAreThoseOfTheCodec) {
  const auto plan = MakePlan(Request(2, 0.01, 100));
  ASSERT_TRUE(plan.ok());
  for (const Candidate& c : plan->candidates) {
    if (c.codec != "dense-f32") continue;
    EXPECT_EQ(c.bytes_per_round, 400000 + 64);  // one neighbour, a header
  }
}

TEST(Planner, RefusesNonsense) {
  EXPECT_THAT(MakePlan(Request(1, 0, 1)).status().message(),
              HasSubstr("2 peers"));
  PlanRequest request = Request(3, 0.1, 1);
  request.links(0, 2).latency = -1;
  EXPECT_THAT(MakePlan(request).status().message(),
              HasSubstr("from 0 to 2 has a latency of -1 s"));
  request = Request(3, 0.1, 1);
  request.step_seconds = NAN;
  EXPECT_FALSE(MakePlan(request).ok());
  request.step_seconds = 0.1;
  request.parameters = 0;
  EXPECT_FALSE(MakePlan(request).ok());
  request.parameters = 1000;
  request.codec_bytes_per_second = 0;
  EXPECT_FALSE(MakePlan(request).ok());
  Candidate wanted;
  wanted.codec = "innov-int4";
  wanted.overlap = 9;
  EXPECT_FALSE(Predict(Request(3, 0.1, 1), wanted).ok());
}

}  // namespace
}  // namespace gossamer
