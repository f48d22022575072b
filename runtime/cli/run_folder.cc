#include "runtime/cli/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/base/peer_folder.h"
#include "runtime/base/plain_file.h"
#include "runtime/config/run_config.h"
#include "runtime/telemetry/metrics_log.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

// Numbers N of the entries "<prefix>N<suffix>" of a folder, ascending.
std::vector<uint64_t> Numbered(const std::string& folder,
                               absl::string_view prefix,
                               absl::string_view suffix) {
  std::vector<uint64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    absl::string_view number = name;
    uint64_t n = 0;
    // Other names, such as those that a save in progress has, are passed over.
    if (absl::ConsumePrefix(&number, prefix) &&
        absl::ConsumeSuffix(&number, suffix) && absl::SimpleAtoi(number, &n)) {
      numbers.push_back(n);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string StateOf(const RunFolder& run, uint64_t id, uint64_t round) {
  return absl::StrCat(run.PeerPath(id), "/checkpoints/round-", round,
                      "/state.safetensors");
}

PlayerDistances DistancesIn(const nlohmann::ordered_json& players) {
  PlayerDistances distances;
  if (!players.is_object()) return distances;
  for (const auto& [player, distance] : players.items()) {
    if (distance.is_number()) distances.push_back({player, distance});
  }
  return Bounded(std::move(distances));
}

}  // namespace

bool RunFolder::Exists() const {
  std::error_code error;
  return fs::exists(ConfigPath(), error);
}

absl::Status RunFolder::Create(const RunConfig& config,
                               const std::string& conditions) const {
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(path_ + "/logs"));
  // The configuration, which makes it a run's folder, comes last.
  GOSSAMER_RETURN_IF_ERROR(WriteTextFile(ConditionsPath(), conditions));
  return WriteTextFile(ConfigPath(), ToTextProto(config));
}

std::string RunFolder::ReadConditions() const {
  std::ifstream file(ConditionsPath());
  return {std::istreambuf_iterator<char>(file), {}};
}

absl::StatusOr<RunConfig> RunFolder::LoadConfig() const {
  if (!Exists()) {
    return absl::NotFoundError(absl::StrCat(
        path_, ": not a run's folder (it has no config.textproto)"));
  }
  return LoadRunConfig(ConfigPath());
}

std::vector<uint64_t> RunFolder::PeerIds() const {
  return Numbered(path_, "peer-", "");
}

std::string RunFolder::PeerPath(uint64_t id) const {
  return PeerFolder(path_, PeerId{id});
}

CheckpointStore RunFolder::Checkpoints(uint64_t id) const {
  // The number of checkpoints to keep matters to saves alone.
  return CheckpointStore(PeerPath(id) + "/checkpoints", 1);
}

absl::StatusOr<std::vector<PeerLog>> RunFolder::ReadLogs() const {
  std::vector<PeerLog> logs;
  for (const uint64_t id : PeerIds()) {
    auto rounds = ReadMetrics(PeerPath(id) + "/metrics.jsonl");
    // A peer that has not begun yet, or runs on another machine, has no log
    // here.
    if (absl::IsNotFound(rounds.status())) continue;
    if (!rounds.ok()) return rounds.status();
    logs.push_back({absl::StrCat("peer ", id), *std::move(rounds)});
  }
  return logs;
}

absl::StatusOr<EventCounts> RunFolder::ReadEvents() const {
  EventCounts all;
  for (const uint64_t id : PeerIds()) {
    auto events = CountEvents(PeerPath(id) + "/events.jsonl");
    if (absl::IsNotFound(events.status())) continue;
    if (!events.ok()) return events.status();
    for (const auto& [kind, times] : *events) all[kind] += times;
  }
  return all;
}

std::string ConsensusLine(const Consensus& consensus) {
  nlohmann::ordered_json line{{"round", consensus.round},
                              {"consensus_distance", consensus.distance}};
  for (const auto& [player, distance] : consensus.players) {
    line["players"][player] = distance;
  }
  // A player's name comes from its program.
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<Consensus> RunFolder::ReadConsensus() const {
  std::vector<Consensus> samples;
  std::ifstream file(ConsensusPath());
  for (std::string line; std::getline(file, line);) {
    // The last line of a run that was killed may be cut off.
    const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("round") ||
        !json["round"].is_number_unsigned() ||
        !json.contains("consensus_distance") ||
        !json["consensus_distance"].is_number()) {
      continue;
    }
    Consensus sample = {.round = json["round"],
                        .distance = json["consensus_distance"]};
    if (const auto players = json.find("players"); players != json.end()) {
      sample.players = DistancesIn(*players);
    }
    // A run that went back to a checkpoint logs some rounds again: the later
    // line counts.
    while (!samples.empty() && samples.back().round >= sample.round) {
      samples.pop_back();  // of the time before the last resume
    }
    samples.push_back(sample);
  }
  return samples;
}

std::string RunFolder::NewestSamples() const {
  std::vector<std::string> folders = {path_ + "/samples"};
  for (const uint64_t id : PeerIds()) {
    folders.push_back(PeerPath(id) + "/samples");
  }
  std::optional<uint64_t> newest;
  std::string path;
  for (const std::string& folder : folders) {
    const std::vector<uint64_t> rounds = Numbered(folder, "round-", ".png");
    if (rounds.empty() || (newest && rounds.back() <= *newest)) continue;
    newest = rounds.back();
    path = absl::StrCat(folder, "/round-", *newest, ".png");
  }
  return path;
}

absl::StatusOr<RunSummary> RunFolder::Summarize(const RunConfig& config) const {
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<PeerLog> logs, ReadLogs());
  std::vector<std::vector<RoundMetrics>> rounds;
  // Everything comes from the files: the command that asks need not be the one
  // that trained.
  for (const PeerLog& log : logs) rounds.push_back(log.rounds);
  const std::vector<Consensus> consensus = ReadConsensus();
  RunSummary summary = gossamer::Summarize(rounds);
  summary.run = config.name();
  summary.algorithm = config.algorithm();
  summary.peers = config.peers();
  summary.configuration_hash = ConfigurationHash(config);
  // All peers that can have logs here have some, and the slowest of them has
  // come to the end.
  const size_t logged = logs.size() + Numbered(LostPath(), "peer-", "").size();
  summary.finished = logged >= std::min(config.peers(), kMaxLogs) &&
                     summary.rounds >= config.rounds();
  if (!consensus.empty()) {
    summary.consensus_distance = {consensus.back().round,
                                  consensus.back().distance};
  }
  GOSSAMER_ASSIGN_OR_RETURN(summary.events, ReadEvents());
  return summary;
}

absl::StatusOr<RunSummary> RunFolder::WriteResults(
    const RunConfig& config) const {
  GOSSAMER_ASSIGN_OR_RETURN(const RunSummary summary, Summarize(config));
  GOSSAMER_RETURN_IF_ERROR(WriteTextFile(SummaryPath(), ToJson(summary)));
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<PeerLog> logs, ReadLogs());
  const std::vector<Panel> panels = RunPanels(logs, ReadConsensus());
  if (!panels.empty()) {
    GOSSAMER_RETURN_IF_ERROR(DrawCurves(
        panels,
        absl::StrCat(config.name(), ": ", config.algorithm(), ", ",
                     config.peers(), " peers, ", config.mixing().codec()),
        CurvesPath()));
  }
  return summary;
}

absl::StatusOr<std::string> RunFolder::StateFile(uint64_t id) const {
  std::error_code error;
  if (!fs::is_directory(PeerPath(id), error)) {
    return absl::NotFoundError(absl::StrCat(path_, " has no peer ", id,
                                            "; it has peers ",
                                            absl::StrJoin(PeerIds(), ", ")));
  }
  const std::vector<uint64_t> rounds = Checkpoints(id).Rounds();
  if (rounds.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(PeerPath(id),
                     " has no whole checkpoint; let the run finish, or stop "
                     "it with Ctrl-C, which saves one"));
  }
  return StateOf(*this, id, rounds.back());
}

std::vector<uint64_t> RunFolder::NewestNamed() const {
  std::vector<uint64_t> newest;
  for (const uint64_t id : PeerIds()) {
    const auto rounds = Numbered(PeerPath(id) + "/checkpoints", "round-", "");
    newest.push_back(rounds.empty() ? 0 : rounds.back());
  }
  return newest;
}

uint64_t RunFolder::RoundOf(const std::string& state_file) {
  const std::string folder = fs::path(state_file).parent_path().filename();
  uint64_t round = 0;
  const bool named =
      absl::SimpleAtoi(absl::StripPrefix(folder, "round-"), &round);
  return named ? round : 0;
}

uint64_t RunFolder::NewestCommonRound(int peers) const {
  std::vector<uint64_t> whole;
  const std::vector<uint64_t> ids = PeerIds();
  // Peers on other machines have their checkpoints there.
  if (static_cast<int>(ids.size()) < peers) return 0;
  for (const uint64_t id : ids) {
    for (uint64_t round : Checkpoints(id).Rounds()) whole.push_back(round);
  }
  return NewestOfAll(whole, ids.size());
}

uint64_t NewestOfAll(std::span<const uint64_t> rounds, size_t peers) {
  std::map<uint64_t, size_t> count;
  for (const uint64_t round : rounds) ++count[round];
  uint64_t newest = 0;
  for (const auto& [round, n] : count) {
    // The map is in the order of rounds, so the last that fits is the newest.
    if (n == peers) newest = round;
  }
  return newest;
}

absl::StatusOr<std::vector<std::string>> RunFolder::StateFiles() const {
  const uint64_t round = NewestCommonRound(1);
  if (round == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_, ": no round has a whole checkpoint of all ", PeerIds().size(),
        " peers; let the run finish or stop it with Ctrl-C, which saves one, "
        "or take one peer with --of ID"));
  }
  std::vector<std::string> files;
  for (const uint64_t id : PeerIds())
    files.push_back(StateOf(*this, id, round));
  return files;
}

}  // namespace gossamer
