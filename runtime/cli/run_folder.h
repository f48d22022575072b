// The files of runs/<name>/, and how to read them.
//
//   config.textproto            resolved
//   conditions.json             place, network and step times (conditions.h)
//   peer-<id>/metrics.jsonl     and events.jsonl, decisions.log, checkpoints/
//   peer-1/spent/               the ledger of a privacy budget (datalens)
//   topology/                   state of the topology service
//   logs/                       what the processes printed
//   consensus.jsonl             the fleet's consensus distance over rounds
//   summary.json, curves.png    once it has ended
//
// This header knows nothing of running processes.

#ifndef GOSSAMER_RUNTIME_CLI_RUN_FOLDER_H_
#define GOSSAMER_RUNTIME_CLI_RUN_FOLDER_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/run.pb.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/telemetry/run_panels.h"
#include "runtime/telemetry/summary.h"
#include "topology/fleet/consensus.h"

namespace gossamer {

// Peers of a rehearsal that have logs: a person reads few, and each keeps two
// files open.
inline constexpr uint32_t kMaxLogs = 200;

class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string ConfigPath() const { return path_ + "/config.textproto"; }
  std::string ConditionsPath() const { return path_ + "/conditions.json"; }
  std::string SummaryPath() const { return path_ + "/summary.json"; }
  std::string CurvesPath() const { return path_ + "/curves.png"; }
  std::string ConsensusPath() const { return path_ + "/consensus.jsonl"; }
  std::string LogPath(const std::string& process) const {
    return path_ + "/logs/" + process + ".log";
  }
  // Returns whether the folder looks like a run's.
  bool Exists() const;

  // Makes the folders and writes the configuration and the run's conditions.
  absl::Status Create(const RunConfig& config,
                      const std::string& conditions) const;
  // kNotFound: the folder is not a run's.
  absl::StatusOr<RunConfig> LoadConfig() const;
  // Returns "" if the run has no conditions.
  std::string ReadConditions() const;

  // Ids of the peers with a folder of their own, ascending.
  std::vector<uint64_t> PeerIds() const;
  std::string PeerPath(uint64_t id) const;
  CheckpointStore Checkpoints(uint64_t id) const;
  // A rehearsal puts the folders of peers that have died there.
  std::string LostPath() const { return path_ + "/lost"; }

  // Rounds logged so far, of all peers; a peer without a log is left out.
  absl::StatusOr<std::vector<PeerLog>> ReadLogs() const;
  // Returns the counts of all peers together.
  absl::StatusOr<EventCounts> ReadEvents() const;
  std::vector<Consensus> ReadConsensus() const;
  // The newest sample grid; "" if there is none.
  std::string NewestSamples() const;

  // Returns the outcome so far, by the logs.
  absl::StatusOr<RunSummary> Summarize(const RunConfig& config) const;
  // Writes summary.json and curves.png from the logs.
  absl::StatusOr<RunSummary> WriteResults(const RunConfig& config) const;

  // Returns the path of the state.safetensors of one peer's newest whole
  // checkpoint.
  absl::StatusOr<std::string> StateFile(uint64_t id) const;
  // Returns the state files of all peers at the newest round that all have.
  // kFailedPrecondition: there is no such round.
  absl::StatusOr<std::vector<std::string>> StateFiles() const;
  // The newest checkpoint's round of each peer, by its name alone; 0: none.
  std::vector<uint64_t> NewestNamed() const;
  // Of one of these files.
  static uint64_t RoundOf(const std::string& state_file);
  // The newest round of which every one of `peers` peers has a whole
  // checkpoint; 0: none.
  uint64_t NewestCommonRound(int peers) const;

 private:
  const std::string path_;
};

// The newest of `rounds`, those of all peers together, that each of `peers`
// has; 0: none.
uint64_t NewestOfAll(std::span<const uint64_t> rounds, size_t peers);

// {"round":..,"consensus_distance":..}, as in consensus.jsonl; behind it, of a
// game of several players, {"players":{"generator":..,..}}.
std::string ConsensusLine(const Consensus& consensus);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_RUN_FOLDER_H_
