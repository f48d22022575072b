#include "runtime/cli/local_fleet.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/steady_time.h"
#include "runtime/cli/command.h"

namespace gossamer {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(30);
// This is often enough for a display, and seldom beside the heartbeats of the
// peers.
constexpr absl::Duration kPollEvery = absl::Milliseconds(500);
// The time between asking processes to end and killing them.
constexpr absl::Duration kGrace = absl::Seconds(10);
// The last lines of a failed process's log are shown with its name: few enough
// for a screen.
constexpr int kTailLines = 15;

// Returns the port in a port file; nothing while there is no file.
std::optional<int> ReadPort(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  int port = 0;
  if (!std::getline(file, text) || !absl::SimpleAtoi(text, &port)) {
    return std::nullopt;
  }
  return port;
}

}  // namespace

LocalFleet::LocalFleet(FleetSpec spec, SignalWaiter& signals,
                       ProgressDisplay& display)
    : spec_(std::move(spec)),
      folder_(spec_.run_folder),
      signals_(signals),
      display_(display) {
  progress_.title = spec_.title;
  progress_.rounds = spec_.config.rounds();
  progress_.note = "starting";
}

absl::Status LocalFleet::Run() {
  GOSSAMER_RETURN_IF_ERROR(folder_.Create(spec_.config, spec_.conditions));
  GOSSAMER_ASSIGN_OR_RETURN(consensus_,
                            LineFile::Open(folder_.ConsensusPath()));
  GOSSAMER_RETURN_IF_ERROR(StartTopology());
  GOSSAMER_RETURN_IF_ERROR(StartPeers());
  absl::Time next_poll = SteadyNow() + kPollEvery;
  // One loop serves exits, signals and the display: a signal or a child's end
  // wakes it at once.
  for (bool done = false;;) {
    const std::optional<int> signal =
        signals_.Wait(std::max(absl::ZeroDuration(), next_poll - SteadyNow()));
    // Exits come before signals: a fleet that has just ended well is not
    // stopped.
    GOSSAMER_RETURN_IF_ERROR(HandleExits(done));
    if (done) break;
    if (signal) GOSSAMER_RETURN_IF_ERROR(HandleSignal());
    if (SteadyNow() < next_poll) continue;
    Poll();
    next_poll = SteadyNow() + kPollEvery;
  }
  // The service outlives the peers: they report their end to it.
  const std::string killed = EndTopology();
  ShowEnd();
  if (killed.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("every peer has ended well; ", killed));
}

void LocalFleet::ShowEnd() {
  // The logs are complete, and the service may already be gone.
  const auto logs = folder_.ReadLogs();
  if (logs.ok() && logs->size() == progress_.peers.size()) {
    for (size_t i = 0; i < logs->size(); ++i) {
      const std::vector<RoundMetrics>& rounds = (*logs)[i].rounds;
      PeerProgress& peer = progress_.peers[i];
      peer.finished = true;
      for (const RoundMetrics& m : rounds) {
        peer.round = m.round;
        if (!m.scores.empty()) peer.score = m.scores.back().value;
      }
    }
  }
  progress_.note.clear();
  display_.Finish(progress_);
}

const FleetHost& LocalFleet::HostOf(uint32_t rank) const {
  static const FleetHost kLoopback;
  return spec_.hosts.empty() ? kLoopback : spec_.hosts[rank];
}

ProcessSpec LocalFleet::ProcessOn(const FleetHost& host,
                                  const std::string& name,
                                  const std::string& log,
                                  std::vector<std::string> argv) const {
  // No other program is on the network of such a host.
  if (!spec_.hosts.empty()) argv.push_back("--insecure");
  return {.name = name,
          .argv = std::move(argv),
          .log = folder_.LogPath(log),
          .place = host.place};
}

absl::Status LocalFleet::StartTopology() {
  const std::string port_file = folder_.path() + "/topology.port";
  std::error_code error;
  // A port file of an earlier run would send the peers to a wrong port.
  std::filesystem::remove(port_file, error);
  // The stored members and stop round are for restarts of the service alone.  A
  // fleet that starts again, from checkpoints or from nothing, agrees on them
  // anew.
  std::filesystem::remove_all(folder_.path() + "/topology", error);
  const FleetHost& host = HostOf(0);
  GOSSAMER_RETURN_IF_ERROR(topology_.Start(ProcessOn(
      host, "the topology service", "topology",
      {SiblingProgram("gossamer-topology"), "--listen", host.address + ":0",
       "--port-file", port_file, "--config", folder_.ConfigPath(), "--state",
       folder_.path() + "/topology", "--exit-when-finished"})));
  const absl::Time limit = SteadyNow() + kStartLimit;
  for (;;) {
    if (const std::optional<int> port = ReadPort(port_file)) {
      address_ = absl::StrCat(host.address, ":", *port);
      return absl::OkStatus();
    }
    if (const auto exits = topology_.Reap(); !exits.empty()) {
      return DescribeFailure(exits[0]);
    }
    if (SteadyNow() > limit) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the topology service did not start within ",
          HumanDuration(kStartLimit), "; see ", folder_.LogPath("topology")));
    }
    const std::optional<int> signal = signals_.Wait(absl::Milliseconds(20));
    if (signal) GOSSAMER_RETURN_IF_ERROR(HandleSignal());
  }
}

absl::Status LocalFleet::StartPeers() {
  for (uint32_t rank = 0; rank < spec_.config.peers(); ++rank) {
    const FleetHost& host = HostOf(rank);
    // Every process takes a free port, so fleets on one machine do not meet.
    ProcessSpec peer = ProcessOn(
        host, absl::StrCat("peer ", rank + 1), absl::StrCat("peer-", rank + 1),
        {SiblingProgram("gossamer-peer"), "--topology", address_, "--config",
         folder_.ConfigPath(), "--id", absl::StrCat(rank + 1), "--listen",
         host.address + ":0", "--run-dir", folder_.path()});
    if (!spec_.data.empty()) {
      peer.argv.push_back("--data");
      peer.argv.push_back(spec_.data);
    }
    if (spec_.resume) peer.argv.push_back("--resume");
    if (!spec_.replay.empty()) {
      peer.argv.insert(peer.argv.end(),
                       {"--replay", absl::StrCat(spec_.replay, "/peer-",
                                                 rank + 1, "/decisions.log")});
    }
    GOSSAMER_RETURN_IF_ERROR(peers_.Start(peer));
  }
  // From here on there is a round to agree on (HandleSignal).
  client_ = std::make_unique<FleetClient>(
      address_, nullptr,
      MaxAnswerBytes(static_cast<int>(spec_.config.peers())));
  return absl::OkStatus();
}

absl::Status LocalFleet::HandleExits(bool& done) {
  for (const ProcessExit& exit : peers_.Reap()) {
    // The first failure ends the fleet: the others cannot finish without that
    // peer, or could only after a long wait.
    if (!exit.ok()) return DescribeFailure(exit);
  }
  done = peers_.running() == 0;
  // With --exit-when-finished the service may end just before the last peer
  // does.
  for (const ProcessExit& exit : topology_.Reap()) {
    if (!exit.ok()) return DescribeFailure(exit);
  }
  return absl::OkStatus();
}

absl::Status LocalFleet::HandleSignal() {
  ++stops_;
  if (stops_ > 1) {
    const std::string killed = peers_.Kill(SteadyNow() - stopped_);
    return absl::AbortedError(absl::StrCat(
        "stopped at once by a second signal; ", killed,
        killed.empty() ? "" : "; ",
        "what was trained since the last checkpoint is lost (gossamer train "
        "--resume goes on from there)"));
  }
  // Without peers there is no round to agree on and nothing to save.
  if (client_ == nullptr) return absl::AbortedError("stopped before it began");
  stopped_ = SteadyNow();
  display_.Print(
      "stopping: the fleet agrees on a round and saves a checkpoint there; a "
      "second Ctrl-C ends it at once");
  return absl::OkStatus();
}

void LocalFleet::Poll() {
  // The request is repeated until the service has answered it.
  if (stops_ > 0 && !stop_sent_) {
    // The deadline is short: this loop also has to see exits and a second
    // signal.
    stop_sent_ = client_->Stop(spec_.config.name(), absl::Seconds(2)).ok();
  }
  const auto status = client_->GetStatus(spec_.config.name(), absl::Seconds(2));
  // A missed answer leaves the last one on display.  The end of the service
  // shows in its exit.
  if (status.ok()) {
    progress_ = ProgressOf(*status, spec_.config.rounds(), spec_.title);
    const std::optional<Consensus>& consensus = progress_.consensus;
    if (consensus && consensus->round > consensus_round_) {
      consensus_round_ = consensus->round;
      consensus_->Add(ConsensusLine(*consensus));
      // A full disk is reported by the peers.
      consensus_->Flush().IgnoreError();
    }
  }
  display_.Show(progress_, SteadyNow());
}

std::string LocalFleet::EndTopology() {
  // With --exit-when-finished the service ends by itself once all peers have;
  // it gets a moment for that.
  if (topology_.WaitAll(signals_, absl::Seconds(3))) return "";
  return topology_.End(signals_, kGrace);
}

// Returns the error of a peer that refused its options before it trained, such
// as a codec that does not fit the game's layout.  The command reports it as
// its own, and no folder is left.
std::optional<absl::Status> LocalFleet::RefusalOf(const ProcessExit& exit) {
  // After --resume the folder holds an earlier training, which must stay.
  if (exit.code != kUsage || spec_.resume) return std::nullopt;
  const auto logs = folder_.ReadLogs();
  const bool trained =
      !logs.ok() || std::ranges::any_of(*logs, [](const PeerLog& log) {
        return !log.rounds.empty();
      });
  if (trained) return std::nullopt;
  std::string said = Tail(exit.log, 1);
  absl::StripTrailingAsciiWhitespace(&said);
  EndTopology();
  std::error_code error;
  std::filesystem::remove_all(folder_.path(), error);
  return absl::InvalidArgumentError(
      std::string(absl::StripPrefix(said, "gossamer-peer: ")));
}

absl::Status LocalFleet::DescribeFailure(const ProcessExit& exit) {
  display_.Finish(progress_);
  // The other peers would wait for the dead one until their own limit.
  if (peers_.running() > 0) {
    display_.Print(absl::StrCat(exit.name, " ", exit.Describe(),
                                ": the other peers are asked to end; Ctrl-C "
                                "ends them at once"));
  }
  const std::string killed = peers_.End(signals_, kGrace);
  if (const auto refusal = RefusalOf(exit)) return *refusal;
  const uint64_t round =
      folder_.NewestCommonRound(static_cast<int>(spec_.config.peers()));
  std::string what = absl::StrCat(exit.name, " ", exit.Describe());
  if (exit.signal == SIGKILL) {
    absl::StrAppend(&what,
                    "; if nobody sent that, the machine ran out of "
                    "memory: fewer peers or a smaller batch need less");
  }
  if (!killed.empty()) absl::StrAppend(&what, "; ", killed);
  absl::StrAppend(&what, "\nthe end of ", exit.log, ":\n",
                  Tail(exit.log, kTailLines), "\n");
  if (round > 0) {
    absl::StrAppend(
        &what, "every peer has a checkpoint of round ", round,
        "; go on from it with: gossamer train --resume --config ",
        folder_.ConfigPath(), " --runs ",
        std::filesystem::path(folder_.path()).parent_path().string());
  } else {
    absl::StrAppend(&what,
                    "there is no checkpoint that all peers have; start again "
                    "with --overwrite, and set checkpoint.every to have some");
  }
  return absl::InternalError(what);
}

}  // namespace gossamer
