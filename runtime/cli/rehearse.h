// A lab without a lab: a training that is predicted in virtual time, as a run's
// folder or as its rounds.
//
// This header knows where step times come from (a flag, the configuration,
// another run); nothing of what happens in a round.

#ifndef GOSSAMER_RUNTIME_CLI_REHEARSE_H_
#define GOSSAMER_RUNTIME_CLI_REHEARSE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/run.pb.h"
#include "runtime/base/command_line.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/run_folder.h"
#include "runtime/lab/scenario.h"
#include "runtime/sim/fleet_event.h"
#include "runtime/telemetry/metrics.h"

namespace gossamer {

struct RehearseOptions {
  std::string step_time;  // empty: the configuration's
  std::string steps_of;   // a run's folder; empty: none
  std::optional<uint64_t> parameters;
  std::vector<std::string> at;  // of ParseFleetEvent
};

// Adds the options that say how long steps take; `when` goes before their
// help.
void AddStepOptions(Command& command, const std::string& when,
                    RehearseOptions& options);

// The bytes a second that optimizer and codecs read and write, unless measured
// steps have them.
inline constexpr double kRehearsedMemoryRate = 15e9;

// The times that gradients take.
struct StepTimes {
  std::string source;  // for people: "40ms", "measured in runs/a"
  // Of ranks, which repeat: those of a measured run in any order.
  std::vector<std::vector<absl::Duration>> by_rank;
  bool whole = false;  // optimizer and codecs are in them
};

// Makes `config` one that can be rehearsed, a synthetic game of as many
// parameters in place of networks, and says how long its steps take.
// kInvalidArgument: what is missing and how to give it.
absl::StatusOr<StepTimes> PrepareRehearsal(const RehearseOptions& options,
                                           RunConfig& config);

// kInvalidArgument: an event that cannot be read.
absl::StatusOr<std::vector<FleetEvent>> FleetEventsOf(
    const RehearseOptions& options);

// The refusals of the parts of a prepared configuration, without a run.
absl::Status CheckRehearsal(const RunConfig& config, const Scenario& scenario);

// The properties of a scenario that a rehearsal leaves out, a line each for
// people.
std::vector<std::string> LeftOutOfRehearsals(const Scenario& scenario);

// A rehearsal that leaves no files.  The later half of its rounds is counted,
// when `auto` has found its choice.
struct RehearsedRounds {
  std::vector<std::vector<RoundMetrics>> by_rank;
  uint64_t counted = 0;  // rounds of the later half
  // Over some twenty of these: the mean of 1/M sum_i ||x_i - mean||^2.
  double consensus_distance = 0;
  std::vector<std::vector<uint64_t>> bytes;  // [from][to], in these
};

// Shows nothing and may run on any thread.  `go_on` is asked after every round
// of the first peer, with its number; kAborted if it says no.
absl::StatusOr<RehearsedRounds> RehearseRounds(
    const RunConfig& config, const Scenario& scenario, const StepTimes& steps,
    absl::FunctionRef<bool(uint64_t round)> go_on);

// Writes the files of a run in gossamer lab, but for checkpoints and samples,
// and events.json if the fleet has events.  Shows progress on stderr. kAborted
// after a second signal; a first one ends the run at an agreed round.
absl::Status Rehearse(const RunConfig& config, const Scenario& scenario,
                      const StepTimes& steps, const RehearseOptions& options,
                      const RunFolder& folder, SignalWaiter& signals);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_REHEARSE_H_
