// gossamer status and gossamer stop: a look at a fleet anywhere, and its end.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/cli/command.h"
#include "runtime/cli/fleet_client.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kStatusExamples[] = R"(examples:
  gossamer status --topology 10.0.0.1:7700
  gossamer status --topology 10.0.0.1:7700 --json | jq .consensus_distance

JSON keys: run, expected, view_epoch, stop_round (0: none), stop_committed,
consensus_distance and consensus_round (null: not known yet), and peers: a list
of peer, address, round, steps, rounds_per_second, generator_loss,
discriminator_loss, score (or null), bytes_sent, seconds_since_heartbeat,
finished.  A peer's round is the one it is at.)";

constexpr char kStopExamples[] = R"(examples:
  gossamer stop --topology 10.0.0.1:7700

All peers stop at one round, a little ahead, and save a checkpoint there.
gossamer train --resume, or gossamer-peer --resume on each machine, goes on.)";

struct Options {
  std::string topology;
  std::string run;
  double timeout = 5;
  bool json = false;
};

Json ToJson(const wire::FleetStatus& s) {
  Json json = {{"run", s.run_id()},
               {"expected", s.expected()},
               {"view_epoch", s.view_epoch()},
               {"stop_round", s.stop_round()},
               {"stop_committed", s.stop_committed()}};
  const bool known = s.has_consensus_distance();
  json["consensus_distance"] = known ? Json(s.consensus_distance()) : Json();
  json["consensus_round"] = known ? Json(s.consensus_round()) : Json();
  json["peers"] = Json::array();
  for (const wire::PeerStatus& p : s.peers()) {
    Json peer = {{"peer", p.peer_id()},
                 {"address", p.address()},
                 {"round", p.round()},
                 {"steps", p.steps()},
                 {"rounds_per_second", p.rounds_per_second()},
                 {"generator_loss", p.generator_loss()},
                 {"discriminator_loss", p.discriminator_loss()}};
    peer["score"] = p.has_score() ? Json(p.score()) : Json();
    peer["bytes_sent"] = p.bytes_sent();
    peer["seconds_since_heartbeat"] = p.seconds_since_heartbeat();
    peer["finished"] = p.finished();
    json["peers"].push_back(std::move(peer));
  }
  return json;
}

int RunStatus(const Options& options) {
  const auto status =
      FleetClient(options.topology)
          .GetStatus(options.run, absl::Seconds(options.timeout));
  if (!status.ok()) return Complain("status", status.status());
  if (options.json) {
    std::cout << ToJson(*status).dump(2) << "\n";
    return kOk;
  }
  // The service does not know how many rounds there will be.
  FleetProgress progress =
      ProgressOf(*status, UINT64_MAX,
                 absl::StrCat("run \"", status->run_id(), "\", view ",
                              status->view_epoch()));
  for (const std::string& line : FormatPeers(progress, 120)) {
    std::cout << line << "\n";
  }
  return kOk;
}

int RunStop(const Options& options) {
  FleetClient client(options.topology);
  const auto round = client.Stop(options.run, absl::Seconds(options.timeout));
  if (!round.ok()) return Complain("stop", round.status());
  if (options.json) {
    std::cout << Json{{"stop_round", *round}}.dump() << "\n";
  } else {
    std::cout << "the fleet stops at round " << *round << "\n";
  }
  return kOk;
}

std::shared_ptr<Options> AddOptions(CLI::App& command) {
  auto options = std::make_shared<Options>();
  command.add_option("--topology", options->topology, "topology service")
      ->required()
      ->type_name("HOST:PORT");
  command.add_option("--run", options->run,
                     "name of the run; the service's only one if not given");
  command.add_option("--timeout", options->timeout, "for the answer")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--json", options->json, "answer as JSON");
  return options;
}

}  // namespace

void AddStatus(CLI::App& app, int& code) {
  CLI::App* status = app.add_subcommand("status", "Show how a fleet is doing");
  auto status_options = AddOptions(*status);
  status->footer(kStatusExamples);
  status->callback(
      [status_options, &code] { code = RunStatus(*status_options); });

  CLI::App* stop =
      app.add_subcommand("stop", "Stop a fleet at a round all agree on");
  auto stop_options = AddOptions(*stop);
  stop->footer(kStopExamples);
  stop->callback([stop_options, &code] { code = RunStop(*stop_options); });
}

}  // namespace gossamer
