// gossamer lab: a WAN on this machine, and a fleet or any program in it.

#include "runtime/lab/lab.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/base/plain_file.h"
#include "runtime/base/steady_time.h"
#include "runtime/cli/command.h"
#include "runtime/cli/conditions.h"
#include "runtime/cli/lab_check.h"
#include "runtime/cli/lab_report.h"
#include "runtime/cli/rehearse.h"
#include "runtime/cli/train.h"
#include "runtime/config/run_config.h"
#include "runtime/lab/scenario.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

// The time between asking commands to end and killing them.
constexpr absl::Duration kGrace = absl::Seconds(10);

constexpr char kExamples[] = R"(examples:
  gossamer lab --scenario deploy/lab/three_continents.textproto --show
  gossamer lab --scenario deploy/lab/wan_200ms_100mbit.textproto --check --hosts 2
  gossamer lab --scenario deploy/lab/wan_100ms.textproto \
      --config deploy/configs/synthetic.textproto --set peers=8
  gossamer lab --scenario deploy/lab/slow_peer.textproto \
      --exec 'echo "I am $LAB_ADDRESS, rank $LAB_RANK of $LAB_SIZE: $LAB_HOSTS"'
  gossamer lab --rehearse --scenario deploy/lab/three_continents.textproto \
      --config deploy/configs/synthetic.textproto --set peers=6
  gossamer lab --rehearse --scenario deploy/lab/wan_100ms.textproto \
      --config deploy/configs/quickstart.textproto --steps-of runs/quickstart-1
  gossamer lab --rehearse --scenario deploy/lab/wan_100ms.textproto \
      --config deploy/configs/synthetic.textproto --parameters 1000 \
      --step-time 200ms --set peers=100 --set rounds=300 \
      --at '10s join 20' --at '20s lose 10' --at '40s service-down 10s'

--rehearse predicts the run in virtual time and needs no privileges: the real
peers, codecs and service over simulated links, with steps as long as the
configuration or --step-time says, or as they were in the run --steps-of.  In
place of networks it takes a synthetic game of their size, so it predicts times,
bytes and waiting, but no scores.

Everything else needs root; where user namespaces are allowed, this does:
  unshare --user --map-root-user --net --pid --fork --mount-proc gossamer lab ...
Ctrl-C ends a fleet as in gossamer train; nothing of a lab outlives it.  With
--exec, the exit code is 1 unless every command ended with 0.  --json: of --show
name, seed, mtu, tcp, hosts, links; of --check pairs; of --exec hosts and
network; of --config as in gossamer train, and network.json beside it.)";

struct Options {
  TrainOptions train;
  std::string scenario;
  std::string exec;
  std::string out;
  std::optional<int> hosts;
  bool show = false;
  bool check = false;
  bool rehearse = false;
  RehearseOptions rehearsal;
};

absl::Status CheckOptions(const Options& options) {
  const int modes = options.show + options.check + !options.exec.empty() +
                    !options.train.config.empty();
  if (modes != 1) {
    return absl::InvalidArgumentError(
        "say what to do: exactly one of --config, --exec, --check and --show");
  }
  if (options.rehearse && options.train.config.empty()) {
    return absl::InvalidArgumentError("--rehearse needs a --config to train");
  }
  if (!options.rehearse &&
      (!options.rehearsal.step_time.empty() ||
       !options.rehearsal.steps_of.empty() || options.rehearsal.parameters ||
       !options.rehearsal.at.empty())) {
    return absl::InvalidArgumentError(
        "--step-time, --steps-of, --parameters and --at are of --rehearse");
  }
  if (options.rehearse && options.train.resume) {
    return absl::InvalidArgumentError(
        "--rehearse has no checkpoints to resume");
  }
  return absl::OkStatus();
}

// Loads the scenario with the hosts that are asked for, or that a fleet needs.
absl::StatusOr<Scenario> LoadNetwork(const Options& options) {
  std::optional<uint32_t> hosts;
  if (options.hosts) hosts = static_cast<uint32_t>(*options.hosts);
  if (!options.train.config.empty()) {
    // The file is read here for its number of peers alone; PrepareTraining()
    // reads it for the run.
    GOSSAMER_ASSIGN_OR_RETURN(
        const RunConfig config,
        LoadRunConfig(options.train.config, options.train.set));
    GOSSAMER_ASSIGN_OR_RETURN(const auto events,
                              FleetEventsOf(options.rehearsal));
    GOSSAMER_RETURN_IF_ERROR(
        CheckFleetEvents(events, config.peers(), !IsCentralized(config)));
    const uint32_t peers = config.peers() + Joiners(events);
    if (hosts && *hosts < peers) {
      return absl::InvalidArgumentError(
          absl::StrCat("--hosts ", *hosts, ": the fleet has ", peers,
                       " peers; leave it out, or lower --set peers="));
    }
    // A fleet needs one host a peer, and no more are made.
    hosts = peers;
  }
  return LoadScenario(options.scenario, hosts);
}

absl::Status WriteNetworkFile(const std::string& folder,
                              const SwitchReport& report,
                              const Scenario& scenario) {
  nlohmann::ordered_json json = NetworkJson(report, scenario.hosts.size());
  json["scenario"] = nlohmann::ordered_json::parse(ScenarioJson(scenario));
  return WriteTextFile(folder + "/network.json", json.dump(2) + "\n");
}

ProcessPlace PlaceOf(const Lab& lab, size_t rank) {
  return {.network = lab.Network(rank), .processes = lab.Processes()};
}

// A run's folder is its name in --runs, so the path of --out is taken apart.
void PlaceRun(Options& options) {
  if (options.out.empty()) return;
  const std::filesystem::path out =
      std::filesystem::absolute(options.out).lexically_normal();
  options.train.runs = out.parent_path().string();
  options.train.name = out.filename().string();
}

int RunRehearsal(Options options, const Scenario& scenario,
                 SignalWaiter& signals) {
  PlaceRun(options);
  StepTimes steps;
  // The configuration is changed after it is loaded and before its folder is
  // made, so the folder has the one that was rehearsed.
  options.train.adapt = [&](RunConfig& config) -> absl::Status {
    GOSSAMER_ASSIGN_OR_RETURN(steps,
                              PrepareRehearsal(options.rehearsal, config));
    return absl::OkStatus();
  };
  const absl::StatusOr<FleetSpec> spec = PrepareTraining(options.train);
  if (!spec.ok()) return PrintError("lab", spec.status());
  const RunFolder folder(spec->run_folder);
  const absl::Status status = Rehearse(spec->config, scenario, steps,
                                       options.rehearsal, folder, signals);
  return ShowResults("lab", status, folder, spec->config, options.train.json);
}

int RunTraining(Options options, const Scenario& scenario, Lab& lab,
                SignalWaiter& signals) {
  PlaceRun(options);
  // GPUs of this machine would exchange past the network that is asked about.
  options.train.adapt = [](RunConfig& config) -> absl::Status {
    if (config.transport() == "nccl") {
      return absl::InvalidArgumentError(
          "transport is nccl, which goes past the lab's network: leave it out");
    }
    config.set_transport("grpc");
    return absl::OkStatus();
  };
  absl::StatusOr<FleetSpec> spec = PrepareTraining(options.train);
  if (!spec.ok()) return PrintError("lab", spec.status());
  spec->conditions = LabConditions(scenario);
  absl::StrAppend(&spec->title, "  in ", scenario.name);
  for (size_t rank = 0; rank < lab.hosts(); ++rank) {
    // Ranks and hosts go in one order; the topology service is on the first
    // host.
    spec->hosts.push_back({lab.Address(rank), PlaceOf(lab, rank)});
  }
  const std::string folder = spec->run_folder;
  // The network's totals are written also after a failure, beside the logs that
  // it explains.
  const int code = Train("lab", *std::move(spec), options.train, signals);
  const SwitchReport& report = lab.Stop();
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) {
    const absl::Status written = WriteNetworkFile(folder, report, scenario);
    if (!written.ok()) return PrintError("lab", written);
  }
  if (code == kOk && !options.train.json) std::cout << NetworkText(report);
  return code;
}

absl::StatusOr<ProcessSpec> CommandOn(const Options& options, const Lab& lab,
                                      size_t rank) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < lab.hosts(); ++i) addresses.push_back(lab.Address(i));
  ProcessSpec spec{
      .name = absl::StrCat("rank ", rank),
      .argv = {"/bin/sh", "-c", options.exec},
      .log = "",
      .place = PlaceOf(lab, rank),
      .env = {absl::StrCat("LAB_RANK=", rank),
              absl::StrCat("LAB_SIZE=", lab.hosts()),
              absl::StrCat("LAB_ADDRESS=", lab.Address(rank)),
              absl::StrCat("LAB_HOSTS=", absl::StrJoin(addresses, ","))}};
  if (options.out.empty()) return spec;
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  spec.log = absl::StrCat(options.out, "/rank-", rank, ".log");
  // Logs are appended to, and this one is of a new run.
  std::filesystem::remove(spec.log, error);
  return spec;
}

// Waits until all commands have ended.  A first signal asks them to end; a
// second one, or their delay, kills them.  Returns the exits by rank, without
// the commands that were killed.
absl::StatusOr<std::vector<ProcessExit>> WaitForCommands(
    std::vector<std::unique_ptr<ProcessGroup>>& commands,
    SignalWaiter& signals) {
  std::vector<ProcessExit> exits(commands.size());
  size_t left = commands.size();
  absl::Time asked = absl::InfiniteFuture();
  while (left > 0) {
    const std::optional<int> signal = signals.Wait(absl::Milliseconds(200));
    for (size_t i = 0; i < commands.size(); ++i) {
      for (ProcessExit& exit : commands[i]->Reap()) {
        exits[i] = std::move(exit);
        --left;
      }
    }
    if (signal) {
      // This is the second signal.
      if (asked != absl::InfiniteFuture()) break;
      std::cerr << "gossamer lab: asking the commands to end; a second signal "
                   "ends them at once\n";
      for (auto& command : commands) command->Signal(*signal);
      asked = SteadyNow();
    }
    if (SteadyNow() - asked > kGrace) break;
  }
  if (asked == absl::InfiniteFuture()) return exits;
  std::string what = "stopped by a signal";
  for (auto& command : commands) {
    const std::string killed = command->Kill(SteadyNow() - asked);
    if (!killed.empty()) absl::StrAppend(&what, "; ", killed);
  }
  return absl::AbortedError(what);
}

void PrintExits(const std::vector<ProcessExit>& exits, const Scenario& scenario,
                const SwitchReport& report, bool json) {
  if (!json) {
    for (size_t i = 0; i < exits.size(); ++i) {
      std::cerr << scenario.hosts[i].name << " (rank " << i << ") "
                << exits[i].Describe() << "\n";
    }
    std::cerr << NetworkText(report);
    return;
  }
  nlohmann::ordered_json result = {{"hosts", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < exits.size(); ++i) {
    result["hosts"].push_back({{"rank", i},
                               {"name", scenario.hosts[i].name},
                               {"address", LabAddress(i)},
                               {"code", exits[i].code},
                               {"signal", exits[i].signal}});
  }
  result["network"] = NetworkJson(report, exits.size());
  std::cout << result.dump(2) << "\n";
}

int RunCommands(const Options& options, const Scenario& scenario, Lab& lab,
                SignalWaiter& signals) {
  std::vector<std::unique_ptr<ProcessGroup>> commands;
  for (size_t rank = 0; rank < lab.hosts(); ++rank) {
    // A group per host tells whose exit it is, and one that never started
    // leaves those before it to the destructors, which end them.
    commands.push_back(std::make_unique<ProcessGroup>());
    absl::StatusOr<ProcessSpec> spec = CommandOn(options, lab, rank);
    const absl::Status started =
        spec.ok() ? commands.back()->Start(*spec) : spec.status();
    if (!started.ok()) return PrintError("lab", started);
  }
  const auto exits = WaitForCommands(commands, signals);
  commands.clear();  // kills the remaining ones
  // The counts are final once the switch has stopped.
  const SwitchReport& report = lab.Stop();
  if (!exits.ok()) return PrintError("lab", exits.status());
  PrintExits(*exits, scenario, report, options.train.json);
  for (const ProcessExit& exit : *exits) {
    if (!exit.ok()) return kFailed;
  }
  return kOk;
}

int RunCheck(const Scenario& scenario, Lab& lab, SignalWaiter& signals,
             bool json) {
  const absl::Status status = CheckLab(lab, scenario, signals, json);
  const SwitchReport& report = lab.Stop();
  if (!status.ok()) return PrintError("lab", status);
  if (!json) std::cout << NetworkText(report);
  return kOk;
}

// Adds the alternative to the error of a training for which no lab can be made.
absl::Status WithTheWayOut(const absl::Status& no_lab, const Options& options) {
  if (options.train.config.empty()) return no_lab;
  return {no_lab.code(),
          absl::StrCat(no_lab.message(),
                       "\nwithout root and without a lab, --rehearse (also of "
                       "gossamer compare) predicts the run's times, bytes and "
                       "waiting")};
}

int RunLab(const Options& options) {
  // Signals are blocked before the lab starts its threads.
  SignalWaiter signals;
  if (const absl::Status wrong = CheckOptions(options); !wrong.ok()) {
    return PrintError("lab", wrong);
  }
  absl::StatusOr<Scenario> scenario = LoadNetwork(options);
  if (!scenario.ok()) return PrintError("lab", scenario.status());
  if (!options.rehearse && scenario->hosts.size() > kMaxLabHosts) {
    return PrintError(
        "lab",
        absl::InvalidArgumentError(absl::StrCat(
            scenario->hosts.size(), " hosts are more than ", kMaxLabHosts,
            ", which a lab on one machine has: take fewer, "
            "or --rehearse")));
  }
  if (options.show) {
    std::cout << (options.train.json ? ScenarioJson(*scenario) + "\n"
                                     : ScenarioText(*scenario));
    return kOk;
  }
  // A rehearsal needs no lab, and so no privileges.
  if (options.rehearse) return RunRehearsal(options, *scenario, signals);
  if (options.check) {
    // The check measures a link while it is up.
    for (auto& row : scenario->links.specs()) {
      for (LinkSpec& link : row) link.outages.clear();
    }
  }
  absl::StatusOr<std::unique_ptr<Lab>> lab = Lab::Start(*scenario);
  if (!lab.ok()) return PrintError("lab", WithTheWayOut(lab.status(), options));
  if (options.check) {
    return RunCheck(*scenario, **lab, signals, options.train.json);
  }
  return options.exec.empty() ? RunTraining(options, *scenario, **lab, signals)
                              : RunCommands(options, *scenario, **lab, signals);
}

}  // namespace

void AddLab(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.AddCommand(
      {.name = "lab",
       .about = "Train, or run anything, across a WAN made on this machine",
       .footer = kExamples,
       .run = [options] { return RunLab(*options); }});
  command.AddOption("--scenario", &options->scenario,
                    "the network: hosts and links",
                    {.required = true, .value_name = "FILE"});
  command.AddOption("--exec", &options->exec,
                    "run this shell command on every host at once",
                    {.value_name = "COMMAND"});
  command.AddOption("--check", &options->check,
                    "measure every link, beside what was asked");
  command.AddOption("--show", &options->show,
                    "print the links of every pair; needs no privileges");
  command.AddOption("--rehearse", &options->rehearse,
                    "predict the run of --config in virtual time; needs no "
                    "privileges");
  AddStepOptions(command, "with --rehearse: ", options->rehearsal);
  command.AddOption(
      "--at", &options->rehearsal.at,
      "with --rehearse: what happens to the fleet at a time, "
      "\"30s join 1000\", \"60s lose 100\" (as by kill -9), "
      "\"90s service-down 20s\" or \"60s links ocean\" (all links "
      "like that preset); may be given again",
      {.value_name = "EVENT", .one_at_a_time = true});
  command.AddOption("--hosts", &options->hosts,
                    "how many, where the scenario leaves it open; else the "
                    "first ones",
                    {.range = std::pair(2.0, double{kMaxPeers})});
  command.AddOption("--out", &options->out,
                    "the run's folder, instead of --runs and --name; with "
                    "--exec the folder of the hosts' output",
                    {.value_name = "DIR"});
  AddTrainingOptions(command, options->train,
                     "name of this run, its folder in --runs",
                     /*config_required=*/false);
  command.AddOption("--resume", &options->train.resume,
                    "go on from the newest common checkpoint");
  command.AddOption("--overwrite", &options->train.overwrite,
                    "replace a run of the same name", {.excludes = "--resume"});
}

}  // namespace gossamer
