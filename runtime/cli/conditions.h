// What a run's numbers depend on beside its configuration: on which network it
// was made, whether its time was real, and how long its steps were said to be.
//
// Kept as conditions.json in the run's folder.  Knows nothing of who asks.

#ifndef GOSSAMER_RUNTIME_CLI_CONDITIONS_H_
#define GOSSAMER_RUNTIME_CLI_CONDITIONS_H_

#include <string>

#include "runtime/lab/scenario.h"

namespace gossamer {

// {"place": "loopback", "lab" or "rehearsal", "step_times": text,
// "memory_rate": GB/s, "scenario": as of --show}, without what the place has
// not got.
std::string LoopbackConditions();
std::string LabConditions(const Scenario& scenario);
// Of StepTimes::source and RehearseOptions::memory_rate.
std::string RehearsalConditions(const Scenario& scenario,
                                const std::string& step_times,
                                double memory_rate);

// What differs, a line for each value ("step_times: "10ms" -> "50ms""), of many
// the first few; empty if nothing does.
std::string ConditionsDifference(const std::string& before,
                                 const std::string& now);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_CONDITIONS_H_
