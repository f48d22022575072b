#include "runtime/daemon/peer_process.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/peer_folder.h"
#include "runtime/config/compose.h"
#include "runtime/config/compose_game.h"
#include "runtime/config/composition_check.h"
#include "runtime/config/run_config.h"
#include "runtime/membership/grpc_topology_client.h"
#include "runtime/membership/view_signature.h"
#include "runtime/neighborhood/frame_limits.h"
#include "runtime/transport/transport_factory.h"
#include "topology/fleet/sketch.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

// The time after the end in which the last acknowledgements leave this machine.
constexpr absl::Duration kLinger = absl::Milliseconds(500);
constexpr absl::Duration kFinishLimit = absl::Seconds(2);
// The least time for the last report, also if no time is left: one answer is
// enough to say that a peer has ended.
constexpr absl::Duration kLeastFinish = absl::Milliseconds(200);
// The limit of one call to the topology service.
constexpr absl::Duration kCallLimit = absl::Seconds(2);
// The part of the time to leave that a checkpoint and the last report need.
constexpr absl::Duration kLastReport = absl::Seconds(2);
// The time for its next round that a refused process has.
constexpr absl::Duration kRefusedFor = absl::Seconds(10);

// The priorities of the threads beside the steps.  Writing a checkpoint hardly
// computes.  A score does: where four peers share two processors it gets a
// seventh of them, so it keeps up and the rounds hardly notice.
constexpr int kDiskNice = 10;
constexpr int kScoresNice = 2;

// Returns an id that differs between any two incarnations; never used in
// anything that a run must repeat.
uint64_t RandomId() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

}  // namespace

PeerProcess::PeerProcess(PeerProcessOptions options)
    : options_(std::move(options)),
      boot_id_(RandomId()),
      waiter_(&loop_),
      compute_(&loop_),
      disk_(&loop_, kDiskNice),
      scores_(&loop_, kScoresNice),
      id_(options_.id) {}

PeerProcess::~PeerProcess() = default;

absl::Status PeerProcess::Run() {
  GOSSAMER_RETURN_IF_ERROR(Prepare());
  absl::Status result;
  loop_.Post([this] {
    CheckTrust();
    main_ = Main();
  });
  // The end is looked at from outside of Main(): everything that the coroutine
  // used can then be destroyed on this thread.
  std::function<void()> poll = [this, &poll, &result] {
    if (loop_.Now() >= refused_until_ && !main_.done()) {
      // A wait may never end.
      result = refused_;
      cut_short_ = true;
      if (sink_) sink_->Flush();
      loop_.Stop();
      return;
    }
    if (!main_.done()) {
      loop_.RunAt(loop_.Now() + absl::Milliseconds(50), [&poll] { poll(); });
      return;
    }
    result = main_.value();
    main_ = {};
    // The parts go in the reverse order of their making: each may use those
    // made before it until it is gone.
    peer_.reset();
    client_ = nullptr;
    membership_.reset();
    fabric_.reset();
    transport_.reset();
    if (sink_) sink_->Flush();
    loop_.Stop();
  };
  loop_.Post([&poll] { poll(); });
  loop_.Run();
  return result;
}

void PeerProcess::RequestStop() {
  loop_.Post([this] {
    stop_requested_ = true;
    waiter_.Notify();
    if (client_ == nullptr) return;
    Log("stopping: the fleet agrees on a last round");
    client_->RequestStop();
  });
}

void PeerProcess::RequestLeave() {
  loop_.Post([this] {
    leave_by_ =
        std::min(leave_by_, loop_.Now() + absl::Seconds(options_.leave_within) -
                                kLastReport);
    waiter_.Notify();
    if (!peer_) return;
    Log(IsCentralized(options_.config)
            ? "leaving: the others cannot go on without this peer, so the "
              "fleet agrees on a last round"
            : "leaving: the others go on without this peer from a round to "
              "come");
    peer_->Leave(leave_by_);
  });
}

// Makes everything that can fail without the network, before the first byte is
// sent.
absl::Status PeerProcess::Prepare() {
  GOSSAMER_RETURN_IF_ERROR(OpenDevice());
  GOSSAMER_RETURN_IF_ERROR(MakeGameFor(
      id_ == 0 ? 0 : static_cast<int>((id_ - 1) % options_.config.peers())));
  // This codec is made only to be checked; MakePeer() makes the one that is
  // used.
  GOSSAMER_RETURN_IF_ERROR(Codec::Create(options_.config.mixing().codec(),
                                         game_->layout(), game_->queue())
                               .status());
  GOSSAMER_RETURN_IF_ERROR(
      MakeGradients(options_.config, game_->layout()).status());
  // The hello of a transport names its peer, so a peer without an id cannot
  // listen before the service has given it one.
  if (id_ != 0) return Listen();
  if (absl::EndsWith(options_.listen, ":0") && options_.advertise.empty()) {
    return absl::InvalidArgumentError(
        "without --id the service must learn this peer's address first: give "
        "--listen a fixed port, or give --id");
  }
  return absl::OkStatus();
}

absl::Status PeerProcess::OpenDevice() {
  PeerDeviceOptions options;
  options.device = options_.config.resources().device();
  options.transport = options_.config.transport();
  options.fabric = options_.config.resources().fabric();
  // The peers of one machine mostly have ids in a row.
  options.turn = id_ == 0 ? 0 : id_ - 1;
  options.why_on_host = WhyOnHost(options_.config);
  GOSSAMER_ASSIGN_OR_RETURN(device_, PeerDevice::Open(options));
  for (const std::string& note : device_->notes()) Log(note);
  return absl::OkStatus();
}

absl::Status PeerProcess::MakeGameFor(int shard) {
  // A device may have no room for two.
  step_.reset();
  game_.reset();
  absl::StatusOr<std::unique_ptr<Game>> game =
      MakeGame(options_.config, options_.data, shard, device_->queue());
  if (!game.ok()) return device_->Explain(game.status());
  game_ = *std::move(game);
  GOSSAMER_ASSIGN_OR_RETURN(
      step_, LocalStep::Create(LocalStepSpecOf(options_.config), game_.get()));
  return device_->Explain(device_->queue().status());
}

absl::Status PeerProcess::Listen() {
  const FrameLimits limits =
      FrameLimitsOf(game_->layout().size(), options_.config.peers());
  TransportOptions options;
  options.self = {id_};
  options.run_id = options_.config.name();
  options.listen_address = options_.listen;
  options.allow_insecure_remote = options_.insecure;
  options.certificates = options_.certificates;
  options.connections =
      static_cast<int>(options_.config.resources().connections());
  // Random schedules and the complete graph know all others, of what the fleet
  // may grow to.
  options.most_others = std::min(
      kMaxPeers, kMostGrowth * static_cast<int>(options_.config.peers()));
  options.max_body_bytes = limits.body;
  options.max_queued_bytes = limits.queued;
  options.max_bytes_in_flight = limits.in_flight;
  // Delays between attempts need not repeat, and peers that start together must
  // not have the same.
  options.seed = boot_id_;
  options.nccl = device_->nccl();
  options.device = device_->nccl_device();
  options.report = [this](EventKind kind, const std::string& detail) {
    ReportAndLog(kind, detail);
  };
  options.on_problem = [this](PeerId peer, const absl::Status& why) {
    // Lines about members are worth more than those about anybody else who
    // knocks.
    const bool member = membership_ && membership_->view().RankOf(peer);
    const std::string line = problems_.LineOf(peer, member, why, loop_.Now());
    if (!line.empty()) Log(line);
    if (ConnectionProblems::IsRefusal(peer, why)) {
      NoteRefused("connection_refused", peer, why);
    }
  };
  GOSSAMER_ASSIGN_OR_RETURN(
      MadeTransport made,
      MakeTransport(options_.config.transport(), &loop_, std::move(options)));
  WarnOfRoom(made.room);
  port_ = made.port;
  nccl_ = made.nccl;
  transport_ = std::move(made.transport);
  return absl::OkStatus();
}

// Returns the rounds of the newest whole checkpoints, as many as the service
// takes, which is more than it goes through to find one that all peers have.
absl::StatusOr<std::vector<uint64_t>> PeerProcess::WholeCheckpoints() const {
  std::vector<uint64_t> rounds;
  if (!options_.resume || id_ == 0) return rounds;
  const CheckpointStore store(
      PeerFolder(options_.run_dir, {id_}) + "/checkpoints", 1);
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> list,
                            store.List());
  for (const StoredCheckpoint& stored : list) {
    if (stored.whole.ok()) {
      rounds.push_back(stored.round);
    } else {
      Log(absl::StrCat("not gone on from: ", stored.whole.message()));
    }
  }
  // The fleet would begin anew at round 1, and later saves would take the place
  // of what is left of the run.
  if (rounds.empty() && !list.empty()) {
    return absl::DataLossError(absl::StrCat(
        "--resume: none of the ", list.size(), " checkpoints in ",
        PeerFolder(options_.run_dir, {id_}),
        "/checkpoints is whole, the newest: ", list.back().whole.message(),
        "; copy a whole one back, or move that folder away to begin anew"));
  }
  const size_t most = std::min(rounds.size(), kMaxCheckpointRounds);
  return std::vector<uint64_t>(rounds.end() - static_cast<ptrdiff_t>(most),
                               rounds.end());
}

TopologyClientOptions PeerProcess::Registration() const {
  TopologyClientOptions o;
  o.service = options_.topology;
  o.run_id = options_.config.name();
  o.peer_id = {id_};
  o.boot_id = boot_id_;
  o.events = &events_;
  o.layout_fingerprint = game_->layout().fingerprint();
  o.configuration_hash = ConfigurationHash(options_.config);
  o.auto_overlap = options_.config.mixing().overlap_steps() == kAutoOverlap;
  o.device = device_->place();
  o.address = options_.advertise;
  if (o.address.empty()) {
    const std::string host =
        options_.listen.substr(0, options_.listen.rfind(':'));
    // With port 0 in --listen the system has chosen one.
    o.address = port_ != 0 ? absl::StrCat(host, ":", port_) : options_.listen;
  }
  if (options_.certificates != nullptr) {
    // A view is believed by its signature, not by the connection that it came
    // over.
    o.check_view = [own = options_.certificates](const wire::ViewMessage& v) {
      return CheckView(*own, v);
    };
  }
  return o;
}

void PeerProcess::ListenToService() {
  client_->Observe(this, [this] {
    PrepareNccl();
    waiter_.Notify();
  });
  client_->SetOnRefused([this](const absl::Status& why) {
    refused_ = why;
    // Nobody waits for anything of a process that another one has replaced, or
    // that is not admitted any longer.  Others stop at their next round.
    const bool nobody_waits =
        absl::IsAborted(why) || absl::IsPermissionDenied(why);
    refused_until_ =
        loop_.Now() + (nobody_waits ? absl::ZeroDuration() : kRefusedFor);
    waiter_.Notify();
    Report("service_refused", std::string(why.message()));
    Log(absl::StrCat("refused by the topology service: ", why.message()));
  });
  client_->SetOnViewRefused([this](const absl::Status& why) {
    Log(absl::StrCat("topology service: refused ", why.message(),
                     "; going on with the last one"));
    NoteRefused("view_refused", {}, why);
  });
  client_->SetOnService([this](const absl::Status& status) {
    const std::string why(status.message());
    if (status.ok()) {
      Report("service_found", "at " + options_.topology);
      Log("topology service: connected");
    } else {
      Report("service_lost", why);
      Log(absl::StrCat("topology service: ", why, "; trying again"));
    }
  });
}

// The edges of a view, of which a centralized run has none: its means have a
// communicator of their own (fabric_).
void PeerProcess::PrepareNccl() {
  if (nccl_ == nullptr || IsCentralized(options_.config)) return;
  nccl_->Prepare(client_->view());
}

Task<absl::Status> PeerProcess::Register() {
  TopologyClientOptions registration = Registration();
  absl::StatusOr<std::vector<uint64_t>> rounds = WholeCheckpoints();
  GOSSAMER_CO_RETURN_IF_ERROR(rounds.status());
  registration.checkpoint_rounds = *std::move(rounds);
  // An answer may be as large as the view of the largest fleet that this one
  // can grow to.
  auto client = std::make_unique<TopologyClient>(
      std::move(registration), &loop_,
      MakeGrpcTopologyCalls(
          options_.topology, &loop_, options_.certificates, kCallLimit,
          MaxAnswerBytes(kMostGrowth *
                         static_cast<int>(options_.config.peers()))));
  client_ = client.get();
  membership_ = std::move(client);
  ListenToService();
  // The signal came before there was a client.
  if (stop_requested_) client_->RequestStop();
  client_->Start();
  const absl::StatusOr<PeerSpec> spec = PeerSpecOf(options_.config);
  GOSSAMER_CO_RETURN_IF_ERROR(spec.status());
  co_await waiter_.Until(
      [this] {
        return client_->registered() != 0 || !refused_.ok() || ToEnd();
      },
      loop_.Now() + spec->liveness_limit);
  if (!refused_.ok()) co_return refused_;
  if (client_->registered() == 0 && ToEnd()) {
    Log("ended before the topology service had answered");
    co_return absl::OkStatus();
  }
  if (client_->registered() == 0) {
    co_return absl::UnavailableError(absl::StrCat(
        "no answer from the topology service at ", options_.topology, " for ",
        absl::FormatDuration(spec->liveness_limit),
        "; is gossamer-topology running there?"));
  }
  // The service has given an id to a peer that asked without one.
  id_ = client_->peer_id().value;
  Log(absl::StrCat("registered as peer ", id_, " (", client_->registered(),
                   " of ", client_->expected(), ")"));
  co_return absl::OkStatus();
}

absl::Status PeerProcess::MakePeer() {
  GOSSAMER_ASSIGN_OR_RETURN(PeerSpec spec, PeerSpecOf(options_.config));
  GOSSAMER_RETURN_IF_ERROR(CheckPeerFolders(options_.run_dir));
  const std::string folder = PeerFolder(options_.run_dir, {id_});
  const std::string samples = options_.run_dir + "/samples";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && id_ == 1) std::filesystem::create_directories(samples, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", folder, ": ", error.message()));
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      sink_, JsonlSink::Open(
                 folder,
                 [this](const absl::Status& status) {
                   Log(absl::StrCat("metrics: ", status.message()));
                 },
                 static_cast<LogLimit>(1e6 * options_.log_limit)));
  counting_ = std::make_unique<CountingSink>(sink_.get(), &events_);
  telling_ = std::make_unique<TellingSink>(
      counting_.get(), [this](const std::string& line) { Log(line); });
  trust_problem_.clear();  // reported again, now that there is a file
  GOSSAMER_RETURN_IF_ERROR(OpenDecisions(folder));
  checkpoints_ = std::make_unique<CheckpointStore>(
      folder + "/checkpoints",
      static_cast<int>(options_.config.checkpoint().keep()));
  spec.self = {id_};
  // The level is the second of the start, the nonce is random (PROTOCOL.md 5).
  spec.epoch = MakeEpoch(
      static_cast<uint64_t>(absl::ToUnixSeconds(loop_.Now())), boot_id_ >> 1);
  spec.evaluates = id_ == 1;
  // One peer's pictures are enough, and one folder has one writer.
  if (id_ == 1) spec.samples_folder = samples;
  GOSSAMER_ASSIGN_OR_RETURN(VotingParts voting, OpenVoting(folder));
  // Parameters that are not mixed have no distance from each other.
  std::function<std::vector<double>(std::span<const float>)> sketch;
  if (spec.averaging != Averaging::kVotes) {
    sketch = [seed = spec.seed](std::span<const float> x) {
      return CountSketch(x, seed);
    };
  }
  GOSSAMER_ASSIGN_OR_RETURN(std::shared_ptr<const Codec> codec,
                            Codec::Create(options_.config.mixing().codec(),
                                          game_->layout(), game_->queue()));
  GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<GradientCompressor> gradients,
                            MakeGradients(options_.config, game_->layout()));
  if (IsCentralized(options_.config) && device_->nccl() != nullptr) {
    fabric_ = std::make_unique<NcclSum>(
        &loop_, transport_.get(), device_->nccl(), device_->nccl_device(),
        game_->queue(),
        NcclSumOptions{
            .self = {id_},
            .report = [this](EventKind kind, const std::string& detail) {
              ReportAndLog(kind, detail);
            }});
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      peer_, Peer::Create(std::move(spec), {.loop = &loop_,
                                            .compute = &compute_,
                                            .disk = &disk_,
                                            .scores = &scores_,
                                            .transport = transport_.get(),
                                            .membership = membership_.get(),
                                            .game = game_.get(),
                                            .step = step_.get(),
                                            .codec = std::move(codec),
                                            .gradients = std::move(gradients),
                                            .fabric = fabric_.get(),
                                            .voting = std::move(voting),
                                            .metrics = telling_.get(),
                                            .decisions = &decisions_,
                                            .checkpoints = checkpoints_.get(),
                                            .sketch = std::move(sketch)}));
  return device_->queue().status();
}

Task<absl::Status> PeerProcess::Main() {
  // Register() sets the id.
  const bool assigned = id_ == 0;
  Task<absl::Status> registered = Register();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await registered.result());
  if (client_->registered() == 0) co_return absl::OkStatus();
  if (assigned) {
    // The game made before stands for no peer's data: only its layout was
    // needed to register.
    GOSSAMER_CO_RETURN_IF_ERROR(
        MakeGameFor(static_cast<int>((id_ - 1) % options_.config.peers())));
    GOSSAMER_CO_RETURN_IF_ERROR(Listen());
    // The view may have come before there was a transport.
    PrepareNccl();
  }
  Task<absl::Status> trained = Train();
  const absl::Status status = co_await trained.result();
  if (!refused_.ok()) co_return refused_;
  GOSSAMER_CO_RETURN_IF_ERROR(status);
  Pending<bool> told;
  // Beside the linger twice as much is left for the process to end on a machine
  // that is busy, and as much again if the service does not answer.
  const int lingers = client_->reachable() ? 3 : 4;
  const absl::Duration left =
      leave_by_ + kLastReport - lingers * kLinger - loop_.Now();
  client_->Finish(std::clamp(left, kLeastFinish, kFinishLimit),
                  [told]() mutable { told.Set(true); });
  co_await told;
  co_await waiter_.Until([] { return false; }, loop_.Now() + kLinger);
  co_return absl::OkStatus();
}

Task<absl::Status> PeerProcess::Train() {
  GOSSAMER_CO_RETURN_IF_ERROR(device_->Explain(MakePeer()));
  // The signal came before there was a peer.
  if (leave_by_ != absl::InfiniteFuture()) peer_->Leave(leave_by_);
  Task<absl::Status> run = peer_->Run();
  GOSSAMER_CO_RETURN_IF_ERROR(device_->Explain(co_await run.result()));
  const bool early = peer_->stopped() || peer_->left();
  Log(absl::StrCat(peer_->left()      ? "left before round "
                   : peer_->stopped() ? "stopped before round "
                                      : "finished at round ",
                   peer_->round() - (early ? 0 : 1), ", ", peer_->steps(),
                   " steps"));
  if (nccl_ != nullptr) {
    const NcclCounters& seen = nccl_->nccl_counters();
    Log(absl::StrFormat("NCCL brought %d payloads; %d fell back to gRPC",
                        seen.bodies, seen.fallbacks));
  }
  co_return absl::OkStatus();
}

}  // namespace gossamer
