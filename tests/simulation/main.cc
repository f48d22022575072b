// The program fleet_swarm: the real code in virtual time under faults, seed by
// seed.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/mutex.h"
#include "algorithms/base/seeded_bug.h"
#include "nlohmann/json.hpp"
#include "runtime/base/command_line.h"
#include "runtime/base/steady_time.h"
#include "runtime/telemetry/progress.h"
#include "tests/simulation/crash_note.h"
#include "tests/simulation/simulation.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;
using simulation::Outcome;

constexpr char kExamples[] = R"(examples:
  fleet_swarm --seeds 2000
  fleet_swarm --from 5000 --seeds 100000 --jobs 8 --json
  fleet_swarm --from 1234 --seeds 1 --trace     # replays one seed

A seed draws a fleet (4 to 64 peers, method, graph, codec, overlap, deadlines)
and a swarm of faults (lost, repeated and reordered frames, partitions, flapping
links, slow and frozen peers, crashes, power cuts, disk errors, wrong clocks,
peers that join, leave, move or lose their parameters, a topology service that
dies, is out of reach or comes back with an old disk or none).  What must hold:
every correction has its opposite exactly once, epochs only grow, saved
checkpoints stay, memory is bounded, and once faults stop the fleet comes to one
mind.
Exit code 1 if any of it does not.  A signal that ends the program, of an
assertion, a crash or who has waited for long enough, first prints the line that
replays the seed, or those that are under way.

JSON keys: seeds, from, violations (a list of seed, what, replay), peer_rounds,
peer_rounds_per_second, events, corrections, lives, nccl_operations, seconds,
core_seconds (of all threads), core_seconds_per_seed, trace_hash (of all seeds
in order), faults (how often each kind has happened), distance_left (of the
consensus distance after the calm over that before it: seeds, median, p90, by
what mixing there can be held to: waits, peers wait for each other; coarse, so
do they, with codecs that leave out much; deadlines; clipped; small_steps).)";

// The interval between two lines of progress.
constexpr absl::Duration kProgressInterval = absl::Seconds(5);

struct Options {
  uint64_t seeds = 100;
  uint64_t from = 1;
  int jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  bool trace = false;
  bool json = false;
  bool nccl = false;
  std::string bug;  // name of the bug to plant
};

// A seed that violated an invariant.
struct Failure {
  uint64_t seed = 0;
  std::string what;
  std::string replay;  // the command
};

std::string Replay(uint64_t seed, const Options& options) {
  return absl::StrCat("fleet_swarm --from ", seed, " --seeds 1 --trace",
                      options.nccl ? " --nccl" : "",
                      options.bug.empty() ? "" : " --bug ", options.bug);
}

// The sums over all seeds that have been run.
struct Totals {
  uint64_t done = 0;
  uint64_t peer_rounds = 0;
  uint64_t events = 0;
  uint64_t corrections = 0;
  uint64_t incarnations = 0;
  uint64_t nccl_operations = 0;
  simulation::FaultCounts faults;
  std::map<std::string, std::vector<double>> left;  // Outcome::mixing
  std::map<uint64_t, uint64_t> hashes;              // by seed
  std::vector<Failure> failures;
};

// Runs the seeds on several threads; each takes the next one.
class Runner {
 public:
  explicit Runner(const Options& options)
      : options_(options), next_(options.from), started_(SteadyNow()) {}

  Totals Run() {
    std::vector<std::thread> threads;
    for (int i = 0; i < options_.jobs; ++i) {
      threads.emplace_back([this] { Work(); });
    }
    for (std::thread& thread : threads) thread.join();
    MutexLock lock(&mu_);
    std::ranges::sort(totals_.failures, {}, &Failure::seed);
    return totals_;
  }

 private:
  void Work() {
    CrashNote words;
    for (;;) {
      const uint64_t seed = next_++;
      if (seed - options_.from >= options_.seeds) return;
      std::function<void(const std::string&)> trace;
      if (options_.trace) {
        // Each line is flushed, since a seed may end in a crash.
        trace = [](const std::string& line) { std::cout << line << std::endl; };
      }
      words.Set(
          absl::StrCat("seed ", seed, "\n  replay: ", Replay(seed, options_)));
      Note(seed, Simulate(simulation::DrawScenario(seed, options_.nccl),
                          std::move(trace)));
    }
  }

  void Note(uint64_t seed, const Outcome& outcome) {
    MutexLock lock(&mu_);
    ++totals_.done;
    totals_.peer_rounds += outcome.peer_rounds;
    totals_.events += outcome.events;
    totals_.corrections += outcome.corrections;
    totals_.incarnations += outcome.incarnations;
    totals_.nccl_operations += outcome.nccl_operations;
    simulation::Add(outcome.faults, totals_.faults);
    if (!outcome.mixing.empty() && outcome.violation.empty() &&
        outcome.distance_before > 0) {
      totals_.left[std::string(outcome.mixing)].push_back(
          outcome.distance / outcome.distance_before);
    }
    totals_.hashes[seed] = outcome.trace_hash;
    if (options_.trace) {
      absl::PrintF(
          "seed %d: trace %016x, %d peer-rounds, %d events, distance "
          "%.3g, was %.3g, may be %.3g, %.1f s of virtual time\n",
          seed, outcome.trace_hash, outcome.peer_rounds, outcome.events,
          outcome.distance, outcome.distance_before, outcome.distance_bound,
          outcome.virtual_seconds);
    }
    if (!outcome.violation.empty()) {
      totals_.failures.push_back(
          {seed, outcome.violation, Replay(seed, options_)});
      std::cerr << "seed " << seed << ": " << outcome.violation
                << "\n  replay: " << totals_.failures.back().replay << "\n";
    }
    ShowProgress();
  }

  void ShowProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const absl::Time now = SteadyNow();
    if (now - shown_ < kProgressInterval ||
        now - started_ < kProgressInterval) {
      return;
    }
    shown_ = now;
    const absl::Duration left =
        (now - started_) * (static_cast<double>(options_.seeds) /
                                static_cast<double>(totals_.done) -
                            1);
    std::cerr << absl::StrFormat(
        "%d of %d seeds, %d violations, %.0f seeds/s, %s left\n", totals_.done,
        options_.seeds, totals_.failures.size(),
        static_cast<double>(totals_.done) /
            absl::ToDoubleSeconds(now - started_),
        HumanDuration(left));
  }

  const Options options_;
  std::atomic<uint64_t> next_;
  const absl::Time started_;
  Mutex mu_;
  absl::Time shown_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  Totals totals_ ABSL_GUARDED_BY(mu_);
};

uint64_t HashOf(const Totals& totals) {
  RngKey hash(0);
  for (const auto& [seed, trace] : totals.hashes) hash = hash.Fold(trace);
  return hash.Bits(0);
}

// Returns the smallest value that `share` of them do not exceed; needs at least
// one.
double QuantileOf(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

Json DistanceLeft(const Totals& totals) {
  Json json = Json::object();
  for (const auto& [mixing, left] : totals.left) {
    json[mixing] = {{"seeds", left.size()},
                    {"median", QuantileOf(left, 0.5)},
                    {"p90", QuantileOf(left, 0.9)}};
  }
  return json;
}

int RunSeeds(Options options) {
#ifdef GOSSAMER_SEEDED_BUGS
  PlantBug(options.bug);
#endif
  if (options.trace) options.jobs = 1;
  const absl::Time started = SteadyNow();
  const Totals totals = Runner(options).Run();
  const double seconds = absl::ToDoubleSeconds(SteadyNow() - started);
  const double rate = static_cast<double>(totals.peer_rounds) / seconds;
  const double core_seconds =
      static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  if (options.json) {
    Json json = {{"seeds", totals.done}, {"from", options.from}};
    json["violations"] = Json::array();
    for (const Failure& f : totals.failures) {
      json["violations"].push_back(
          {{"seed", f.seed}, {"what", f.what}, {"replay", f.replay}});
    }
    json["peer_rounds"] = totals.peer_rounds;
    json["peer_rounds_per_second"] = rate;
    json["events"] = totals.events;
    json["corrections"] = totals.corrections;
    json["lives"] = totals.incarnations;
    json["nccl_operations"] = totals.nccl_operations;
    json["seconds"] = seconds;
    json["core_seconds"] = core_seconds;
    json["core_seconds_per_seed"] =
        core_seconds / static_cast<double>(totals.done);
    json["trace_hash"] = absl::StrFormat("%016x", HashOf(totals));
    json["faults"] = totals.faults;
    json["distance_left"] = DistanceLeft(totals);
    std::cout << json.dump(2) << "\n";
  } else {
    absl::PrintF(
        "%d seeds from %d, %d violations; %d peer-rounds in %d incarnations, "
        "%.0f "
        "peer-rounds/s, %.1f s, %.3f core-seconds a seed; trace %016x\n",
        totals.done, options.from, totals.failures.size(), totals.peer_rounds,
        totals.incarnations, rate, seconds,
        core_seconds / static_cast<double>(totals.done), HashOf(totals));
  }
  return totals.failures.empty() ? 0 : 1;
}

int Main(int argc, char** argv) {
  Options options;
  Command program(
      {.name = "fleet_swarm",
       .about =
           "Runs the real code in virtual time under faults, seed by seed.",
       .footer = kExamples,
       .run = [&options] { return RunSeeds(options); }});
  program.AddOption("--seeds", &options.seeds, "how many",
                    {.show_default = true, .positive = true});
  program.AddOption("--from", &options.from, "the first seed",
                    {.show_default = true});
  program.AddOption("--jobs", &options.jobs, "at once",
                    {.show_default = true, .positive = true});
  program.AddOption("--trace", &options.trace,
                    "tell all that happens, one seed after the other");
  program.AddOption("--json", &options.json, "answer as JSON");
  program.AddOption("--nccl", &options.nccl,
                    "all peers are on GPUs and use NCCL");
#ifdef GOSSAMER_SEEDED_BUGS
  program.AddOption("--bug", &options.bug, "plant this bug first");
#endif
  return program.Run(argc, argv);
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) { return gossamer::Main(argc, argv); }
