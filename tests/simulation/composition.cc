#include "tests/simulation/composition.h"

#include "algorithms/game/bilinear_game.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/method/registry.h"
#include "tests/simulation/member_watch.h"

namespace gossamer::simulation {

SimOptions NetworkOf(const Scenario& s) {
  SimOptions options;
  options.seed = s.seed;
  options.link = s.link;
  options.redial_delay = s.interval() / 2;
  options.keepalive = 5 * s.interval();
  options.double_dial = s.double_dial;
  return options;
}

SimServiceOptions ServiceOf(const Scenario& s, FaultCounts* faults) {
  SimServiceOptions options;
  options.fleet.run_id = "sim";
  options.fleet.expected = s.peers - s.late;
  options.fleet.elastic = !s.centralized();
  options.fleet.schedule = s.schedule;
  options.fleet.seed = s.seed;
  options.fleet.overlap_steps = s.overlap;
  options.fleet.heartbeat = s.heartbeat;
  options.fleet.lease = s.lease;
  options.latency = s.link.latency;
  if (faults != nullptr) {
    options.on_fault = [faults](std::string_view fault) {
      ++(*faults)[std::string(fault)];
    };
  }
  options.observer = std::make_shared<MemberWatch>(s.lease);
  options.seed = s.seed;
  return options;
}

namespace {

std::unique_ptr<Game> MakePlainGame(const Scenario& s, int rank) {
  if (s.game == "bilinear") {
    return *BilinearGame::Create({.dimension = s.dimension, .noise = s.noise},
                                 s.seed);
  }
  return *QuadraticGame::Create({.dimension = s.dimension,
                                 .noise = s.noise,
                                 .heterogeneity = s.heterogeneity},
                                rank, s.peers, s.seed);
}

}  // namespace

std::unique_ptr<Game> MakeGame(const Scenario& s, int rank) {
  std::unique_ptr<Game> game = MakePlainGame(s, rank);
  if (!s.tracked) return game;
  return FindMethod("gradient-tracking")->game(std::move(game));
}

}  // namespace gossamer::simulation
