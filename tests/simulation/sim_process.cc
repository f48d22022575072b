#include "tests/simulation/sim_process.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/linear_coder.h"
#include "algorithms/game/wrapped_game.h"
#include "tests/simulation/composition.h"
#include "tests/simulation/nccl_faults.h"

namespace gossamer::simulation {
namespace {

// The same limits as in peer_process.cc.
constexpr absl::Duration kLinger = absl::Milliseconds(500);
constexpr absl::Duration kLookForRefusal = absl::Milliseconds(50);
constexpr absl::Duration kFinishLimit = absl::Seconds(2);
constexpr uint64_t kConfiguration = 1;
// A leaving peer first waits for a view that all can hear of.
constexpr absl::Duration kLeaveLimit = absl::Minutes(1);
constexpr int kRoundsToLeave = 100;
// The limit for one process, as many as a peer bears in a row
// (Health::kMaxInARow).
constexpr int kMaxSpoils = 3;
constexpr float kLargestParameter = 1e6f;
// The liveness limit on a clock that is off, as a factor.
constexpr double kLongestWait = 1.1;
// A state has no more than so many vectors, with names and numbers around them.
constexpr size_t kVectorsOfAState = 8;
constexpr size_t kAround = 8192;
// A restarted peer may go on without the service after a number of intervals
// between these.
constexpr double kMinTimeout = 2;
constexpr double kMaxTimeout = 20;

// COLD's dual goes on pushing while a calm game stands still, so parameters may
// grow.
bool MayGrow(const Scenario& s) { return s.optimizer.name == "cold"; }

// A game that stands still once the fleet is calm.
class CalmingGame final : public WrappedGame {
 public:
  CalmingGame(std::unique_ptr<Game> game, const bool* calm)
      : WrappedGame(std::move(game)), calm_(calm), zeros_(layout().size()) {}
  DeviceSpan<const float> device_gradients() const override {
    return *calm_ ? DeviceSpan<const float>(zeros_)
                  : WrappedGame::device_gradients();
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    if (*calm_) return Losses{};
    return WrappedGame::Gradient(players, key);
  }

 private:
  const bool* const calm_;
  const std::vector<float> zeros_;
};

}  // namespace

// Checks that between two pieces of work only corrections change parameters.
class SimProcess::Compute final : public ComputeEngine {
 public:
  Compute(SimProcess* process, VirtualCompute::DurationOf duration)
      : process_(process), compute_(&process->loop_, std::move(duration)) {}

  void Run(EventLoop::Callback work, EventLoop::Callback done) override {
    // The extrapolation of chebyshev is neither a step nor a correction.
    if (process_->world_.scenario.chebyshev)
      process_->parameter_watch_->Accept();
    if (!process_->crash_.dead() && !process_->parameter_watch_->Same()) {
      process_->Violation(
          "parameters changed by something but steps and corrections");
    }
    compute_.Run(
        [this, work = std::move(work)]() mutable {
          std::move(work)();
          process_->parameter_watch_->Accept();
        },
        std::move(done));
  }

 private:
  SimProcess* const process_;
  VirtualCompute compute_;
};

// Checks each correction of an edge against the parameters, and enters it into
// the ledger.
struct SimProcess::Observer final : public CorrectionObserver {
  Observer(SimProcess* l, PeerId o) : process(l), other(o) {}

  void OnCorrection(const Correction& correction) override {
    if (process->crash_.dead()) return;
    const ExchangeId id = correction.id;
    const PeerId self = process->machine_.id;
    const uint64_t hash =
        process->parameter_watch_->Correct(correction, other < self);
    if (process->world_.scenario.chebyshev) process->parameter_watch_->Accept();
    if (!process->parameter_watch_->Same()) {
      process->Violation(absl::StrFormat(
          "the correction with peer %d of round %d is not what was added",
          other.value, RoundOf(id)));
    }
    const auto& s = process->edge(other)->state();
    process->world_.note(hash ^ id);
    const std::string wrong =
        process->world_.ledger.Apply({self, other, s.epoch, s.peer_epoch}, id,
                                     hash, correction.part.extent.offset);
    if (!wrong.empty()) process->Violation(wrong);
  }

  SimProcess* const process;
  const PeerId other;
};

SimProcess::SimProcess(SimWorld& world, SimMachine& machine, bool resume)
    : world_(world),
      machine_(machine),
      number_(++*machine.incarnations),
      key_(RngKey(world.scenario.seed)
               .Fold("life")
               .Fold(machine.id.value)
               .Fold(number_)),
      resume_(resume),
      loop_(&world.loop),
      waiter_(&loop_),
      files_(&machine.disk, &crash_, &world.disk_errors, key_.Fold("disk")),
      checkpoint_watch_(&machine, &crash_, key_, world.ledger,
                        [this](const std::string& what) { Violation(what); }),
      view_watch_(world.views,
                  [this](const std::string& what) { Violation(what); }) {
  const Scenario& s = world_.scenario;
  const auto within = [](double u, double most) { return most * (2 * u - 1); };
  loop_.SetClock(absl::Seconds(within(key_.Uniform(0), s.swarm.clock_jump)),
                 1 + within(key_.Uniform(1), s.swarm.clock_drift));
  const int rank = static_cast<int>(machine_.id.value) - 1;
  game_ = std::make_unique<CalmingGame>(MakeGame(s, rank), &world_.calm);
  step_ = *LocalStep::Create(
      {.generator = s.optimizer, .discriminator = s.optimizer}, game_.get());
  parameter_watch_ = std::make_unique<ParameterWatch>(game_->parameters());
  edge_watch_ = std::make_unique<EdgeWatch>(
      machine_.id, number_,
      EdgeLimits{.parameters = game_->parameters().size_bytes(),
                 .replicas = ReplicaMemory()},
      world_.ledger, [this](const std::string& what) { Violation(what); });
  compute_ = std::make_unique<Compute>(
      this,
      VirtualCompute::Around(key_.Fold("duration"),
                             (rank == 0 ? s.slowness : 1) * s.TimeOfCompute(),
                             s.step_jitter));
  // A checkpoint takes up to two rounds' steps.
  disk_ = std::make_unique<VirtualCompute>(
      &loop_, VirtualCompute::Around(key_.Fold("disk"), s.TimeOfCompute(), 1));
  if (!s.centralized()) {
    last_view_ = std::make_unique<LastView>(
        files_, SimMachine::kLastView, disk_.get(), [](const absl::Status&) {});
  }
  transport_ = std::make_unique<MortalTransport>(MakeTransport(), &crash_);
  if (gpu_ != nullptr && s.centralized()) {
    NcclSumOptions options = NcclSumOptionsOf(s, machine_.id);
    options.report = [this](EventKind kind, const std::string& detail) {
      TellNccl(kind, detail);
    };
    nccl_sum_ = std::make_unique<NcclSum>(&loop_, transport_.get(), gpu_.get(),
                                          gpu_.get(), game_->queue(),
                                          std::move(options));
  }
  world_.tell(machine_.id, absl::StrCat("starts process ", number_));
  world_.ledger.Begin(machine_.id, number_);
  checkpoint_watch_.CheckSaved();
  loop_.Post([this] { main_ = Main(); });
}

std::unique_ptr<Transport> SimProcess::MakeTransport() {
  std::unique_ptr<Transport> transport =
      world_.network.CreateEndpoint(machine_.id, &loop_, Address());
  const Scenario& s = world_.scenario;
  if (!s.nccl.used) return transport;
  const NcclPlace place = PlaceOf(s, machine_.id);
  gpu_ = world_.nccl.NewRank(place.gpu, place.version);
  if (s.centralized()) return transport;
  NcclOptions options = NcclOptionsOf(s, machine_.id);
  options.report = [this](EventKind kind, const std::string& detail) {
    TellNccl(kind, detail);
  };
  auto made = std::make_unique<NcclTransport>(
      std::move(transport), &loop_, gpu_.get(), gpu_.get(), std::move(options));
  nccl_ = made.get();
  return made;
}

void SimProcess::TellNccl(EventKind kind, const std::string& detail) {
  world_.tell(machine_.id,
              absl::StrCat(std::string(kind.name()), ": ", detail));
}

SimProcess::~SimProcess() {
  const auto x = game_->parameters();
  machine_.last.assign(x.begin(), x.end());
  machine_.brought = Brought();
  main_ = {};
  peer_.reset();
  client_.reset();
  nccl_sum_.reset();
  transport_.reset();
}

bool SimProcess::may_fail() const {
  return missed_end_ || refused_for_twin() ||
         (spoilt_ && absl::StrContains(status().message(), "begins anew"));
}

// The inactive edges of members are left out: they give back what they have
// added when they are forgotten, one end before the other.
std::vector<float> SimProcess::Brought() {
  if (step_->hooks() == nullptr) return {};
  std::vector<float> brought = step_->hooks()->Added();
  if (!peer_) return brought;
  const std::set<PeerId> watched = peer_->neighborhood().Watched();
  peer_->neighborhood().VisitEdges([&](const Edge& edge) {
    if (watched.contains(edge.other()) || !view().RankOf(edge.other())) return;
    const std::vector<float> sum = edge.codec_state().Save().sum;
    for (size_t i = 0; i < sum.size(); ++i) brought[i] -= sum[i];
  });
  return brought;
}

void SimProcess::Violation(const std::string& what) {
  world_.violation(absl::StrCat("peer ", machine_.id.value, ", process ",
                                number_, ", round ", round(), ": ", what));
}

std::string SimProcess::Address() const {
  const uint64_t home = world_.scenario.swarm.moves ? number_ : 1;
  return absl::StrCat("peer-", machine_.id.value, "-", home);
}

Task<absl::Status> SimProcess::Register() {
  TopologyClientOptions o;
  o.service = "the service";
  o.run_id = "sim";
  o.peer_id = machine_.id;
  o.incarnation_id = key_.Fold("boot").Bits(0) | 1;
  o.address = Address();
  if (gpu_ != nullptr) {
    o.device = PlaceOf(world_.scenario, machine_.id).Text();
  }
  o.layout_fingerprint = game_->layout().fingerprint();
  o.configuration_hash = kConfiguration;
  if (resume_) {
    o.checkpoint_rounds =
        CheckpointStore(SimMachine::kCheckpoints, 1, files_).Rounds();
    if (last_view_ != nullptr) {
      // A view that cannot be read is as none.
      o.last_view =
          ReadLastView(files_, SimMachine::kLastView, "sim", machine_.id)
              .value_or(nullptr);
    }
    o.answer_timeout = world_.scenario.interval() *
                       (kMinTimeout + (kMaxTimeout - kMinTimeout) *
                                          key_.Fold("patience").Uniform(0));
  }
  client_ = std::make_unique<TopologyClient>(
      std::move(o), &loop_, world_.service.Connect(&loop_, &crash_));
  client_->Observe(this, [this] {
    if (nccl_ != nullptr) nccl_->Prepare(client_->view());
    if (last_view_ != nullptr) last_view_->Keep(client_->received());
    waiter_.Notify();
  });
  client_->SetOnRefused([this](const absl::Status& why) {
    refused_ = why;
    if (contested_ && absl::IsAborted(why)) {
      world_.tell(machine_.id, "is refused, for its twin has the id");
      loop_.RunAt(loop_.Now() + kLookForRefusal, [this] { crash_.Arm(0); });
      return;
    }
    missed_end_ =
        !world_.calm && absl::StrContains(why.message(), "has ended without");
    if (!crash_.dead() && !missed_end_) {
      Violation(
          absl::StrCat("the service refuses it: ", std::string(why.message())));
    }
    waiter_.Notify();
  });
  client_->Start();
  co_await waiter_.Until(
      [this] {
        return client_->registered() != 0 || !refused_.ok() ||
               client_->last_view() != nullptr;
      },
      loop_.Now() + absl::Minutes(10));
  if (!refused_.ok()) co_return refused_;
  if (client_->registered() == 0 && client_->last_view() == nullptr) {
    co_return absl::UnavailableError("no answer from the service");
  }
  co_return absl::OkStatus();
}

uint64_t SimProcess::NewEpoch() const {
  return MakeEpoch(static_cast<uint64_t>(absl::ToUnixSeconds(loop_.Now())),
                   key_.Fold("boot").Bits(0) >> 1);
}

// The memory for the replicas of `replica_edges`, two vectors each; 0: no
// limit.
uint64_t SimProcess::ReplicaMemory() const {
  return static_cast<uint64_t>(world_.scenario.replica_edges) * 2 *
         game_->parameters().size_bytes();
}

absl::Status SimProcess::MakePeer() {
  const Scenario& s = world_.scenario;
  checkpoints_ = std::make_unique<CheckpointStore>(SimMachine::kCheckpoints,
                                                   s.checkpoints_kept, files_);
  PeerSpec spec;
  spec.self = machine_.id;
  spec.run_id = "sim";
  spec.epoch = NewEpoch();
  spec.seed = s.seed;
  spec.rounds = s.rounds();
  spec.overlap_steps = s.overlap;
  spec.mixing_rounds = s.mixing_rounds;
  spec.chebyshev = s.chebyshev;
  if (s.centralized()) {
    spec.averaging = Averaging::kGradients;
    spec.all_reduce = s.all_reduce;
  }
  spec.step_then_mix = s.step_then_mix;
  spec.deadline = s.deadline;
  spec.limits.clip_radius = s.clip_radius;
  spec.replica_memory = ReplicaMemory();
  spec.max_neighbors = s.max_neighbors;
  if (!MayGrow(s)) spec.limits.largest = kLargestParameter;
  spec.suspect_after = s.suspect_after;
  spec.liveness_limit = s.LivenessLimit();
  spec.steps_per_round = s.steps_per_round;
  spec.checkpoint_every = s.checkpoint_every;
  spec.configuration_hash = kConfiguration;
  std::unique_ptr<GradientCompressor> gradients;
  if (s.centralized()) {
    GOSSAMER_ASSIGN_OR_RETURN(
        gradients, GradientCompressor::Create(s.gradient_codec, game_->layout(),
                                              HostKernels(), MakeLinearCoder));
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      peer_, Peer::Create(std::move(spec), {.loop = &loop_,
                                            .compute = compute_.get(),
                                            .disk = disk_.get(),
                                            .transport = transport_.get(),
                                            .membership = client_.get(),
                                            .game = game_.get(),
                                            .step = step_.get(),
                                            .codec = world_.codec,
                                            .gradients = std::move(gradients),
                                            .nccl_sum = nccl_sum_.get(),
                                            .metrics = this,
                                            .decisions = nullptr,
                                            .checkpoints = checkpoints_.get(),
                                            .sketch = nullptr}));
  peer_->neighborhood().AddObservers([this](PeerId other) {
    auto& observer = observers_[other];
    // The edge was made again, for example with the codec of the other end.
    if (observer != nullptr) edge_watch_->ExcuseReplica(other);
    observer = std::make_unique<Observer>(this, other);
    return observer.get();
  });
  return absl::OkStatus();
}

Task<absl::Status> SimProcess::Main() {
  Task<absl::Status> registered = Register();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await registered.result());
  GOSSAMER_CO_RETURN_IF_ERROR(MakePeer());
  Task<absl::Status> run = peer_->Run();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await run.result());
  if (!refused_.ok()) co_return refused_;
  Pending<bool> told;
  client_->Finish(kFinishLimit, [told]() mutable { told.Set(true); });
  co_await told;
  co_await waiter_.Until([] { return false; }, loop_.Now() + kLinger);
  co_return absl::OkStatus();
}

void SimProcess::OnRound(const RoundMetrics& metrics) {
  if (crash_.dead()) return;
  ++machine_.rounds_done;
  edge_watch_->CheckReplicas(peer_->neighborhood(), view());
  world_.note(metrics.round);
  const StopState stop = client_->stop();
  if (stop.committed && client_->acknowledged_stop() == stop.round &&
      metrics.round >= stop.round) {
    Violation(absl::StrFormat(
        "it has trained in round %d, before which all have agreed to stop",
        stop.round));
  }
}

// The others have given the peer up: exchanges that they did not complete with
// it count as lost in a crash.
void SimProcess::BeginIncarnation() {
  world_.ledger.Crash(machine_.id, number_);
  number_ = ++*machine_.incarnations;
  world_.ledger.Begin(machine_.id, number_);
  edge_watch_->BeginIncarnation(number_);
  view_watch_.BeginIncarnation();
}

void SimProcess::OnEvent(const Event& event) {
  if (crash_.dead()) return;
  const std::string what = std::string(event.kind.name()) + ": " + event.detail;
  world_.tell(machine_.id, absl::StrCat("round ", event.round, ": ", what));
  world_.ledger.OnEvent(machine_.id, event);
  const bool sick =
      event.kind == "nonfinite_parameters" || event.kind == "step_skipped";
  if (sick && spoilt_) return;
  if (event.kind == "outside" || event.kind == "spoilt") {
    BeginIncarnation();
  } else if (event.kind == "left_late") {
    if (world_.scenario.polite) Violation(event.detail);
    world_.ledger.Crash(machine_.id, number_);
  } else if (event.kind == "resumed_without_service") {
    ++world_.counts["resumed_without_service"];
  } else if (event.kind == "state_offered") {
    world_.given.Give(parameters());
  } else if (event.kind == "state_received") {
    parameter_watch_->Accept();
    const std::string wrong = world_.given.Check(parameters());
    if (!wrong.empty()) Violation(wrong);
    spoilt_ = false;
  } else if (event.kind == "resumed") {
    parameter_watch_->Accept();
    for (const PeerId other :
         checkpoint_watch_.Restored(event.round, number_)) {
      edge_watch_->ExcuseReplica(other);
    }
  } else if (event.kind == "edge_refused" || event.kind == "edge_closed" ||
             sick || (event.kind == "not_settled" && world_.calm)) {
    Violation(what);
  } else {
    checkpoint_watch_.OnEvent(event, number_);
  }
}

void SimProcess::Check() {
  if (!peer_ || crash_.dead()) return;
  if (peer_->next_poll() >
      loop_.Now() + kLongestWait * world_.scenario.LivenessLimit()) {
    Violation("it waits without a deadline");
  }
  // The bound is four states: one that is given, one that comes, and two that
  // have come.
  if (peer_->state_bytes() >
      4 * (kVectorsOfAState * game_->parameters().size_bytes() + kAround)) {
    Violation(absl::StrCat("holds ", peer_->state_bytes(), " bytes of states"));
  }
  const ViewWatch::Taken taken = view_watch_.Check(view(), client_->adopted());
  if (taken == ViewWatch::Taken::kFirst)
    checkpoint_watch_.BeginAt(view().resume_round);
  if (taken != ViewWatch::Taken::kNone) edge_watch_->ExcuseReplicas();
  edge_watch_->Check(peer_->neighborhood(), transport_->TakeHeard());
}

void SimProcess::ReportEdges() {
  if (!peer_) return;
  peer_->neighborhood().VisitEdges([this](const Edge& edge) {
    const auto& s = edge.state();
    world_.tell(machine_.id,
                absl::StrFormat(
                    "round %d: edge to peer %d: decided %d.%d received %d.%d "
                    "done %d.%d peer_done %d.%d announced %d.%d, %d mine, %d "
                    "theirs, epoch %d peer_epoch %d%s%s%s",
                    round(), edge.other().value, RoundOf(s.decided),
                    s.decided % kMaxPhases, RoundOf(s.received),
                    s.received % kMaxPhases, RoundOf(s.done),
                    s.done % kMaxPhases, RoundOf(s.peer_done),
                    s.peer_done % kMaxPhases, RoundOf(s.announced),
                    s.announced % kMaxPhases, s.mine.size(), s.theirs.size(),
                    s.epoch, s.peer_epoch, s.connected ? " connected" : "",
                    s.ready ? " ready" : "", s.ack_due ? " ack_due" : ""));
  });
}

void SimProcess::Spoil() {
  if (!joined() || crash_.dead() || spoils_ == kMaxSpoils) return;
  ++spoils_;
  spoilt_ = true;
  world_.tell(machine_.id, "its parameters are spoilt");
  game_->parameters()[0] = spoils_ % 2 != 0 || MayGrow(world_.scenario)
                               ? std::numeric_limits<float>::quiet_NaN()
                               : 10 * kLargestParameter;
  parameter_watch_->Accept();
}

void SimProcess::Leave(std::optional<absl::Duration> limit) {
  if (!joined() || crash_.dead()) return;
  leaving_ = true;
  peer_->Leave(loop_.Now() +
               limit.value_or(kLeaveLimit +
                              kRoundsToLeave * world_.scenario.interval()));
}

}  // namespace gossamer::simulation
