// gossamer status and gossamer stop: the state of a fleet anywhere, and its
// end.

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/plain_text.h"
#include "nlohmann/json.hpp"
#include "runtime/cli/command.h"
#include "runtime/cli/fleet_client.h"
#include "runtime/telemetry/loss_keys.h"
#include "topology/fleet/event_tally.h"
#include "topology/fleet/losses_message.h"
#include "topology/fleet/service_event.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kStatusExamples[] = R"(examples:
  gossamer status --topology 127.0.0.1:7700
  gossamer status --topology 10.0.0.1:7700 --certs certs/operator
  gossamer status --topology 127.0.0.1:7700 --json | jq .consensus_distance

JSON keys: run, expected, view_epoch, stop_round (0: none), stop_committed,
consensus_distance and consensus_round (null: not known yet), and peers: a list
of peer, address, round, steps, rounds_per_second, a loss of each player once it
has trained a round (generator_loss and discriminator_loss of a GAN; null: not
known), score (or null), bytes_sent, seconds_since_heartbeat,
finished, standing (member, joining, leaving, removed, left), device (of its
parameters: machine/GPU/version of NCCL; null: the CPU), suspected_by,
removals, spoilt (how often it lost its parameters and took the members'
average), events (how often its process has reported each kind of its
events.jsonl that asks for something, where it has).  A peer's round is the one
it is at.  And suspicions, removals, returns, joins, leaves: how often members
came and went.  And service_events: how often the service has refused calls,
peers and unknown hosts, could not save, and took turns with other instances since it
began, by the names in its log.)";

constexpr char kStopExamples[] = R"(examples:
  gossamer stop --topology 10.0.0.1:7700 --certs certs/operator

All peers stop at one round, a little ahead, and save a checkpoint there.
gossamer train --resume, or gossamer-peer --resume on each machine, goes on.)";

struct Options : ServiceQuery {
  double timeout = 5;
};

// Returns the counts by known names, and drops all others that a service may
// send.
std::map<std::string, uint64_t> Troubles(const wire::PeerStatus& peer) {
  EventTally counts;
  counts.CopyFrom(peer.events());
  std::map<std::string, uint64_t> named;
  counts.CopyTo(named);
  return named;
}

Json ToJson(const wire::FleetStatus& s) {
  Json json = {{"run", s.run_id()},
               {"expected", s.expected()},
               {"view_epoch", s.view_epoch()},
               {"stop_round", s.stop_round()},
               {"stop_committed", s.stop_committed()}};
  const bool known = s.has_consensus_distance();
  json["consensus_distance"] = known ? Json(s.consensus_distance()) : Json();
  json["consensus_round"] = known ? Json(s.consensus_round()) : Json();
  json["suspicions"] = s.suspicions();
  json["removals"] = s.removals();
  json["returns"] = s.returns();
  json["joins"] = s.joins();
  json["leaves"] = s.leaves();
  json["service_events"] = Json::object();
  // Every kind has a number, also zero, so that a script may compare without
  // asking whether the key is there.
  for (const EventInfo& event : kServiceEvents) {
    const auto count = s.service_events().find(std::string(event.name));
    json["service_events"][std::string(event.name)] =
        count == s.service_events().end() ? 0 : count->second;
  }
  json["peers"] = Json::array();
  for (const wire::PeerStatus& p : s.peers()) {
    Json peer = {{"peer", p.peer_id()},
                 {"address", p.address()},
                 {"round", p.round()},
                 {"steps", p.steps()},
                 {"rounds_per_second", p.rounds_per_second()}};
    AddLossKeys(Bounded(LossesOf(p)), peer);
    peer["score"] = p.has_score() ? Json(p.score()) : Json();
    peer["bytes_sent"] = p.bytes_sent();
    peer["seconds_since_heartbeat"] = p.seconds_since_heartbeat();
    peer["finished"] = p.finished();
    peer["standing"] = p.standing();
    peer["device"] = p.device().empty() ? Json() : Json(p.device());
    peer["suspected_by"] = p.suspected_by();
    peer["removals"] = p.removals();
    peer["spoilt"] = p.spoilt();
    peer["events"] = Json::object();
    for (const auto& [name, count] : Troubles(p)) peer["events"][name] = count;
    json["peers"].push_back(std::move(peer));
  }
  return json;
}

int RunStatus(const Options& options) {
  const auto certificates =
      OpenCertificates(options.exposure, options.topology);
  if (!certificates.ok()) return PrintError("status", certificates.status());
  const auto status =
      FleetClient(options.topology, *certificates)
          .GetStatus(options.run, absl::Seconds(options.timeout));
  if (!status.ok()) return PrintError("status", status.status());
  if (options.json) {
    std::cout << ToJson(*status).dump(2) << "\n";
    return kOk;
  }
  // The service does not know how many rounds the run has.
  FleetProgress progress =
      ProgressOf(*status, UINT64_MAX,
                 absl::StrCat("run \"", PlainText(status->run_id()),
                              "\", view ", status->view_epoch()));
  for (const std::string& line : FormatPeers(progress, 120)) {
    std::cout << line << "\n";
  }
  std::cout << absl::StrFormat(
      "suspicions %d, removals %d, returns %d, joins %d, leaves %d\n",
      status->suspicions(), status->removals(), status->returns(),
      status->joins(), status->leaves());
  for (const wire::PeerStatus& p : status->peers()) {
    const bool well = p.suspected_by() == 0 && p.spoilt() == 0;
    // Only peers that a person may have to look after get a line.
    if (p.standing() == "member" && well) continue;
    // Texts come from the service, and a terminal would obey escapes in them.
    std::cout << absl::StrFormat(
        "peer %d: %s, suspected by %d, removed %d times, spoilt %d times\n",
        p.peer_id(), PlainText(p.standing()), p.suspected_by(), p.removals(),
        p.spoilt());
  }
  for (const wire::PeerStatus& p : status->peers()) {
    if (p.device().empty()) continue;
    std::cout << absl::StrFormat("peer %d: on a GPU, %s\n", p.peer_id(),
                                 PlainText(p.device()));
  }
  for (const wire::PeerStatus& p : status->peers()) {
    if (const auto troubles = Troubles(p); !troubles.empty()) {
      std::cout << absl::StrFormat(
          "peer %d has reported %s\n", p.peer_id(),
          absl::StrJoin(troubles, ", ", absl::PairFormatter(" ")));
    }
  }
  return kOk;
}

int RunStop(const Options& options) {
  const auto certificates =
      OpenCertificates(options.exposure, options.topology);
  if (!certificates.ok()) return PrintError("stop", certificates.status());
  FleetClient client(options.topology, *certificates);
  const auto round = client.Stop(options.run, absl::Seconds(options.timeout));
  if (!round.ok()) return PrintError("stop", round.status());
  if (options.json) {
    std::cout << Json{{"stop_round", *round}}.dump() << "\n";
  } else {
    std::cout << "the fleet stops at round " << *round << "\n";
  }
  return kOk;
}

void Add(Command& program, CommandSpec spec, int (*run)(const Options&)) {
  // Each of the two commands has options of its own, which live in its `run`.
  auto options = std::make_shared<Options>();
  spec.run = [options, run] { return run(*options); };
  Command& command = program.AddCommand(std::move(spec));
  AddServiceQuery(command, *options);
  command.AddOption(
      "--timeout", &options->timeout, "for the answer",
      {.show_default = true, .value_name = "SECONDS", .positive = true});
}

}  // namespace

void AddStatus(Command& program) {
  Add(program,
      {.name = "status",
       .about = "Show how a fleet is doing",
       .footer = kStatusExamples},
      RunStatus);
  Add(program,
      {.name = "stop",
       .about = "Stop a fleet at a round all agree on",
       .footer = kStopExamples},
      RunStop);
}

}  // namespace gossamer
