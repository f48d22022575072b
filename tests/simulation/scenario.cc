#include "tests/simulation/scenario.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/compress/player_codecs.h"
#include "algorithms/method/registry.h"
#include "tests/simulation/draws.h"
#include "tests/simulation/nccl_faults.h"
#include "tests/simulation/rare_mixing.h"
#include "topology/view.h"

namespace gossamer::simulation {
namespace {

bool PowerOfTwo(int n) { return (n & (n - 1)) == 0; }

void DrawFleet(Scenario& s, Draws d) {
  // Most fleets are small: an exponential tail of mean 5 above the least.
  const double tail = -5 * std::log(1 - d.Between(0, 1));
  s.peers =
      std::min(kMaxScenarioPeers, kMinScenarioPeers + static_cast<int>(tail));
  if (d.Chance(0.01)) s.peers = d.Int(kMinScenarioPeers, kMaxScenarioPeers);
  std::string schedule = d.Of<const char*>(
      {"fixed", "fixed", "permuted-ring", "permuted-ring", "random-matching"});
  s.schedule.graph = d.Of<const char*>(
      {"ring", "ring", "torus", "complete", "star", "random-regular"});
  if (PowerOfTwo(s.peers) && d.Chance(0.5)) {
    if (d.Chance(0.5)) {
      schedule = "one-peer-exponential";
    } else {
      s.schedule.graph = "hypercube";
    }
  }
  if (schedule != "fixed") s.schedule.graph = schedule;
  // A large ring would need too many rounds, which grow with its square.
  if (s.peers > 16 && schedule == "fixed") {
    s.schedule.graph = d.Of<const char*>({"torus", "random-regular"});
  }
  if (s.schedule.graph == "random-regular" && s.peers % 2 != 0) {
    s.schedule.degree = 4;
  }
  s.codec = d.Of<const char*>({"innov-int4", "innov-int4", "innov-int8",
                               "diff-int8", "innov-lm2", "innov-sign",
                               "dense-f32", "dense-bf16", "auto"});
  s.overlap = d.Of({0, 1, 1, 1, 2, 3, kAutoOverlap});
  if (s.overlap == 0) {
    s.step_then_mix = d.Chance(0.3);
    if (d.Chance(0.3)) s.mixing_rounds = d.Int(2, 3);
  }
  s.deadline.kind =
      d.Of({DeadlinePolicy::Kind::kNone, DeadlinePolicy::Kind::kAdaptive,
            DeadlinePolicy::Kind::kAdaptive, DeadlinePolicy::Kind::kFixed});
  s.deadline.fixed = absl::Milliseconds(d.Int(20, 500));
}

// Two sites of at least two peers each.
void DrawSites(Scenario& s, Draws d) {
  if (!d.Chance(0.06)) return;
  const int near = d.Int(2, s.peers - 2);
  s.schedule = ScheduleSpec{};
  s.schedule.graph = "locality-skewed";
  s.schedule.sites =
      absl::StrCat("here:1-", near, " there:", near + 1, "-", s.peers);
  s.schedule.variance_budget = d.Between(0.1, 2);
}

void DrawTraining(Scenario& s, Draws d) {
  s.game = d.Of<const char*>({"quadratic", "quadratic", "bilinear"});
  s.dimension = d.Of({4, 8, 8, 16, 16, 32, 64, kMaxScenarioParameters / 2});
  if (s.peers > 24) s.dimension = std::min(s.dimension, 16);
  s.noise = d.Of({0.0, 0.1});
  s.heterogeneity = d.Of({0.1, 0.5});
  s.optimizer.name = d.Of<const char*>({"oadam", "ogda", "osg"});
  s.optimizer.learning_rate = s.optimizer.name == "oadam" ? 1e-2 : 5e-2;
  s.steps_per_round = d.Of({1, 1, 1, 2});
  s.fault_rounds = static_cast<uint64_t>(d.Int(20, 80));
  s.checkpoint_every =
      d.Chance(0.8) ? static_cast<uint64_t>(d.Int(3, 25)) : uint64_t{0};
  s.checkpoints_kept = d.Int(1, 3);
}

// Draws one of the methods of algorithms/method, as far as FindConflicts of a
// configuration allows.
void DrawMethod(Scenario& s, Draws d) {
  if (d.Chance(0.1)) {
    s.codec = d.Of<const char*>({"innov-topk", "power-gossip"});
    // An exchange begins where the last one ended.
    if (s.codec == "power-gossip" && (s.overlap < 0 || s.overlap > 1)) {
      s.overlap = 1;
    }
  } else if (!IsTimeVarying(s.schedule.graph) && d.Chance(0.1)) {
    s.optimizer.name = "cold";
    s.optimizer.make = OwnRule(s.optimizer.name);
    s.codec = d.Of<const char*>({"innov-int8", "innov-int4", "dyna"});
    s.overlap = 0;
    s.mixing_rounds = 1;
    s.steps_per_round = 1;
    s.step_then_mix = true;
    // Only curvature damps the dual, and a calm game has none: late corrections
    // would swing it ever higher.
    s.deadline.kind = DeadlinePolicy::Kind::kNone;
  } else if (d.Chance(0.08)) {
    s.tracked = true;
    s.codec = d.Of<const char*>({"innov-int8", "innov-int4", "innov-lm2"});
    s.dimension = std::min(s.dimension, kMaxScenarioParameters / 4);
  }
}

// Models of 512 parameters have no quantized segment unless the option asks for
// it.
void DrawQuantization(Scenario& s, Draws d) {
  if (!d.Chance(0.3) || s.codec.starts_with("dense")) return;
  s.quantized = true;
  s.dimension = d.Of({16, 64, kMaxScenarioParameters / 4});
  if (s.peers > 24) s.dimension = 16;
  const bool splits = s.codec != "auto" && s.codec != "dyna" &&
                      s.codec != "power-gossip" && s.dimension > 64 &&
                      s.optimizer.name != "cold";
  s.codec += ":least=16";
  if (splits && d.Chance(0.3)) s.codec += ",fragments=2";
}

void DrawTimes(Scenario& s, Draws d) {
  s.step_time = absl::Milliseconds(d.Of({20, 50, 50, 200}));
  s.step_jitter = d.Of({0.0, 0.1, 0.5});
  s.link.latency = s.step_time * d.Of({0.01, 0.1, 0.3, 1.0, 3.0});
  s.link.jitter = d.Of({0.0, 0.5, 2.0});
  s.double_dial = d.Of({0.0, 0.0, 0.2});
  if (d.Chance(0.15) && s.deadline.kind != DeadlinePolicy::Kind::kNone) {
    s.slowness = d.Of({2.0, 6.0});
  }
  s.heartbeat = s.interval() * d.Int(2, 10);
  // The lease is longer than the 5 s after which a client that has lost the
  // service tries again.
  s.lease = absl::Seconds(d.Int(12, 30));
  s.suspect_after = absl::Seconds(d.Int(1, 5));
}

void DrawFaults(Scenario& s, Draws d) {
  Swarm& f = s.swarm;
  f.links.seed = s.seed;
  f.links.interval = s.interval();
  const auto rate = [&d](double share, double low, double high) {
    return d.Chance(share) ? d.Between(low, high) : 0.0;
  };
  f.links.break_rate = rate(0.5, 0.005, 0.1);
  f.links.longest_closed = d.Int(0, 20);
  f.links.stall_rate = rate(0.4, 0.005, 0.05);
  f.links.shortest_stall = d.Int(1, 5);
  f.links.longest_stall = f.links.shortest_stall + d.Int(0, 20);
  f.links.freeze_rate = rate(0.3, 0.002, 0.02);
  f.links.shortest_freeze = d.Int(1, 20);
  f.links.longest_freeze = f.links.shortest_freeze + d.Int(0, 60);
  f.flapping = d.Chance(0.2) ? d.Int(2, 8) : 0;
  f.partition_rate = rate(0.2, 0.005, 0.03);
  f.longest_partition = d.Int(5, 60);
  f.chaos.duplicate = rate(0.25, 0.01, 0.2);
  if (s.deadline.kind != DeadlinePolicy::Kind::kNone) {
    f.chaos.reorder = rate(0.15, 0.005, 0.05);
    f.chaos.lose = rate(0.15, 0.002, 0.02);
  }
  f.crash_rate = rate(0.5, 0.001, 0.02);
  f.longest_downtime = d.Int(1, 60);
  f.power_loss = d.Of({0.0, 0.5, 1.0});
  f.new_disk = d.Of({0.0, 0.0, 0.1});
  f.outage_rate = rate(0.2, 0.005, 0.02);
  f.disk_error = rate(0.25, 0.01, 0.2);
  f.clock_jump = d.Of({0.0, 0.0, 2.0, 1e4});
  f.clock_drift = d.Of({0.0, 0.0, 0.001, 0.05});
  f.service_crash_rate = rate(0.3, 0.005, 0.03);
  f.longest_service_downtime = d.Int(1, 100);
  f.service_old_disk = d.Of({0.0, 0.5});
  f.service_disk_error = rate(0.15, 0.05, 0.3);
  f.control_loss = rate(0.3, 0.02, 0.3);
  f.fleet_stop = d.Chance(0.15);
}

void DrawControl(Scenario& s, Draws d) {
  Swarm& f = s.swarm;
  if (d.Chance(0.25)) f.service_cut_rate = d.Between(0.005, 0.03);
  f.longest_service_cut = d.Int(5, 120);
  if (d.Chance(0.15)) f.storm_rate = d.Between(0.003, 0.01);
  f.moves = d.Chance(0.3) || f.storm_rate > 0;
}

// The radius is short enough to shorten corrections while peers are apart.
void DrawClipping(Scenario& s, Draws d) {
  if (d.Chance(0.2)) s.clip_radius = d.Between(0.01, 0.3);
  if (s.optimizer.name == "cold") s.clip_radius = 0;
}

void DrawSickness(Scenario& s, Draws d) {
  if (d.Chance(0.15)) s.swarm.spoil_rate = d.Between(0.0005, 0.005);
}

// A fleet without faults of links.
Swarm CalmLinks(const Scenario& s) {
  Swarm f;
  f.links.break_rate = f.links.stall_rate = f.links.freeze_rate = 0;
  f.links.interval = s.interval();
  return f;
}

void DrawTwins(Scenario& s, Draws d) {
  if (d.Chance(0.15)) s.swarm.twin_rate = d.Between(0.0005, 0.003);
}

// A fleet whose only disturbance is members that come and go in good order.
void DrawPoliteness(Scenario& s, Draws d) {
  if (!d.Chance(0.05)) return;
  s.polite = true;
  s.slowness = 1;
  s.swarm = CalmLinks(s);
  s.swarm.leave_rate = d.Between(0.005, 0.02);
}

// A service that is away for long while now and then a peer dies and comes back
// to the address that it had.  Otherwise too few peers would train meanwhile.
void DrawLongOutages(Scenario& s, Draws d) {
  if (s.polite || !d.Chance(0.1)) return;
  const double power_loss = s.swarm.power_loss, new_disk = s.swarm.new_disk;
  s.swarm = CalmLinks(s);
  s.swarm.power_loss = power_loss;
  s.swarm.new_disk = new_disk;
  s.swarm.service_crash_rate = d.Between(0.05, 0.2);
  s.swarm.longest_service_downtime = 200;
  s.swarm.crash_rate = d.Between(0.04, 0.12) / s.peers;
  s.swarm.longest_downtime = d.Int(1, 10);
  s.checkpoint_every = static_cast<uint64_t>(d.Int(3, 8));
}

// Members that join and leave.
void DrawMembers(Scenario& s, Draws d) {
  if (d.Chance(0.3)) s.late = LateOf(s, d.Int(1, 2));
  if (d.Chance(0.3)) {
    s.swarm.leave_rate = d.Between(0.0005, 0.005);
  }
}

// Methods that need every message of the same members throughout bear faults of
// links, slow peers and the service, not deaths and departures.
void KeepMembers(Scenario& s) {
  s.overlap = 0;
  s.deadline.kind = DeadlinePolicy::Kind::kNone;
  s.clip_radius = 0;
  s.quantized = s.polite = false;
  s.late = 0;
  Swarm& f = s.swarm;
  f.chaos.reorder = f.chaos.lose = 0;
  f.crash_rate = f.outage_rate = f.storm_rate = f.leave_rate = f.spoil_rate = 0;
  f.twin_rate = 0;
  f.moves = false;
}

const char* DrawSums(Draws& d) {
  return d.Of<const char*>(
      {"auto", "ring", "star", "tree", "mesh", "all-gather"});
}

// The centralized baseline; its 512 parameters are compressed as one vector, or
// not at all.
void DrawBaseline(Scenario& s, Draws d) {
  if (!d.Chance(0.04)) return;
  KeepMembers(s);
  s.schedule = ScheduleSpec{};
  s.schedule.graph = "complete";
  s.codec = "dense-f32";
  s.mixing_rounds = 1;
  s.step_then_mix = s.tracked = false;
  if (s.optimizer.name == "cold") {
    s.optimizer.name = "ogda";
    s.optimizer.make = nullptr;
  }
  // A peer that cannot read its checkpoint when all resume ends the run.
  if (s.swarm.fleet_stop) s.swarm.disk_error = 0;
  s.gradient_codec = d.Of<const char*>(
      {"dense-f32", "qsgd", "top-k:rate=4,flat=1",
       "scalecom:rate=4,flat=1,beta=0.3", "scalecom:rate=4,flat=1,ahead=1",
       "adacomp:bin=8,flat=1", "adacomp:bin=8,flat=1,full=40",
       "scalecom:rate=4,flat=1,ahead=1,full=40"});
  if (s.gradient_codec == "qsgd") {
    s.gradient_codec += d.Of<const char*>(
        {":least=16", ":least=16,levels=1,norm=l2", ":least=16,coding=gamma"});
    s.dimension = std::max(s.dimension, 16);
  }
  const bool sums = s.gradient_codec == "dense-f32" ||
                    s.gradient_codec.starts_with("scalecom");
  s.all_reduce = sums ? DrawSums(d) : "all-gather";
}

// A share of the baselines has LGC with a linear coder.  It begins early, and
// one of the three often falls back.
void DrawLearned(Scenario& s, Draws d) {
  if (!s.centralized() || !d.Chance(0.25)) return;
  s.gradient_codec = d.Of<const char*>(
      {"lgc:rate=4,flat=1,full=5,learn=5,worst=0.9,again=4",
       "lgc:rate=2,flat=1,code=2,full=0,learn=3,worst=0.5",
       "lgc:rate=4,flat=1,full=5,learn=5,worst=0.9,again=4,server=1,novel=4"});
  s.dimension = std::max(s.dimension, 16);
  s.all_reduce = s.gradient_codec.find("server") != s.gradient_codec.npos
                     ? "all-gather"
                     : DrawSums(d);
}

void DrawChebyshev(Scenario& s, Draws d) {
  if (s.centralized() || s.tracked || s.optimizer.name == "cold" ||
      IsTimeVarying(s.schedule.graph) || !d.Chance(0.04)) {
    return;
  }
  KeepMembers(s);
  s.codec = d.Of<const char*>({"dense-f32", "dense-bf16"});
  s.chebyshev = true;
  s.mixing_rounds = d.Int(2, 4);
}

// A codec for one of the players, or exchanges in some of the rounds alone.
void DrawPlayers(Scenario& s, Draws d) {
  if (s.centralized() || s.tracked || s.chebyshev ||
      s.optimizer.name == "cold" || s.codec.starts_with("power-gossip") ||
      s.codec.ends_with("fragments=2") || !d.Chance(0.1)) {
    return;
  }
  if (d.Chance(0.7)) s.codec += "; discriminator=innov-int8";
  if (d.Chance(0.7)) absl::StrAppend(&s.codec, " every ", d.Of({2, 3, 4, 8}));
}

void DrawReplicaMemory(Scenario& s, Draws d) {
  if (s.centralized() || s.tracked || s.optimizer.name == "cold" ||
      NamesPlayers(s.codec)) {
    return;
  }
  if (d.Chance(0.1)) s.replica_edges = d.Int(1, 4);
}

// A fleet in which edges come and go with the rounds, as they do in large ones.
void DrawMostNeighbors(Scenario& s, Draws d) {
  if (s.centralized() || s.tracked || s.optimizer.name == "cold" ||
      NamesPlayers(s.codec) || s.replica_edges > 0) {
    return;
  }
  if (d.Chance(0.5)) s.max_neighbors = d.Int(2, s.peers);
}

// Read errors of a disk that answers when it is asked again.
void DrawReadErrors(Scenario& s, Draws d) {
  if (s.polite || !d.Chance(0.2)) return;
  // A peer that cannot read its checkpoint when all resume ends the run.
  if (s.centralized() && s.swarm.fleet_stop) return;
  s.swarm.read_error = d.Between(0.02, 0.3);
}

// Tracked gradients that come rounds late swing ever higher at rates that are
// stable without overlap, so a fleet with overlap gets a smaller rate.
void SlowTracking(Scenario& s) {
  if (!s.tracked || (s.overlap >= 0 && s.overlap <= 1)) return;
  s.optimizer.learning_rate = std::min(s.optimizer.learning_rate, 1e-2);
}

}  // namespace

absl::Duration Scenario::interval() const {
  return step_time * std::max(1, steps_per_round) + link.latency;
}

absl::Duration Scenario::TimeOfCompute() const {
  return step_time * (centralized() ? 1 : steps_per_round);
}

absl::Duration Scenario::LongestRound() const {
  // The sums of a ring go around twice, after its leader's message.
  const int hops =
      centralized() ? steps_per_round * (2 * peers + 1) : mixing_rounds;
  return 4 * slowness *
         (step_time * steps_per_round +
          hops * link.latency * (1 + link.jitter));
}

absl::Duration Scenario::LivenessLimit() const {
  return std::max(absl::Minutes(10), 500 * LongestRound());
}

uint64_t Scenario::rounds() const {
  constexpr uint64_t kNever = 1'000'000;
  return ends_by_stop ? kNever : fault_rounds + calm_rounds;
}

Scenario DrawScenario(uint64_t seed, bool nccl) {
  Scenario s;
  s.seed = seed;
  const RngKey key = RngKey(seed).Fold("scenario");
  DrawFleet(s, Draws(key.Fold("fleet")));
  DrawSites(s, Draws(key.Fold("sites")));
  DrawTraining(s, Draws(key.Fold("training")));
  DrawMethod(s, Draws(key.Fold("method")));
  DrawTimes(s, Draws(key.Fold("times")));
  DrawFaults(s, Draws(key.Fold("faults")));
  DrawMembers(s, Draws(key.Fold("members")));
  DrawControl(s, Draws(key.Fold("control")));
  DrawClipping(s, Draws(key.Fold("clipping")));
  DrawSickness(s, Draws(key.Fold("sickness")));
  DrawTwins(s, Draws(key.Fold("twins")));
  DrawQuantization(s, Draws(key.Fold("quantization")));
  DrawPoliteness(s, Draws(key.Fold("politeness")));
  DrawLongOutages(s, Draws(key.Fold("long outages")));
  DrawBaseline(s, Draws(key.Fold("baseline")));
  DrawLearned(s, Draws(key.Fold("learned")));
  DrawChebyshev(s, Draws(key.Fold("chebyshev")));
  DrawClockwork(s, Draws(key.Fold("clockwork")));
  DrawPlayers(s, Draws(key.Fold("players")));
  DrawReplicaMemory(s, Draws(key.Fold("replica memory")));
  DrawMostNeighbors(s, Draws(key.Fold("partners")));
  DrawReadErrors(s, Draws(key.Fold("read errors")));
  DrawRareGraph(s, Draws(key.Fold("rare graph")));
  DrawDeepOverlap(s, Draws(key.Fold("deep overlap")));
  SlowTracking(s);
  DrawNccl(s, Draws(key.Fold("nccl")), nccl);
  Swarm& f = s.swarm;
  if (s.clockwork) f.clock_drift = 0;
  f.service_lost_disk = Draws(key.Fold("lost disk")).Of({0.0, 0.0, 0.2, 1.0});
  const bool may_be_late =
      f.crash_rate > 0 || f.outage_rate > 0 || f.service_crash_rate > 0 ||
      f.control_loss > 0 || f.links.freeze_rate > 0 || f.leave_rate > 0 ||
      s.late > 0 || f.service_disk_error > 0 || f.service_cut_rate > 0 ||
      f.storm_rate > 0 || f.spoil_rate > 0 || f.twin_rate > 0;
  s.ends_by_stop = may_be_late || f.fleet_stop ||
                   s.deadline.kind != DeadlinePolicy::Kind::kNone;
  s.calm_rounds = !IsTimeVarying(s.schedule.graph) && s.peers > 8 ? 100 : 60;
  // Payloads meet by drawn coins, which may take many rounds.
  if (s.clockwork) s.calm_rounds = 150;
  return s;
}

}  // namespace gossamer::simulation
