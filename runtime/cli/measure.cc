// gossamer measure: the network between the members of a running fleet.

#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/base/plain_file.h"
#include "runtime/base/steady_time.h"
#include "runtime/cli/command.h"
#include "runtime/cli/fleet_client.h"
#include "runtime/cli/survey_network.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(500);
// Longer than any survey: a slot has its own limit at the service.
constexpr absl::Duration kLimit = absl::Hours(1);

constexpr char kExamples[] = R"(examples:
  gossamer measure --topology 10.0.0.1:7700 --certs certs/operator \
      --out ours.textproto
  gossamer plan --scenario ours.textproto --config ours-training.textproto \
      --parameters 2258308 --step-time 40ms

Writes a scenario, which gossamer plan, lab and lab --rehearse read.  The
members measure while they train, every pair once, a pair per peer at a time:
the least of eight small messages there and back, and the fastest of three large
ones.  The fleet's own traffic shares the links, so rates are what is left
beside it.

JSON keys: names, rtt_ms, mbit (rows from, columns to; 0: no limit was seen),
busy_seconds (of a round without its waiting; 0: not known).)";

struct Options : ServiceQuery {
  std::string out;
};

void ShowSlot(const wire::LinkSurveyStatus& status, absl::Time began) {
  // Slots take about as long as each other: each measures a pair of every peer.
  const absl::Duration taken = SteadyNow() - began;
  std::string left;
  if (status.turn() > 0) {
    left = absl::StrCat(
        ", about ",
        HumanDuration(taken / status.turn() * (status.turns() - status.turn())),
        " left");
  }
  std::cerr << "measuring: turn " << status.turn() + 1 << " of "
            << status.turns() << left << "\n";
}

// Has every pair measure its two directions, one pair per peer at a time, and
// waits for that; progress goes to stderr.  kUnavailable names directions that
// were not measured.
absl::StatusOr<MeasuredNetwork> MeasureNetwork(FleetClient& client,
                                               const std::string& run) {
  const absl::Time began = SteadyNow();
  GOSSAMER_ASSIGN_OR_RETURN(wire::LinkSurveyStatus status,
                            // A survey that another operator has begun goes on,
                            // and this command waits for its end.
                            client.MeasureLinks(run, /*start=*/true));
  uint32_t shown = 0;
  ShowSlot(status, began);
  while (status.turn() < status.turns()) {
    if (SteadyNow() - began > kLimit) {
      return absl::DeadlineExceededError("the survey does not end");
    }
    absl::SleepFor(kPollInterval);
    GOSSAMER_ASSIGN_OR_RETURN(status,
                              client.MeasureLinks(run, /*start=*/false));
    // Each slot has one line, not each poll.
    if (status.turn() != shown && status.turn() < status.turns()) {
      shown = status.turn();
      ShowSlot(status, began);
    }
  }
  return NetworkOf(status);
}

int RunMeasure(const Options& options) {
  const auto certificates =
      OpenCertificates(options.exposure, options.topology);
  if (!certificates.ok()) return PrintError("measure", certificates.status());
  FleetClient client(options.topology, *certificates);
  const auto measured = MeasureNetwork(client, options.run);
  if (!measured.ok()) return PrintError("measure", measured.status());
  std::string text = ScenarioFileOf(*measured);
  if (options.json) {
    text = nlohmann::ordered_json{{"names", measured->names},
                                  {"rtt_ms", measured->rtt_ms},
                                  {"mbit", measured->mbit},
                                  {"busy_seconds", measured->busy_seconds}}
               .dump(2) +
           "\n";
  }
  if (options.out.empty()) {
    std::cout << text;
    return kOk;
  }
  const absl::Status written = WriteTextFile(options.out, text);
  return written.ok() ? kOk : PrintError("measure", written);
}

}  // namespace

void AddMeasure(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.AddCommand(
      {.name = "measure",
       .about = "Have a running fleet measure the network between its members",
       .footer = kExamples,
       .run = [options] { return RunMeasure(*options); }});
  AddServiceQuery(command, *options);
  command.AddOption("--out", &options->out, "file, instead of stdout",
                    {.value_name = "FILE"});
}

}  // namespace gossamer
