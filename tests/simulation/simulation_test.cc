// A seed is repeatable, ends, and does what it is drawn to do: every codec,
// graph, overlap and phase is met, and seeds that once found a bug stay sound.

#include "tests/simulation/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/player_codecs.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/optim/local_step.h"
#include "tests/algorithms/compress/gradient_fleet.h"
#include "tests/simulation/composition.h"
#include "topology/mixing_schedule.h"
#include "topology/view.h"

namespace gossamer::simulation {
namespace simulation_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Simulation, TheSameSeedGivesTheSameTrace) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Scenario scenario = DrawScenario(seed);
    std::vector<std::string> lines;
    const Outcome one = Simulate(scenario);
    const Outcome two = Simulate(
        scenario, [&](const std::string& line) { lines.push_back(line); });
    EXPECT_THAT(one.violation, IsEmpty());
    EXPECT_EQ(one.trace_hash, two.trace_hash) << Describe(scenario);
    EXPECT_EQ(one.events, two.events);
    EXPECT_GT(lines.size(), 10u);
    hashes.insert(one.trace_hash);
  }
  EXPECT_EQ(hashes.size(), 8u) << "seeds differ";
}

// A loop that passes no time is found by counting events, since no clock shows
// it.
TEST(Simulation, EndsWithinSoManyEvents) {
  Scenario scenario = DrawScenario(3);
  const uint64_t events = Simulate(scenario).events;
  scenario.max_events = events;
  EXPECT_THAT(Simulate(scenario).violation, IsEmpty());
  scenario.max_events = events - 1;
  const Outcome cut = Simulate(scenario);
  EXPECT_THAT(cut.violation, HasSubstr("does not end within"));
  EXPECT_EQ(cut.events, events);
}

// Seeds that found bugs, each one in thousands.  They are kept for as long as
// draws stay what they are.
TEST(Simulation, SeedsThatFoundSomethingOnce) {
  for (const uint64_t seed :
       {931,       2448,     2577,     3078,      4618,      4631,
        20602,     41703,    44699,    50614,     50879,     56131,
        56141,     59122,    60313,    205,       101069,    312097,
        450988,    452336,   500780,   501014,    501134,    502478,
        856598,    1050261,  1156558,  2052882,   2057772,   3000791,
        3001104,   2003605,  2007102,  2008830,   2010524,   2011488,
        2011611,   2014957,  2019125,  4011278,   5004382,   5055425,
        5055617,   93,       361,      399,       5083324,   5083857,
        1299,      30005046, 30011209, 30023405,  30033042,  30097977,
        50006090,  90002408, 90006334, 200005635, 200048364, 200061651,
        200062082, 200077117}) {
    EXPECT_THAT(Simulate(DrawScenario(seed)).violation, IsEmpty()) << seed;
  }
}

// The outcome must not depend on the process: on no order of addresses, on no
// state that outlives a seed.
TEST(Simulation, SeedsDoNotKnowOfEachOther) {
  constexpr uint64_t kSeeds = 40;
  std::vector<uint64_t> forwards, backwards;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    forwards.push_back(Simulate(DrawScenario(seed)).trace_hash);
  }
  for (uint64_t seed = kSeeds; seed >= 1; --seed) {
    backwards.push_back(Simulate(DrawScenario(seed)).trace_hash);
  }
  std::ranges::reverse(backwards);
  EXPECT_EQ(forwards, backwards);
}

// Small models round nothing unless options say so, so the test looks for
// rounding too.
TEST(Simulation, EveryCodecIsDrawnAndRounds) {
  std::map<std::string, int> codecs, methods, rounding;
  int of_players = 0, seldom = 0;
  const auto base = [](const std::string& name) {
    return name.substr(0, name.find(':'));
  };
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Scenario s = DrawScenario(seed);
    const auto game =
        QuadraticGame::Create({.dimension = s.dimension}, 0, 2, 1);
    const ParameterLayout& layout = (*game)->layout();
    const size_t halves = sizeof(uint16_t) * layout.size();
    if (s.centralized()) {
      ++methods[base(s.gradient_codec)];
      if (base(s.gradient_codec) != "qsgd") continue;
      const auto method = GradientCompressor::Create(s.gradient_codec, layout);
      ASSERT_TRUE(method.ok()) << Describe(s) << method.status();
      // A method reads its gradient until it has contributed.
      const std::vector<float> gradient(layout.size(), 1.0f);
      (*method)->Begin({.step = 0, .rank = 0, .size = 2}, gradient);
      rounding["gradients qsgd"] +=
          (*method)->Contribute({}, {}).size() < halves;
      continue;
    }
    const auto codec = Codec::Create(s.codec, layout);
    ASSERT_TRUE(codec.ok()) << Describe(s) << codec.status();
    if (NamesPlayers(s.codec)) {
      ++of_players;
      seldom += s.codec.find(" every ") != std::string::npos;
      continue;
    }
    ++codecs[base(s.codec)];
    rounding[base(s.codec)] +=
        (*codec)->parts() > 1 ||
        (*codec)->EncodedSize((*codec)->format()) < halves;
  }
  for (const std::string_view name : Codec::Names()) {
    EXPECT_GT(codecs[std::string(name)], 0) << name;
    if (name.starts_with("dense-")) continue;
    EXPECT_GT(rounding[std::string(name)], 0) << name;
  }
  for (const std::string_view name : GradientCompressor::Names()) {
    EXPECT_GT(methods[std::string(name)], 0) << name;
  }
  EXPECT_EQ(rounding["gradients qsgd"], methods["qsgd"]);
  EXPECT_GT(of_players, 50);
  EXPECT_GT(seldom, 30);
}

// The rare graphs and overlaps are among them.
TEST(Simulation, EveryGraphAndOverlapIsDrawn) {
  std::map<std::string, int> graphs;
  std::map<int, int> overlaps;
  int weighted = 0, late = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Scenario s = DrawScenario(seed);
    ++overlaps[s.overlap];
    if (IsTimeVarying(s.schedule.graph)) continue;
    ++graphs[s.schedule.graph];
    weighted += s.schedule.edges.find(':') != std::string::npos;
    late += s.schedule.graph == "erdos-renyi" && s.late > 0;
  }
  for (const char* const graph :
       {"ring", "torus", "random-regular", "erdos-renyi", "complete", "star",
        "hypercube", "edge-list"}) {
    EXPECT_GT(graphs[graph], 4) << graph;
  }
  EXPECT_GT(weighted, 4);
  EXPECT_GT(late, 1);
  for (int h = kAutoOverlap; h <= kMaxOverlap; ++h) {
    EXPECT_GT(overlaps[h], 4) << h;
  }
}

// The steps of a run by phase of LGC, and the times that it fell back.
struct PhasesSeen {
  int learning = 0, coded = 0;  // steps of each phase
  int fell_back = 0;
};

// Returns the phases of the first rounds that a scenario's fleet would have
// without faults.
PhasesSeen PhasesOf(const Scenario& s) {
  std::vector<std::unique_ptr<Game>> games;
  std::vector<std::unique_ptr<LocalStep>> steps;
  for (int r = 0; r < s.peers; ++r) {
    games.push_back(MakeGame(s, r));
    steps.push_back(*LocalStep::Create(
        {.generator = s.optimizer, .discriminator = s.optimizer},
        games[r].get()));
  }
  GradientFleet fleet(s.gradient_codec, games[0]->layout(), s.peers,
                      s.all_reduce == "auto" ? "" : s.all_reduce);
  PhasesSeen seen;
  bool coded = false;
  while (fleet.step() < s.fault_rounds) {
    GradientFleet::Vectors g;
    for (int r = 0; r < s.peers; ++r) {
      EXPECT_TRUE(
          steps[r]->Gradient(fleet.step(), RngKey(r).Fold(fleet.step())).ok());
      const auto own = games[r]->gradients();
      g.emplace_back(own.begin(), own.end());
    }
    const uint64_t step = fleet.step();
    const auto mean = fleet.Step(g);
    for (auto& local : steps) local->Apply(step, step + 1, mean);
    // The counters say which phase it is and from which step it counts.
    const uint64_t change = fleet.Save(0).counters["phases.change"];
    if (fleet.step() < change >> 1) continue;
    const bool now_coded = (change & 1) != 0;
    seen.fell_back += coded && !now_coded;
    coded = now_coded;
    ++(coded ? seen.coded : seen.learning);
  }
  return seen;
}

// A draw of LGC is worth its time only if codes travel in some seeds and fail
// in others.
TEST(Simulation, LearnedGradientsGoThroughTheirPhases) {
  std::map<std::string, PhasesSeen> methods;
  std::set<std::string> schedules;
  int fell_back = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Scenario s = DrawScenario(seed);
    if (!s.gradient_codec.starts_with("lgc")) continue;
    schedules.insert(s.all_reduce);
    const PhasesSeen seen = PhasesOf(s);
    PhasesSeen& all = methods[s.gradient_codec];
    all.learning += seen.learning;
    all.coded += seen.coded;
    fell_back += seen.fell_back;
  }
  EXPECT_EQ(methods.size(), 3u);
  for (const auto& [name, seen] : methods) {
    EXPECT_GT(seen.learning, 20) << name;
    EXPECT_GT(seen.coded, 20) << name;
  }
  EXPECT_GT(fell_back, 5);
  EXPECT_GE(schedules.size(), 4u);
}

TEST(Simulation, ScenariosAreWithinTheirBounds) {
  double peers = 0;
  int reads_fail = 0;
  constexpr int kSeeds = 2000;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Scenario s = DrawScenario(static_cast<uint64_t>(seed));
    peers += s.peers;
    reads_fail += s.swarm.read_error > 0;
    EXPECT_GE(s.peers, kMinScenarioPeers);
    EXPECT_LE(s.peers, kMaxScenarioPeers);
    EXPECT_LE((s.tracked ? 4 : 2) * s.dimension, kMaxScenarioParameters);
    const bool late = s.overlap < 0 || s.overlap > 1;
    EXPECT_FALSE(s.tracked && late && s.optimizer.learning_rate > 0.011);
    EXPECT_TRUE(MakeSchedule(s.schedule, s.peers, s.seed).ok()) << Describe(s);
  }
  EXPECT_GT(peers / kSeeds, 8);
  EXPECT_LT(peers / kSeeds, 12);
  EXPECT_GT(reads_fail, kSeeds / 10);
}

}  // namespace simulation_test
}  // namespace gossamer::simulation
