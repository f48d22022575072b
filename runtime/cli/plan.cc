// gossamer plan: candidate compositions rehearsed over a network, side by side.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/game/game.h"
#include "runtime/base/proc_file.h"
#include "runtime/base/steady_time.h"
#include "runtime/cli/command.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/plan_candidates.h"
#include "runtime/cli/plan_report.h"
#include "runtime/cli/rehearse.h"
#include "runtime/config/compose.h"
#include "runtime/config/run_config.h"
#include "runtime/lab/scenario.h"
#include "runtime/telemetry/progress.h"
#include "runtime/telemetry/summary.h"
#include "topology/sites.h"

namespace gossamer {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(100);
constexpr absl::Duration kShowEvery = absl::Seconds(5);
// `auto` chooses by what peers report once a second of virtual time, so the
// earlier half of a rehearsal has three such seconds.
constexpr absl::Duration kEnough = absl::Seconds(6);
// These bound very long and very short steps: too few rounds show no choice of
// `auto`, many more show nothing new.
constexpr double kMinRounds = 100;
constexpr double kMaxRounds = 1000;

constexpr char kExamples[] = R"(examples:
  gossamer plan --scenario deploy/lab/three_continents.textproto \
      --config deploy/configs/synthetic.textproto --set peers=6
  gossamer plan --scenario deploy/lab/two_sites.textproto \
      --config deploy/configs/quickstart.textproto --set peers=16 \
      --steps-of runs/quickstart-1 --by bytes
  gossamer plan --scenario ours.textproto --config ours-training.textproto \
      --parameters 2258308 --step-time 40ms \
      --candidate "mixing.graph=torus,mixing.codec=innov-int8" \
      --candidate "mixing.graph=random-matching,mixing.overlap_steps=auto"

Rehearses every candidate as gossamer lab --rehearse does: the real peers,
codecs and service over the scenario's links, in virtual time.  gossamer measure
writes the scenario of a running fleet.  In place of networks it takes a
synthetic game of their size, so it predicts times, bytes, waiting and
consensus, but no scores of networks.

Without --candidate these are the graphs and schedules that the number of peers
allows (ring, torus, permuted-ring, random-matching, and locality-skewed where
the configuration has mixing.sites or the scenario regions), each with the
codecs dense-f32, innov-int8, innov-int4 and auto and with overlap_steps 0, 1
and auto; the configuration as it is; and cp-oadam to compare with, which is
never recommended.  What the configuration does not go together with is left
out, with the reason.

--by says what to sort by: rounds (a second, of the slowest peer), waiting (the
share of the peers' time), bytes (sent by a peer in a round), consensus (mean
squared distance of the peers from their mean) or score (of a closed-form game,
after the last round).  Of candidates within 3 % of the best the fastest come
first, then those closest together, then those that send least.

JSON keys: network, peers, hosts, parameters, step_times, rounds, by, warnings,
recommended (a candidate and its flags; null if none), candidates (name, set,
configured, baseline, rounds_per_second, waiting_share, exchange_seconds,
bytes_per_round, far_bytes_per_round (between sites, of all peers; null without
sites), consensus_distance, score (null of networks)), left_out (name, why).)";

struct Options {
  std::string scenario;
  std::string config;
  std::vector<std::string> set;
  std::vector<std::string> candidates;
  std::string by = "rounds";
  std::optional<uint64_t> rounds;
  std::optional<uint64_t> jobs;
  RehearseOptions rehearsal;
  bool json = false;
};

// A candidate with all that its rehearsal needs, and what came of it.
struct Rehearsed {
  PlanCandidate candidate;
  RunConfig config;
  bool configured = false;
  absl::StatusOr<PlanFigures> figures = absl::UnknownError("not rehearsed");
};

struct Plan {
  Scenario scenario;
  StepTimes steps;
  std::vector<int> site_of;  // by rank; empty: no sites
  std::vector<Rehearsed> candidates;
  PlanResult result;
};

uint64_t RoundsFor(const StepTimes& steps) {
  absl::Duration sum;
  for (const absl::Duration step : steps.by_rank[0]) sum += step;
  // The rounds take kEnough of virtual time by the first rank's steps.
  const double rounds = absl::FDivDuration(
      kEnough * static_cast<double>(steps.by_rank[0].size()), sum);
  return static_cast<uint64_t>(std::clamp(rounds, kMinRounds, kMaxRounds));
}

// Returns the configuration of a rehearsal with `changes`, before it is
// prepared.
absl::StatusOr<RunConfig> LoadChanged(const Options& options,
                                      const std::vector<std::string>& changes) {
  std::vector<std::string> set = options.set;
  set.insert(set.end(), changes.begin(), changes.end());
  GOSSAMER_ASSIGN_OR_RETURN(RunConfig config,
                            LoadRunConfig(options.config, set));
  // A rehearsal is a short run whose score is asked for once.
  config.mutable_step()->set_decay_from_round(0);
  config.mutable_evaluation()->set_every(0);
  return config;
}

// Gives `config` the base's size, and as many rounds.
absl::Status Shorten(const Plan& plan, RunConfig& config) {
  config.set_rounds(plan.result.rounds);
  RehearseOptions as_base;
  as_base.step_time = "1s";  // unused: all candidates have plan.steps
  if (plan.result.stand_in) as_base.parameters = plan.result.parameters;
  return PrepareRehearsal(as_base, config).status();
}

absl::Status AddCandidate(const Options& options, PlanCandidate candidate,
                          Plan& plan) {
  absl::StatusOr<RunConfig> config = LoadChanged(options, candidate.changes);
  absl::Status status = config.status();
  if (status.ok()) status = Shorten(plan, *config);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(candidate.name, ": ", status.message()));
  }
  // Two names may stand for one configuration, such as the one of the file: it
  // is rehearsed once.
  const uint64_t hash = ConfigurationHash(*config);
  for (Rehearsed& before : plan.candidates) {
    if (ConfigurationHash(before.config) != hash) continue;
    if (before.configured) before.candidate.name = candidate.name;
    return absl::OkStatus();
  }
  plan.candidates.push_back(
      {.candidate = std::move(candidate), .config = *std::move(config)});
  return absl::OkStatus();
}

void SetSites(const RunConfig& base, const std::string& sites, Plan& plan) {
  const absl::StatusOr<Sites> parsed = Sites::Parse(sites);
  // Sites that cannot be are refused with the configuration; here they only
  // split bytes.
  if (!parsed.ok()) return;
  plan.site_of = parsed->Of(FoundingMembers(static_cast<int>(base.peers())));
}

absl::StatusOr<Plan> MakePlan(const Options& options) {
  Plan plan;
  PlanResult& result = plan.result;
  GOSSAMER_ASSIGN_OR_RETURN(RunConfig base, LoadChanged(options, {}));
  // The question comes before PrepareRehearsal() puts the synthetic game in
  // place of networks.
  result.stand_in = base.game().has_gan() || options.rehearsal.parameters;
  GOSSAMER_ASSIGN_OR_RETURN(plan.steps,
                            PrepareRehearsal(options.rehearsal, base));
  GOSSAMER_ASSIGN_OR_RETURN(const std::unique_ptr<Game> game,
                            MakeClosedFormGame(base, /*shard=*/0));
  result.parameters = game->layout().size();
  result.rounds = options.rounds.value_or(RoundsFor(plan.steps));
  base.set_rounds(result.rounds);
  GOSSAMER_RETURN_IF_ERROR(ValidateRunConfig(base));
  plan.candidates.push_back(
      {.candidate = {.name = "as configured", .changes = {}},
       .config = base,
       .configured = true});
  uint32_t peers = base.peers();
  for (const std::string& text : options.candidates) {
    const absl::Status added =
        AddCandidate(options, ParseCandidate(text), plan);
    if (!added.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--candidate ", added.message()));
    }
    // The scenario has hosts for the largest candidate.
    peers = std::max(peers, plan.candidates.back().config.peers());
  }
  if (peers > kMaxLabHosts) {
    return absl::InvalidArgumentError(
        absl::StrCat(peers, " peers: plans are made of at most ", kMaxLabHosts,
                     "; gossamer lab --rehearse takes more"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(plan.scenario,
                            LoadScenario(options.scenario, peers));
  std::string sites = base.mixing().sites();
  if (sites.empty()) {
    sites = SitesOfRegions(plan.scenario, static_cast<int>(base.peers()));
  }
  SetSites(base, sites, plan);
  for (const Rehearsed& given : plan.candidates) {
    // A candidate that a person has given must be able to run; one of the usual
    // list is left out with the reason.
    const absl::Status status = CheckRehearsal(given.config, plan.scenario);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(given.candidate.name, ": ", status.message()));
  }
  if (options.candidates.empty()) {
    for (PlanCandidate& candidate : DefaultCandidates(base, sites)) {
      const std::string name = candidate.name;
      const absl::Status added =
          AddCandidate(options, std::move(candidate), plan);
      if (added.ok()) continue;
      const std::string why(added.message().substr(name.size() + 2));
      result.left_out.push_back({name, why});
    }
  }
  result.network = plan.scenario.name;
  for (uint32_t rank = 0; rank < base.peers(); ++rank) {
    result.hosts.push_back(plan.scenario.hosts[rank].name);
  }
  result.config = options.config;
  result.step_times = plan.steps.source;
  result.goal = options.by;
  result.warnings = LeftOutOfRehearsals(plan.scenario);
  return plan;
}

// Returns the share of the time that peers wait, in the later half of every
// peer's rounds.
double WaitingShare(const std::vector<std::vector<RoundMetrics>>& by_rank) {
  double waiting = 0, time = 0;
  for (const std::vector<RoundMetrics>& rounds : by_rank) {
    // The earlier half has connections being made, and `auto` before its
    // choice.
    const size_t half = rounds.size() / 2;
    if (rounds.size() < 2) continue;
    for (size_t k = half + 1; k < rounds.size(); ++k) {
      waiting += rounds[k].seconds_waiting;
    }
    time +=
        absl::ToDoubleSeconds(rounds.back().finished - rounds[half].finished);
  }
  return time > 0 ? waiting / time : 0;
}

absl::StatusOr<PlanFigures> Figures(const Plan& plan, const RunConfig& config,
                                    absl::FunctionRef<bool(uint64_t)> go_on) {
  GOSSAMER_ASSIGN_OR_RETURN(
      const RehearsedRounds rehearsed,
      RehearseRounds(config, plan.scenario, plan.steps, go_on));
  const RunSummary summary = Summarize(rehearsed.by_rank);
  double sent = 0, far = 0;
  const size_t peers = rehearsed.bytes.size();
  for (size_t i = 0; i < peers; ++i) {
    for (size_t j = 0; j < peers; ++j) {
      const auto bytes = static_cast<double>(rehearsed.bytes[i][j]);
      sent += bytes;
      // A candidate may have more peers than the base, whose sites are not
      // known.
      const bool known = i < plan.site_of.size() && j < plan.site_of.size();
      if (known && plan.site_of[i] != plan.site_of[j]) far += bytes;
    }
  }
  const auto counted =
      static_cast<double>(std::max<uint64_t>(1, rehearsed.counted));
  PlanFigures figures{
      .rounds_per_second = summary.steady_rounds_per_second,
      .waiting_share = WaitingShare(rehearsed.by_rank),
      .exchange_seconds = summary.exchange_seconds,
      .bytes_per_round = sent / static_cast<double>(peers) / counted,
      .consensus_distance = rehearsed.consensus_distance};
  if (!plan.site_of.empty()) figures.far_bytes_per_round = far / counted;
  if (!plan.result.stand_in && summary.last_score) {
    figures.score = summary.last_score->value;
  }
  return figures;
}

// Returns the number of rehearsals at once for which there are processors and
// memory: a peer keeps some twelve vectors, and two of every other peer where a
// schedule's edges change.
size_t JobsFor(const Plan& plan) {
  double most = 0;
  for (const Rehearsed& r : plan.candidates) {
    const double peers = r.config.peers();
    const auto parameters = static_cast<double>(plan.result.parameters);
    most = std::max(
        most, sizeof(float) * parameters * peers * (12 + 2 * (peers - 1)));
  }
  const double available =
      MemoryBytes("MemAvailable")
          .value_or(std::numeric_limits<double>::infinity());
  const double fit =
      most > 0 ? available / most : std::numeric_limits<double>::infinity();
  return static_cast<size_t>(std::clamp<double>(
      std::thread::hardware_concurrency(), 1, std::max(1.0, fit)));
}

class Progress {
 public:
  explicit Progress(size_t candidates, uint64_t rounds)
      : candidates_(candidates), rounds_(rounds) {}

  void AddRound() { ++done_rounds_; }
  void AddCandidate() { ++done_; }
  // Prints a line every few seconds, and none for what ends sooner.
  void Show() {
    const absl::Time now = SteadyNow();
    if (now - shown_ < kShowEvery) return;
    shown_ = now;
    const double share = static_cast<double>(done_rounds_) /
                         static_cast<double>(candidates_ * rounds_);
    std::string left;
    if (share > 0) {
      left = absl::StrCat(", about ",
                          HumanDuration((now - began_) * ((1 - share) / share)),
                          " left");
    }
    std::cerr << absl::StrFormat("plan: %d of %d candidates rehearsed, %.0f %%",
                                 done_.load(), candidates_, 100 * share)
              << left << "\n";
  }

 private:
  const size_t candidates_;
  const uint64_t rounds_;
  const absl::Time began_ = SteadyNow();
  absl::Time shown_ = began_;
  std::atomic<size_t> done_ = 0;
  std::atomic<uint64_t> done_rounds_ = 0;
};

// Fills in the figures of all candidates.  kAborted after a signal.
absl::Status RehearseAll(Plan& plan, size_t jobs) {
  SignalWaiter signals;  // before the threads
  Progress progress(plan.candidates.size(), plan.result.rounds);
  std::atomic<size_t> next = 0, ended = 0;
  // The threads look at it after each round of a rehearsal, so Ctrl-C takes
  // effect within a moment.
  std::atomic<bool> stopped = false;
  const auto work = [&] {
    for (size_t i = next++; i < plan.candidates.size() && !stopped;
         i = next++) {
      const auto go_on = [&](uint64_t round) {
        progress.AddRound();
        return !stopped;
      };
      Rehearsed& own = plan.candidates[i];
      // A candidate that fails is left out of the table with its reason; it
      // does not end the others.
      own.figures = Figures(plan, own.config, go_on);
      progress.AddCandidate();
    }
    ++ended;
  };
  std::vector<std::jthread> threads;
  // Each thread takes the next candidate that nobody has: rehearsals differ
  // much in length.  No lock is needed: every thread writes the figures of its
  // own candidates only.
  jobs = std::min(jobs, plan.candidates.size());
  for (size_t i = 0; i < jobs; ++i) threads.emplace_back(work);
  while (ended < jobs) {
    if (signals.Wait(kPollInterval)) stopped = true;
    progress.Show();
  }
  // The threads end before their results are read.
  threads.clear();
  return stopped ? absl::AbortedError("stopped by a signal") : absl::OkStatus();
}

void FillResult(Plan& plan) {
  PlanResult& result = plan.result;
  std::vector<PlanFigures> figures;
  std::vector<const Rehearsed*> rehearsed;
  for (const Rehearsed& r : plan.candidates) {
    if (r.figures.ok()) {
      figures.push_back(*r.figures);
      rehearsed.push_back(&r);
    } else {
      result.left_out.push_back(
          {r.candidate.name, std::string(r.figures.status().message())});
    }
  }
  for (const size_t i : RankFigures(figures, *PlanGoalOf(result.goal))) {
    const Rehearsed& r = *rehearsed[i];
    // Rows are ranked, so the first one that is no baseline is recommended.
    if (!r.candidate.baseline && !result.recommended) {
      result.recommended = result.rows.size();
    }
    result.rows.push_back({.candidate = r.candidate,
                           .figures = figures[i],
                           .configured = r.configured});
  }
}

int RunPlan(const Options& options) {
  absl::StatusOr<Plan> plan = MakePlan(options);
  if (!plan.ok()) return PrintError("plan", plan.status());
  if (options.by == "score" && plan->result.stand_in) {
    return PrintError("plan",
                      absl::InvalidArgumentError(
                          "--by score: a rehearsal trains a synthetic game in "
                          "place of the networks, whose score says nothing of "
                          "theirs; sort by another"));
  }
  for (const std::string& warning : plan->result.warnings) {
    std::cerr << "warning: " << warning << "\n";
  }
  const size_t jobs =
      options.jobs ? static_cast<size_t>(*options.jobs) : JobsFor(*plan);
  const absl::Status status = RehearseAll(*plan, jobs);
  if (!status.ok()) return PrintError("plan", status);
  FillResult(*plan);
  const PlanResult& result = plan->result;
  std::cout << (options.json ? PlanJson(result).dump(2) + "\n"
                             : PlanText(result));
  if (!result.rows.empty()) return kOk;
  return PrintError("plan", absl::InternalError(
                                absl::StrCat("no candidate came to its end; ",
                                             result.left_out.front().name, ": ",
                                             result.left_out.front().why)));
}

}  // namespace

void AddPlan(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.AddCommand(
      {.name = "plan",
       .about = "Rehearse candidate compositions over a network and rank them",
       .footer = kExamples,
       .run = [options] { return RunPlan(*options); }});
  command.AddOption("--scenario", &options->scenario,
                    "the network: hosts and links, as for gossamer lab",
                    {.required = true, .value_name = "FILE"});
  command.AddOption("--config", &options->config, "the training",
                    {.required = true, .value_name = "FILE"});
  command.AddOption("--set", &options->set, "change one field of --config",
                    {.value_name = "FIELD=VALUE", .one_at_a_time = true});
  command.AddOption("--candidate", &options->candidates,
                    "rehearse this instead of the usual candidates; repeat it",
                    {.value_name = "FIELD=VALUE,...", .one_at_a_time = true});
  command.AddOption("--by", &options->by, "what to sort by",
                    {.show_default = true, .choices = PlanGoalNames()});
  command.AddOption("--rounds", &options->rounds,
                    "of each rehearsal; unless given, six seconds of steps, "
                    "but 100 to 1000 rounds",
                    {.range = std::pair(4.0, 1e6)});
  AddStepOptions(command, "", options->rehearsal);
  command.AddOption("--jobs", &options->jobs,
                    "rehearsals at once; unless given, as many as processors "
                    "and memory allow",
                    {.range = std::pair(1.0, 256.0)});
  command.AddOption("--json", &options->json, "answer as JSON");
}

}  // namespace gossamer
