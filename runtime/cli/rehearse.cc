#include "runtime/cli/rehearse.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/base/plain_file.h"
#include "runtime/base/steady_time.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/cli/conditions.h"
#include "runtime/config/run_config.h"
#include "runtime/sim/rehearsal.h"
#include "runtime/telemetry/jsonl_sink.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

constexpr absl::Duration kShowInterval = absl::Milliseconds(200);
// Time between two displays of progress, in times that one takes.
constexpr double kShowShare = 50;
// Events between two readings of the clock.
constexpr int kEventsPerReading = 64;
// The virtual time between two samples.  It is virtual so that a rehearsal
// leaves the same files on every machine, and as long as the time between two
// heartbeats.
constexpr absl::Duration kSampleEvery = absl::Seconds(1);
// The first part of a measured run, one in so many rounds, is left out:
// connections, caches, first allocations.
constexpr size_t kWarmUpShare = 10;
// The distance takes a pass over all peers' parameters, so it is sampled.
constexpr uint64_t kConsensusSamples = 20;

absl::StatusOr<uint64_t> ParametersOf(const RunFolder& run) {
  const absl::StatusOr<RunConfig> loaded = run.LoadConfig();
  if (!loaded.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps-of: ", loaded.status().message()));
  }
  const RunConfig& config = *loaded;
  // A synthetic game says its size; networks are as large as what they have
  // saved.
  if (config.game().has_synthetic()) {
    return config.game().synthetic().parameters();
  }
  // All peers have the same layout, so the first one's newest checkpoint says
  // the size.
  const auto newest = run.Checkpoints(1).LoadNewest();
  if (!newest.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps-of ", run.path(),
                     ": no checkpoint says how large its model "
                     "is (",
                     newest.status().message(), "); give --parameters"));
  }
  return newest->floats.at(std::string(kParametersName)).size();
}

// Returns the times of a run's steps, optimizer and gradient together, of every
// rank.
absl::StatusOr<StepTimes> Measured(const RunFolder& run) {
  GOSSAMER_ASSIGN_OR_RETURN(const auto logs, run.ReadLogs());
  StepTimes times{.source = absl::StrCat("measured in ", run.path()),
                  .by_rank = {},
                  .whole = true};
  for (const PeerLog& log : logs) {
    std::vector<absl::Duration> own;
    for (size_t i = 1 + log.rounds.size() / kWarmUpShare; i < log.rounds.size();
         ++i) {
      // A round has several steps, or none if all were skipped.
      const uint64_t steps = log.rounds[i].steps - log.rounds[i - 1].steps;
      if (steps == 0) continue;
      own.push_back(absl::Seconds(log.rounds[i].seconds_computing) / steps);
    }
    if (!own.empty()) times.by_rank.push_back(std::move(own));
  }
  if (!times.by_rank.empty()) return times;
  return absl::InvalidArgumentError(
      absl::StrCat("--steps-of ", run.path(),
                   ": no peer has logged rounds there; give the "
                   "folder of a run that has trained"));
}

absl::StatusOr<StepTimes> Given(const std::string& text) {
  const auto step = ParsePositiveDuration(text);
  if (!step.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--step-time \"", text,
                     "\"; write a duration with its unit, such as 40ms"));
  }
  return StepTimes{.source = text, .by_rank = {{*step}}};
}

bool Loses(const Scenario& scenario) {
  for (const auto& row : scenario.links.specs()) {
    for (const LinkSpec& link : row) {
      if (link.loss > 0) return true;
    }
  }
  return false;
}

// Returns a rehearsal's spec but for its sinks.  `steps` and `key` outlive it.
RehearsalSpec SpecOf(const RunConfig& config, const Scenario& scenario,
                     const StepTimes& steps, const RngKey& key) {
  return {.config = config,
          .scenario = scenario,
          .step_time =
              [&steps, &key](int rank, uint64_t call) {
                const auto r = static_cast<uint64_t>(rank);
                // A rehearsal may have more peers than the measured run, whose
                // ranks are then used again.
                const auto& own = steps.by_rank[r % steps.by_rank.size()];
                // The n-th step of a rank draws its time by a key: candidates
                // are compared on the same times, and a rehearsal repeats.
                return own[key.Fold(r).Bits(call) % own.size()];
              },
          .bytes_per_second = steps.whole
                                  // Measured steps have the optimizer's and
                                  // codecs' bytes in them.
                                  ? std::numeric_limits<double>::infinity()
                                  : kRehearsedMemoryRate,
          .sink = nullptr};
}

RngKey StepTimesKey(const RunConfig& config) {
  return RngKey(config.seed()).Fold("step times");
}

// Keeps the rounds of one peer.
class RoundsSink final : public MetricsSink {
 public:
  void OnRound(const RoundMetrics& metrics) override {
    rounds_.push_back(metrics);
  }
  void OnEvent(const Event& event) override {}

  uint64_t round() const { return rounds_.empty() ? 0 : rounds_.back().round; }
  std::vector<RoundMetrics> Take() { return std::move(rounds_); }

 private:
  std::vector<RoundMetrics> rounds_;
};

std::vector<std::vector<uint64_t>> BytesSoFar(const Rehearsal& rehearsal,
                                              size_t peers) {
  std::vector<std::vector<uint64_t>> bytes(peers, std::vector<uint64_t>(peers));
  for (const auto& [ends, sent] : rehearsal.AllSent()) {
    bytes[ends.first.value - 1][ends.second.value - 1] = sent.bytes;
  }
  return bytes;
}

// Bytes by link, as in the lab's network.json, but without packets' headers.
nlohmann::ordered_json NetworkOf(const Rehearsal& rehearsal) {
  nlohmann::ordered_json json = {{"links", nlohmann::ordered_json::array()}};
  for (const auto& [ends, sent] : rehearsal.AllSent()) {
    json["links"].push_back({{"from", ends.first.value - 1},
                             {"to", ends.second.value - 1},
                             {"frames", sent.frames},
                             {"bytes", sent.bytes}});
  }
  return json;
}

// Of peers without logs.
class RoundsNowhere final : public MetricsSink {
 public:
  void OnRound(const RoundMetrics& metrics) override {}
  void OnEvent(const Event& event) override {}
};

// The files of a rehearsal in its folder, and its progress.
class Record {
 public:
  Record(const RunConfig& config, const RunFolder& folder)
      : config_(config), folder_(folder), display_(stderr) {}

  // `peers`: also those that join, whose logs begin when they do.
  absl::Status Open(uint32_t peers, const std::string& conditions) {
    GOSSAMER_RETURN_IF_ERROR(folder_.Create(config_, conditions));
    GOSSAMER_ASSIGN_OR_RETURN(consensus_,
                              LineFile::Open(folder_.ConsensusPath()));
    GOSSAMER_ASSIGN_OR_RETURN(service_log_,
                              LineFile::Open(folder_.LogPath("topology")));
    const uint32_t logged = std::min(peers, kMaxLogs);
    if (logged < peers) {
      display_.Print(absl::StrCat("warning: of ", peers, " peers the first ",
                                  logged, " have logs"));
    }
    while (sinks_.size() < std::min(config_.peers(), kMaxLogs)) {
      GOSSAMER_RETURN_IF_ERROR(OpenNextLog());
    }
    return absl::OkStatus();
  }

  // Ranks are asked for in their order.
  MetricsSink* sink(int rank) {
    const auto r = static_cast<size_t>(rank);
    if (r == sinks_.size() && r < kMaxLogs) {
      const absl::Status opened = OpenNextLog();
      if (!opened.ok()) {
        display_.Print(absl::StrCat("warning: peer ", r + 1,
                                    " has no log: ", opened.message()));
      }
    }
    return r < sinks_.size() ? static_cast<MetricsSink*>(sinks_[r].get())
                             : &unlogged_;
  }
  void Print(const std::string& line) { display_.Print(line); }
  // The summary is of the peers that live: a dead one's logs are put aside.
  void OnLost(int rank) {
    const auto r = static_cast<size_t>(rank);
    if (r >= sinks_.size()) return;
    sinks_[r]->Flush();
    const std::string lost = folder_.LostPath();
    std::error_code error;
    std::filesystem::create_directories(lost, error);
    std::filesystem::rename(folder_.PeerPath(r + 1),
                            absl::StrCat(lost, "/peer-", r + 1), error);
    if (error) {
      display_.Print(absl::StrCat("warning: ", lost, ": ", error.message()));
    }
  }
  void OnServiceLog(absl::Duration at, const std::string& line) {
    service_log_->Add(
        absl::StrFormat("%.1f %s", absl::ToDoubleSeconds(at), line));
  }
  void OnSettled(const FleetSettled& settled) {
    display_.Print(absl::StrFormat(
        "%s: settled after %.1f s, with %d peers (rounds %d to %d)",
        settled.event.text, absl::ToDoubleSeconds(settled.took),
        settled.members, settled.round_before, settled.round_after));
    events_.push_back({{"event", settled.event.text},
                       {"settled_after_s", absl::ToDoubleSeconds(settled.took)},
                       {"peers", settled.members},
                       {"round_before", settled.round_before},
                       {"round_after", settled.round_after}});
  }

  // Rounds per second are of this machine's time, for the time that is left.
  void ShowProgress(const FleetSnapshot& fleet, absl::Duration real,
                    absl::Duration virtual_time) {
    progress_ = {.title = absl::StrCat(config_.name(), "  rehearsed  ",
                                       HumanDuration(virtual_time)),
                 .rounds = config_.rounds(),
                 .consensus = fleet.consensus};
    for (const FleetPeer& peer : fleet.peers) {
      // Peers that wait to join are in no round yet, and the dead in none more.
      if (peer.standing != Standing::kMember) continue;
      PeerProgress& p = progress_.peers.emplace_back();
      p.id = peer.id.value;
      // Heartbeats have the next round; people ask for the last.
      p.round = std::min(config_.rounds(),
                         peer.report.round > 0 ? peer.report.round - 1 : 0);
      p.rounds_per_second =
          static_cast<double>(p.round) / absl::ToDoubleSeconds(real);
      p.losses = peer.report.losses;
      p.bytes_sent = peer.report.bytes_sent;
      p.finished = peer.finished;
    }
    display_.Show(progress_, SteadyNow());
  }
  void Sample(const FleetSnapshot& fleet) {
    if (!fleet.consensus || fleet.consensus->round <= consensus_round_) return;
    consensus_round_ = fleet.consensus->round;
    consensus_->Add(ConsensusLine(*fleet.consensus));
    // The picture may lack a sample; a rehearsal does not end for that.
    consensus_->Flush().IgnoreError();
  }
  absl::Status End() {
    for (auto& sink : sinks_) sink->Flush();
    display_.Finish(progress_);
    GOSSAMER_RETURN_IF_ERROR(service_log_->Flush());
    if (events_.empty()) return absl::OkStatus();
    return WriteTextFile(folder_.path() + "/events.json",
                         events_.dump(2) + "\n");
  }

 private:
  absl::Status OpenNextLog() {
    const std::string path = folder_.PeerPath(sinks_.size() + 1);
    GOSSAMER_RETURN_IF_ERROR(MakeFolder(path));
    GOSSAMER_ASSIGN_OR_RETURN(
        auto sink, JsonlSink::Open(path, [this](const absl::Status& status) {
          display_.Print(std::string(status.message()));
        }));
    sinks_.push_back(std::move(sink));
    return absl::OkStatus();
  }

  const RunConfig& config_;
  const RunFolder& folder_;
  ProgressDisplay display_;
  std::unique_ptr<LineFile> consensus_;
  // Each line begins with the seconds since the start.
  std::unique_ptr<LineFile> service_log_;
  uint64_t consensus_round_ = 0;
  std::vector<std::unique_ptr<JsonlSink>> sinks_;
  RoundsNowhere unlogged_;
  FleetProgress progress_;
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
};

}  // namespace

absl::StatusOr<StepTimes> PrepareRehearsal(const RehearseOptions& options,
                                           RunConfig& config) {
  if (!options.steps_of.empty() && !options.step_time.empty()) {
    return absl::InvalidArgumentError(
        "--steps-of and --step-time both say how long steps take; give one");
  }
  const bool networks = config.game().has_gan() || config.game().has_datalens();
  std::string step_time = options.step_time;
  if (step_time.empty() && config.game().has_synthetic()) {
    step_time = config.game().synthetic().step_time();
  }
  const RunFolder measured(options.steps_of);
  if (options.steps_of.empty() && step_time.empty()) {
    return absl::InvalidArgumentError(
        "how long does a step take?  Give --steps-of a run of this "
        "configuration, or --step-time, such as 40ms");
  }
  std::optional<uint64_t> parameters = options.parameters;
  if (!parameters && networks) {
    if (options.steps_of.empty()) {
      return absl::InvalidArgumentError(
          "how large are the networks?  Give --steps-of a run of this "
          "configuration, or --parameters, such as 134132");
    }
    GOSSAMER_ASSIGN_OR_RETURN(parameters, ParametersOf(measured));
  }
  if (parameters) {
    config.mutable_game()->mutable_synthetic()->set_parameters(*parameters);
    // The time of a step comes from StepTimes alone, and must not count twice.
    config.mutable_game()->mutable_synthetic()->set_step_time("0");
  }
  GOSSAMER_RETURN_IF_ERROR(ValidateRunConfig(config));
  if (!options.steps_of.empty()) return Measured(measured);
  return Given(step_time);
}

absl::StatusOr<std::vector<FleetEvent>> FleetEventsOf(
    const RehearseOptions& options) {
  std::vector<FleetEvent> events;
  for (const std::string& text : options.at) {
    GOSSAMER_ASSIGN_OR_RETURN(FleetEvent event, ParseFleetEvent(text));
    events.push_back(std::move(event));
  }
  return events;
}

absl::Status CheckRehearsal(const RunConfig& config, const Scenario& scenario) {
  const auto no_time = [](int rank, uint64_t call) {
    return absl::ZeroDuration();
  };
  const auto no_sink = [](int rank) -> MetricsSink* { return nullptr; };
  return Rehearsal::Create({.config = config,
                            .scenario = scenario,
                            .step_time = no_time,
                            .sink = no_sink})
      .status();
}

std::vector<std::string> LeftOutOfRehearsals(const Scenario& scenario) {
  std::vector<std::string> lines;
  if (Loses(scenario)) {
    lines.emplace_back(
        "links lose packets, which slows TCP down; a rehearsal leaves it out");
  }
  if (scenario.stock_tcp) {
    lines.emplace_back(
        "TCP is not tuned (tcp: \"stock\") and may not fill long links; a "
        "rehearsal takes for granted that it does");
  }
  return lines;
}

void AddStepOptions(Command& command, const std::string& when,
                    RehearseOptions& options) {
  command.AddOption("--step-time", &options.step_time,
                    when + "of one gradient, instead of the configuration's",
                    {.value_name = "TIME"});
  command.AddOption("--steps-of", &options.steps_of,
                    when + "steps as long as they were in this run",
                    {.value_name = "RUN"});
  command.AddOption("--parameters", &options.parameters,
                    when + "of the networks, if no run says it",
                    {.positive = true});
}

absl::StatusOr<RehearsedRounds> RehearseRounds(
    const RunConfig& config, const Scenario& scenario, const StepTimes& steps,
    absl::FunctionRef<bool(uint64_t round)> go_on) {
  const RngKey key = StepTimesKey(config);
  std::vector<RoundsSink> sinks(config.peers());
  RehearsalSpec spec = SpecOf(config, scenario, steps, key);
  spec.sink = [&sinks](int rank) { return &sinks[static_cast<size_t>(rank)]; };
  GOSSAMER_ASSIGN_OR_RETURN(const auto rehearsal,
                            Rehearsal::Create(std::move(spec)));
  const uint64_t half = config.rounds() / 2;
  const uint64_t sample_every =
      std::max<uint64_t>(1, (config.rounds() - half) / kConsensusSamples);
  RehearsedRounds result;
  double distances = 0;
  int samples = 0;
  std::vector<std::vector<uint64_t>> before;
  uint64_t seen = 0;
  while (!rehearsal->done()) {
    GOSSAMER_RETURN_IF_ERROR(
        rehearsal->Run([&] { return sinks[0].round() > seen; }));
    if (sinks[0].round() == seen) continue;
    seen = sinks[0].round();
    if (!go_on(seen)) return absl::AbortedError("stopped by a signal");
    // Bytes are counted as a difference between two moments.
    if (before.empty() && seen >= half) {
      before = BytesSoFar(*rehearsal, sinks.size());
      result.counted = config.rounds() - seen;
    }
    if (seen > half && (seen - half) % sample_every == 0) {
      distances += rehearsal->ConsensusDistance();
      ++samples;
    }
  }
  if (samples > 0) result.consensus_distance = distances / samples;
  result.bytes = BytesSoFar(*rehearsal, sinks.size());
  for (size_t i = 0; i < before.size(); ++i) {
    for (size_t j = 0; j < before.size(); ++j) {
      result.bytes[i][j] -= before[i][j];
    }
  }
  for (RoundsSink& sink : sinks) result.by_rank.push_back(sink.Take());
  return result;
}

absl::Status Rehearse(const RunConfig& config, const Scenario& scenario,
                      const StepTimes& steps, const RehearseOptions& options,
                      const RunFolder& folder, SignalWaiter& signals) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<FleetEvent> events,
                            FleetEventsOf(options));
  Record record(config, folder);
  GOSSAMER_RETURN_IF_ERROR(
      record.Open(config.peers() + Joiners(events),
                  RehearsalConditions(scenario, steps.source, options.at)));
  for (const std::string& line : LeftOutOfRehearsals(scenario)) {
    record.Print("warning: " + line);
  }
  const RngKey key = StepTimesKey(config);
  RehearsalSpec spec = SpecOf(config, scenario, steps, key);
  spec.sink = [&record](int rank) { return record.sink(rank); };
  spec.events = events;
  spec.on_settled = [&record](const FleetSettled& settled) {
    record.OnSettled(settled);
  };
  spec.on_lost = [&record](int rank) { record.OnLost(rank); };
  spec.on_service_log = [&record](absl::Duration at, const std::string& line) {
    record.OnServiceLog(at, line);
  };
  GOSSAMER_ASSIGN_OR_RETURN(const auto rehearsal,
                            Rehearsal::Create(std::move(spec)));
  const absl::Time begin = SteadyNow();
  absl::Time next_show = begin + kShowInterval;
  absl::Duration sample = kSampleEvery;
  bool stopping = false;
  while (!rehearsal->done()) {
    int events = 0;
    // The clock of this machine is read seldom: a reading costs more than
    // many events.
    GOSSAMER_RETURN_IF_ERROR(rehearsal->Run([&] {
      return rehearsal->elapsed() >= sample ||
             (++events > kEventsPerReading && SteadyNow() >= next_show);
    }));
    if (rehearsal->elapsed() >= sample || rehearsal->done()) {
      record.Sample(rehearsal->Snapshot());
      sample = absl::Floor(rehearsal->elapsed(), kSampleEvery) + kSampleEvery;
    }
    if (SteadyNow() < next_show && !rehearsal->done()) continue;
    const absl::Time shown = SteadyNow();
    record.ShowProgress(rehearsal->Snapshot(), shown - begin,
                        rehearsal->elapsed());
    // A display of ten thousand peers takes as long as many rounds of one.
    next_show = SteadyNow() +
                std::max(kShowInterval, kShowShare * (SteadyNow() - shown));
    if (!signals.Wait(absl::ZeroDuration())) continue;
    if (std::exchange(stopping, true)) {
      return absl::AbortedError("stopped at once by a second signal");
    }
    // The first signal stops the fleet at an agreed round, as in a real run.
    rehearsal->Stop();
  }
  if (rehearsal->unsettled() > 0) {
    record.Print(
        absl::StrCat("warning: the run was over before the fleet had "
                     "settled after ",
                     rehearsal->unsettled(), " of ", events.size(),
                     " events; give it more rounds"));
  }
  GOSSAMER_RETURN_IF_ERROR(record.End());
  return WriteTextFile(folder.path() + "/network.json",
                       NetworkOf(*rehearsal).dump(2) + "\n");
}

}  // namespace gossamer
