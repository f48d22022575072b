// Checks of what a machine must have to train well, and of what would improve
// it.
//
// Changes nothing; knows nothing of any run.

#ifndef GOSSAMER_RUNTIME_CLI_MACHINE_CHECKS_H_
#define GOSSAMER_RUNTIME_CLI_MACHINE_CHECKS_H_

#include <string>
#include <vector>

namespace gossamer {

enum class CheckLevel {
  kOk,
  kWarn,  // works, but slower or in part
  kFail,  // some function will not work
};

struct CheckResult {
  std::string name;  // "memory"; a stable key
  CheckLevel level = CheckLevel::kOk;
  std::string found = "";   // "23.4 GB free of 25.1 GB"
  std::string why = "";     // why it matters
  std::string advice = "";  // what to do; empty if ok
};

// Runs all checks, in a fixed order.  `runs` is the folder for future runs.
std::vector<CheckResult> CheckMachine(const std::string& runs);

// Returns "ok", "warn" or "fail".
std::string ToString(CheckLevel level);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_MACHINE_CHECKS_H_
