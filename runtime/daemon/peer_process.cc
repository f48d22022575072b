#include "runtime/daemon/peer_process.h"

#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/peer_folder.h"
#include "runtime/base/plain_file.h"
#include "runtime/config/compose.h"
#include "runtime/config/compose_game.h"
#include "runtime/config/composition_check.h"
#include "runtime/config/run_config.h"
#include "runtime/daemon/intact_checkpoints.h"
#include "runtime/membership/grpc_topology_client.h"
#include "runtime/membership/view_signature.h"
#include "runtime/neighborhood/frame_limits.h"
#include "topology/fleet/sketch.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

// The time after the end in which the last acknowledgements leave this machine.
constexpr absl::Duration kLinger = absl::Milliseconds(500);
constexpr absl::Duration kFinishLimit = absl::Seconds(2);
// The least time for the last report, also if no time is left: one answer is
// enough to say that a peer has ended.
constexpr absl::Duration kMinFinish = absl::Milliseconds(200);
// The limit of one call to the topology service.
constexpr absl::Duration kCallLimit = absl::Seconds(2);
// The part of the time to leave that a checkpoint and the last report need.
constexpr absl::Duration kLastReport = absl::Seconds(2);

// The priorities of what is done beside the steps.  Writing a checkpoint hardly
// computes.  A score does: beside a step that fills a processor it gets a
// seventh of it, and more only if that is too little for all scores.
constexpr int kDiskNice = 10;
constexpr int kScoresNice = 8;

// Returns an id that differs between any two incarnations; never used in
// anything that a run must repeat.
uint64_t RandomId() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

}  // namespace

PeerProcess::PeerProcess(PeerProcessOptions options)
    : options_(std::move(options)),
      incarnation_id_(RandomId()),
      id_(options_.id),
      reports_(&loop_, {id_},
               [this] { return peer_ == nullptr ? 0 : peer_->round(); }),
      trust_(&loop_, &reports_, options_.certificates, options_.insecure),
      waiter_(&loop_),
      compute_(&loop_),
      disk_(&loop_, kDiskNice),
      scores_(&loop_, kScoresNice),
      registration_(&loop_, &waiter_, &reports_),
      transport_(&loop_, &reports_,
                 [this](PeerId id) { return registration_.HasMember(id); }) {}

PeerProcess::~PeerProcess() = default;

absl::Status PeerProcess::Run() {
  GOSSAMER_RETURN_IF_ERROR(Prepare());
  absl::Status result;
  loop_.Post([this] {
    trust_.Begin();
    main_ = Main();
  });
  // The end is looked at from outside of Main(): everything that the coroutine
  // used can then be destroyed on this thread.
  std::function<void()> poll = [this, &poll, &result] {
    if (loop_.Now() >= registration_.ends_by() && !main_.done()) {
      // A wait may never end.
      result = registration_.refused();
      cut_short_ = true;
      reports_.Flush();
      loop_.Stop();
      return;
    }
    if (!main_.done()) {
      loop_.RunAt(loop_.Now() + absl::Milliseconds(50), [&poll] { poll(); });
      return;
    }
    result = main_.value();
    main_ = {};
    // The peer uses the membership and the transport until it is gone.
    peer_.reset();
    registration_.Close();
    transport_.Close();
    reports_.Flush();
    loop_.Stop();
  };
  loop_.Post([&poll] { poll(); });
  loop_.Run();
  return result;
}

void PeerProcess::RequestStop() {
  loop_.Post([this] { registration_.RequestStop(); });
}

void PeerProcess::RequestLeave() {
  loop_.Post([this] {
    LeaveBy(loop_.Now() + absl::Seconds(options_.leave_within) - kLastReport);
    if (!peer_) return;
    reports_.Log(
        IsCentralized(options_.config)
            ? "leaving: the others cannot go on without this peer, so the "
              "fleet agrees on a last round"
            : "leaving: the others go on without this peer from a round to "
              "come");
  });
}

void PeerProcess::LeaveNow() {
  loop_.Post([this] { LeaveBy(loop_.Now()); });
}

void PeerProcess::LeaveBy(absl::Time limit) {
  leave_by_ = std::min(leave_by_, limit);
  registration_.EndUnlessRegistered();
  if (peer_) peer_->Leave(leave_by_);
}

// Makes everything that can fail without the network, before the first byte is
// sent.
absl::Status PeerProcess::Prepare() {
  GOSSAMER_RETURN_IF_ERROR(OpenDevice());
  GOSSAMER_RETURN_IF_ERROR(MakeGame());
  // This codec is made only to be checked; MakePeer() makes the one that is
  // used.
  const std::string& codec = options_.config.mixing().codec();
  const absl::Status made =
      Codec::Create(codec, game_->layout(), game_->queue()).status();
  if (!made.ok()) {
    return absl::Status(made.code(), absl::StrCat("mixing.codec is \"", codec,
                                                  "\": ", made.message()));
  }
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
  options.ordinal = id_ == 0 ? 0 : id_ - 1;
  options.why_on_host = WhyOnHost(options_.config);
  if (options_.game) {
    options.of_program = true;
    // It has torch, if any, as it likes it.
    options.torch = [] { return absl::OkStatus(); };
  }
  GOSSAMER_ASSIGN_OR_RETURN(device_, PeerDevice::Open(options));
  for (const std::string& note : device_->notes()) reports_.Log(note);
  return absl::OkStatus();
}

absl::Status PeerProcess::MakeGame() {
  // Before the service has given an id, the game stands for no peer's data.
  const uint64_t shard = id_ == 0 ? 0 : (id_ - 1) % options_.config.peers();
  // A device may have no room for two.
  step_.reset();
  game_.reset();
  absl::StatusOr<std::unique_ptr<Game>> game =
      options_.game
          ? options_.game(device_->queue())
          : gossamer::MakeGame(options_.config, options_.data,
                               static_cast<int>(shard), device_->queue());
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
  options.congestion_control = options_.config.resources().congestion_control();
  options.tls_gate = options_.config.resources().tls_gate();
  // Random schedules and the complete graph know all others, of what the fleet
  // may grow to.
  options.max_others = std::min(
      kMaxPeers, kMaxGrowth * static_cast<int>(options_.config.peers()));
  options.max_body_bytes = limits.body;
  options.max_queued_bytes = limits.queued;
  options.max_bytes_in_flight = limits.in_flight;
  // Delays between attempts need not repeat, and peers that start together must
  // not have the same.
  options.seed = incarnation_id_;
  options.nccl = device_->nccl();
  options.device = device_->nccl_device();
  return transport_.Listen(options_.config.transport(), std::move(options),
                           size_t{options_.config.peers() - 1});
}

// The edges of a view, of which a centralized run has none: its means have a
// communicator of their own (ProcessTransport::nccl_sum).
void PeerProcess::PrepareNccl() {
  if (IsCentralized(options_.config)) return;
  transport_.Prepare(registration_.client()->view());
}

// A centralized fleet cannot go on with one member's older state.
absl::StatusOr<std::shared_ptr<const ReceivedView>>
PeerProcess::FindLastView() {
  if (IsCentralized(options_.config)) return nullptr;
  const std::string path = LastViewPath(PeerFolder(options_.run_dir, {id_}));
  absl::StatusOr<std::shared_ptr<const ReceivedView>> received =
      ReadLastView(SystemFileOps(), path, options_.config.name(), PeerId{id_});
  if (received.ok() && *received != nullptr &&
      options_.certificates != nullptr) {
    GOSSAMER_RETURN_IF_ERROR(
        CheckView(*options_.certificates, (*received)->message));
  }
  return received;
}

void PeerProcess::KeepView() {
  if (last_view_) last_view_->Keep(registration_.client()->received());
}

TopologyClientOptions PeerProcess::ClientOptions() const {
  TopologyClientOptions o;
  o.service = options_.topology;
  o.run_id = options_.config.name();
  o.peer_id = {id_};
  o.incarnation_id = incarnation_id_;
  o.events = reports_.events();
  o.layout_fingerprint = game_->layout().fingerprint();
  o.layout = game_->layout().Text();
  o.max_request_bytes =
      MaxRequestBytes(static_cast<int>(options_.config.peers()));
  o.initial_parameters_hash = options_.initial_parameters_hash;
  o.configuration_hash = ConfigurationHash(options_.config);
  o.configuration = ConfigurationLines(options_.config);
  o.auto_overlap = options_.config.mixing().overlap_steps() == kAutoOverlap;
  o.device = device_->place();
  o.address = options_.advertise;
  if (o.address.empty()) {
    const std::string host =
        options_.listen.substr(0, options_.listen.rfind(':'));
    // With port 0 in --listen the system has chosen one.
    o.address = transport_.port() != 0
                    ? absl::StrCat(host, ":", transport_.port())
                    : options_.listen;
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

Task<absl::Status> PeerProcess::Register() {
  TopologyClientOptions options = ClientOptions();
  if (options_.resume && id_ != 0) {
    absl::StatusOr<std::vector<uint64_t>> rounds = IntactCheckpoints(
        PeerFolder(options_.run_dir, {id_}),
        [this](const std::string& line) { reports_.Log(line); });
    GOSSAMER_CO_RETURN_IF_ERROR(rounds.status());
    options.checkpoint_rounds = *std::move(rounds);
    auto last = FindLastView();
    if (last.ok()) {
      options.last_view = *std::move(last);
    } else {
      // The service has a newer one, as soon as it answers.
      reports_.Log(absl::StrCat("the last view cannot be used: ",
                                last.status().message()));
    }
  }
  const absl::StatusOr<PeerSpec> spec = PeerSpecOf(options_.config);
  GOSSAMER_CO_RETURN_IF_ERROR(spec.status());
  // An answer may be as large as the view of the largest fleet that this one
  // can grow to.
  std::unique_ptr<TopologyCalls> calls = MakeGrpcTopologyCalls(
      options_.topology, &loop_, options_.certificates, kCallLimit,
      MaxAnswerBytes(kMaxGrowth * static_cast<int>(options_.config.peers())));
  Task<absl::Status> registered = registration_.Run(
      std::move(options), std::move(calls), spec->liveness_limit, [this] {
        PrepareNccl();
        KeepView();
      });
  GOSSAMER_CO_RETURN_IF_ERROR(co_await registered.result());
  if (!registration_.registered()) co_return absl::OkStatus();
  const bool assigned = id_ == 0;
  id_ = registration_.client()->peer_id().value;
  if (!assigned) co_return absl::OkStatus();
  // Only the layout of the game made before was needed to register.
  GOSSAMER_CO_RETURN_IF_ERROR(MakeGame());
  GOSSAMER_CO_RETURN_IF_ERROR(Listen());
  // The view may have come before there was a transport.
  PrepareNccl();
  co_return absl::OkStatus();
}

// Makes the folder of this peer, and what is kept in it.
absl::Status PeerProcess::OpenFolder(const std::string& folder) {
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(folder));
  const auto limit = static_cast<LogLimit>(1e6 * options_.log_limit);
  const auto log = [this](const std::string& line) { reports_.Log(line); };
  GOSSAMER_RETURN_IF_ERROR(reports_.Open(folder, limit));
  if (!IsCentralized(options_.config)) {
    last_view_ = std::make_unique<LastView>(
        SystemFileOps(), LastViewPath(folder), &disk_,
        [log](const absl::Status& why) {
          log(absl::StrCat("the view was not kept: ", why.message()));
        });
    // One may have come before there was a folder.
    KeepView();
  }
  trust_.ReportAgain();
  GOSSAMER_ASSIGN_OR_RETURN(decisions_,
                            OpenDecisions({.folder = folder,
                                           .replay = options_.replay,
                                           .resume = options_.resume,
                                           .now = loop_.Now(),
                                           .limit = limit},
                                          log));
  checkpoints_ = std::make_unique<CheckpointStore>(
      folder + "/checkpoints",
      static_cast<int>(options_.config.checkpoint().keep()));
  GOSSAMER_ASSIGN_OR_RETURN(voting_,
                            OpenVoting(options_.config, *game_,
                                       {.self = {id_},
                                        .folder = folder,
                                        .replays = !options_.replay.empty()},
                                       log));
  return absl::OkStatus();
}

absl::Status PeerProcess::MakePeer() {
  GOSSAMER_ASSIGN_OR_RETURN(PeerSpec spec, PeerSpecOf(options_.config));
  GOSSAMER_RETURN_IF_ERROR(OpenFolder(PeerFolder(options_.run_dir, {id_})));
  spec.self = {id_};
  // The level is the second of the start, the nonce is random (PROTOCOL.md 5).
  spec.epoch =
      MakeEpoch(static_cast<uint64_t>(absl::ToUnixSeconds(loop_.Now())),
                incarnation_id_ >> 1);
  spec.evaluates = id_ == 1;
  if (id_ == 1) {
    // One peer's pictures are enough, and one folder has one writer.
    spec.samples_folder = options_.run_dir + "/samples";
    GOSSAMER_RETURN_IF_ERROR(MakeFolder(spec.samples_folder));
  }
  // Parameters that are not mixed have no distance from each other.
  Reporter::Sketch sketch;
  if (spec.averaging != Averaging::kVotes) {
    sketch = [seed = spec.seed, layout = &game_->layout()](
                 const DeviceQueue& queue, DeviceSpan<const float> x) {
      return SketchPlayers(queue, x, *layout, seed);
    };
  }
  GOSSAMER_ASSIGN_OR_RETURN(std::shared_ptr<const Codec> codec,
                            Codec::Create(options_.config.mixing().codec(),
                                          game_->layout(), game_->queue()));
  GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<GradientCompressor> gradients,
                            MakeGradients(options_.config, game_->layout()));
  if (IsCentralized(options_.config)) transport_.OpenNcclSum(game_->queue());
  GOSSAMER_ASSIGN_OR_RETURN(
      peer_,
      Peer::Create(std::move(spec), {.loop = &loop_,
                                     .compute = &compute_,
                                     .disk = &disk_,
                                     .scores = &scores_,
                                     .transport = transport_.transport(),
                                     .membership = registration_.client(),
                                     .game = game_.get(),
                                     .step = step_.get(),
                                     .codec = std::move(codec),
                                     .gradients = std::move(gradients),
                                     .nccl_sum = transport_.nccl_sum(),
                                     .voting = std::move(voting_.parts),
                                     .metrics = reports_.sink(),
                                     .decisions = &decisions_.decisions,
                                     .checkpoints = checkpoints_.get(),
                                     .sketch = std::move(sketch)}));
  return device_->queue().status();
}

Task<absl::Status> PeerProcess::Main() {
  Task<absl::Status> registered = Register();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await registered.result());
  if (!registration_.registered() && !registration_.may_resume()) {
    co_return absl::OkStatus();
  }
  Task<absl::Status> trained = Train();
  const absl::Status status = co_await trained.result();
  GOSSAMER_CO_RETURN_IF_ERROR(registration_.refused());
  GOSSAMER_CO_RETURN_IF_ERROR(status);
  Task<absl::Status> finished = Finish();
  co_return co_await finished.result();
}

Task<absl::Status> PeerProcess::Train() {
  GOSSAMER_CO_RETURN_IF_ERROR(device_->Explain(MakePeer()));
  // The signal came before there was a peer.
  if (leave_by_ != absl::InfiniteFuture()) peer_->Leave(leave_by_);
  Task<absl::Status> run = peer_->Run();
  GOSSAMER_CO_RETURN_IF_ERROR(device_->Explain(co_await run.result()));
  const bool early = peer_->stopped() || peer_->left();
  reports_.Log(absl::StrCat(peer_->left()      ? "left before round "
                            : peer_->stopped() ? "stopped before round "
                                               : "finished at round ",
                            peer_->round() - (early ? 0 : 1), ", ",
                            peer_->steps(), " steps"));
  transport_.LogNccl();
  co_return absl::OkStatus();
}

// Reports the end to the service, and lingers.
Task<absl::Status> PeerProcess::Finish() {
  TopologyClient* const client = registration_.client();
  Pending<bool> reported;
  // Beside the linger twice as much is left for the process to end on a machine
  // that is busy, and as much again if the service does not answer.
  const int lingers = client->reachable() ? 3 : 4;
  const absl::Duration left =
      leave_by_ + kLastReport - lingers * kLinger - loop_.Now();
  client->Finish(std::clamp(left, kMinFinish, kFinishLimit),
                 [reported]() mutable { reported.Set(true); });
  co_await reported;
  co_await waiter_.Until([] { return false; }, loop_.Now() + kLinger);
  co_return absl::OkStatus();
}

}  // namespace gossamer
