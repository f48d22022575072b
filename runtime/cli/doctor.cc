// gossamer doctor: checks whether this machine is fit to train.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/cli/command.h"
#include "runtime/cli/machine_checks.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kExamples[] = R"(examples:
  gossamer doctor
  gossamer doctor --json | jq '.checks[] | select(.level != "ok")'

JSON keys: level (the worst) and checks: a list of name, level (ok, warn,
fail), found, why, advice.  Exit code 1 if a check fails; warnings are fine.)";

struct Options {
  std::string runs = "runs";
  bool json = false;
};

int RunDoctor(const Options& options) {
  const std::vector<CheckResult> checks = CheckMachine(options.runs);
  CheckLevel worst = CheckLevel::kOk;
  Json json = {{"level", ""}, {"checks", Json::array()}};
  for (const CheckResult& c : checks) {
    worst = std::max(worst, c.level);
    json["checks"].push_back({{"name", c.name},
                              {"level", ToString(c.level)},
                              {"found", c.found},
                              {"why", c.why},
                              {"advice", c.advice}});
  }
  json["level"] = ToString(worst);
  if (options.json) {
    // Names from /proc need not be UTF-8.
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace)
              << "\n";
  } else {
    for (const CheckResult& c : checks) {
      absl::PrintF("%-4s  %-18s %s\n", ToString(c.level), c.name, c.found);
      if (c.level == CheckLevel::kOk) continue;
      absl::PrintF("      why: %s\n      do:  %s\n", c.why, c.advice);
    }
    std::cout << (worst == CheckLevel::kFail ? "not fit: see fail above\n"
                                             : "fit to train\n");
  }
  // Warnings leave the exit code alone: a script may run doctor before
  // training.
  return worst == CheckLevel::kFail ? kFailed : kOk;
}

}  // namespace

void AddDoctor(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command =
      program.AddCommand({.name = "doctor",
                          .about = "Check this machine and say what to change",
                          .footer = kExamples,
                          .run = [options] { return RunDoctor(*options); }});
  command.AddOption("--runs", &options->runs, "where runs will be written",
                    {.show_default = true, .value_name = "DIR"});
  command.AddOption("--json", &options->json, "answer as JSON");
}

}  // namespace gossamer
