// The conditions that a run's numbers depend on beside its configuration: its
// network, whether its time was real, and the assumed length of its steps.
//
// They are kept as conditions.json in the run's folder.  This header knows
// nothing of who uses them.

#ifndef GOSSAMER_RUNTIME_CLI_CONDITIONS_H_
#define GOSSAMER_RUNTIME_CLI_CONDITIONS_H_

#include <string>
#include <vector>

#include "runtime/lab/scenario.h"

namespace gossamer {

// Return {"place": "loopback", "lab" or "rehearsal", "step_times": text,
// "memory_rate": GB/s, "events": texts, "scenario": as of --show}, without the
// keys that the place does not have.
std::string LoopbackConditions();
std::string LabConditions(const Scenario& scenario);
// `step_times` is StepTimes::source, and `events` RehearseOptions::at.
std::string RehearsalConditions(const Scenario& scenario,
                                const std::string& step_times,
                                const std::vector<std::string>& events = {});

// Returns the differences, a line for each value ("step_times: "10ms" ->
// "50ms""), the first few of many; "" without a difference.
std::string ConditionsDifference(const std::string& before,
                                 const std::string& now);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_CONDITIONS_H_
