#include "runtime/sim/rehearsed_peer.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/game/wrapped_game.h"
#include "runtime/config/compose.h"
#include "runtime/config/run_config.h"
#include "topology/fleet/sketch.h"

namespace gossamer {
namespace {

// Traffic of a step through memory besides its gradient, in vectors of
// parameters: OAdam reads and writes two moments, the last update and x, and
// reads the gradient.
constexpr double kOptimizerStreams = 9;
// Per edge with replicas: encoding reads x and x̂ and writes x̂; completing
// reads and writes D and x.
constexpr double kEdgeStreams = 7;
constexpr absl::Duration kFinishLimit = absl::Seconds(2);

}  // namespace

// Counts the time that its gradients are said to take.
class RehearsedPeer::TimedGame final : public WrappedGame {
 public:
  TimedGame(std::unique_ptr<Game> game,
            std::function<absl::Duration(uint64_t)> step_time)
      : WrappedGame(std::move(game)), step_time_(std::move(step_time)) {}

  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    taken_ += step_time_(calls_++);
    return WrappedGame::Gradient(players, key);
  }

  absl::Duration Take() { return std::exchange(taken_, absl::ZeroDuration()); }

 private:
  const std::function<absl::Duration(uint64_t)> step_time_;
  uint64_t calls_ = 0;
  absl::Duration taken_;
};

// Work takes the time of its gradients, and each step its overhead; evaluations
// and all other work are free.
class RehearsedPeer::Compute final : public ComputeEngine {
 public:
  Compute(VirtualPeerLoop* loop, TimedGame* game, absl::Duration overhead)
      : loop_(loop), game_(game), overhead_(overhead) {}

  void Run(EventLoop::Callback work, EventLoop::Callback done) override {
    // The work is done at once and its result used later: a real peer has its
    // gradient at that time, from the same parameters.
    std::move(work)();
    absl::Duration taken = game_->Take();
    if (taken > absl::ZeroDuration()) taken += overhead_;
    loop_->RunAt(loop_->Now() + taken, std::move(done));
  }

 private:
  VirtualPeerLoop* const loop_;
  TimedGame* const game_;
  const absl::Duration overhead_;
};

RehearsedPeer::RehearsedPeer(Options options, VirtualLoop* loop)
    : options_(std::move(options)), loop_(loop), waiter_(&loop_) {}

absl::StatusOr<std::unique_ptr<RehearsedPeer>> RehearsedPeer::Create(
    Options options, VirtualLoop* loop, SimNetwork& network,
    simulation::SimService& service) {
  std::unique_ptr<RehearsedPeer> made(
      new RehearsedPeer(std::move(options), loop));
  GOSSAMER_RETURN_IF_ERROR(made->Compose(network, service));
  // The coroutine begins on the loop, once all peers have been made.
  made->loop_.Post([p = made.get()] { p->main_ = p->Main(); });
  return made;
}

RehearsedPeer::~RehearsedPeer() {
  // The coroutine is destroyed before the parts that it uses.
  main_ = {};
  peer_.reset();
  client_.reset();
  transport_.reset();
}

std::span<const float> RehearsedPeer::parameters() const {
  return game_->parameters();
}

absl::Duration RehearsedPeer::Overhead() const {
  const double streams =
      kOptimizerStreams + kEdgeStreams * static_cast<double>(options_.edges);
  const auto floats = static_cast<double>(game_->layout().size());
  return absl::Seconds(sizeof(float) * floats * streams /
                       // Optimizer and codecs are bound by memory, not by
                       // arithmetic, so their time is bytes over a rate.
                       options_.bytes_per_second);
}

// A joiner takes a shard that another peer has, as the daemon does.
int RehearsedPeer::Shard() const {
  return options_.rank % static_cast<int>(options_.config.peers());
}

absl::Status RehearsedPeer::Compose(SimNetwork& network,
                                    simulation::SimService& service) {
  const RunConfig& config = options_.config;
  GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<Game> game,
                            MakeClosedFormGame(config, Shard()));
  game_ = std::make_unique<TimedGame>(GameFor(config, std::move(game)),
                                      options_.step_time);
  GOSSAMER_ASSIGN_OR_RETURN(
      step_, LocalStep::Create(LocalStepSpecOf(config), game_.get()));
  const ParameterLayout& layout = game_->layout();
  GOSSAMER_ASSIGN_OR_RETURN(
      std::shared_ptr<const Codec> codec,
      Codec::Create(config.mixing().codec(), layout, game_->queue()));
  GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<GradientCompressor> gradients,
                            GradientCompressorOf(config, layout));
  compute_ = std::make_unique<Compute>(&loop_, game_.get(), Overhead());
  const PeerId self = IdOf(options_.rank);
  transport_ = network.CreateEndpoint(self, &loop_);
  // Incarnation ids come from the seed instead of from chance: a rehearsal
  // repeats.
  const RngKey incarnation =
      RngKey(config.seed()).Fold("boot").Fold(self.value);
  TopologyClientOptions client;
  client.max_request_bytes = MaxRequestBytes(static_cast<int>(config.peers()));
  client.service = "the service";
  client.run_id = config.name();
  client.peer_id = self;
  client.incarnation_id = incarnation.Bits(0) | 1;
  client.address = absl::StrCat("rank ", options_.rank);
  client.layout_fingerprint = layout.fingerprint();
  client.configuration_hash = ConfigurationHash(config);
  client.configuration = ConfigurationLines(config);
  client.auto_overlap = config.mixing().overlap_steps() == kAutoOverlap;
  client.read_view = options_.read_view;
  client_ = std::make_unique<TopologyClient>(
      std::move(client), &loop_, service.Connect(&loop_, &immortal_));
  client_->Observe(this, [this] { waiter_.Notify(); });
  client_->SetOnRefused([this](const absl::Status& why) {
    refused_ = why;
    waiter_.Notify();
  });
  GOSSAMER_ASSIGN_OR_RETURN(PeerSpec spec, PeerSpecOf(config));
  spec.self = self;
  spec.epoch =
      MakeEpoch(static_cast<uint64_t>(absl::ToUnixSeconds(loop_.Now())),
                incarnation.Bits(1));
  spec.evaluates = options_.rank == 0;
  Reporter::Sketch sketch = [seed = config.seed(), layout = &game_->layout()](
                                const DeviceQueue& queue,
                                DeviceSpan<const float> x) {
    return SketchPlayers(queue, x, *layout, seed);
  };
  GOSSAMER_ASSIGN_OR_RETURN(
      peer_,
      Peer::Create(std::move(spec), {.loop = &loop_,
                                     .compute = compute_.get(),
                                     .transport = transport_.get(),
                                     .membership = client_.get(),
                                     .game = game_.get(),
                                     .step = step_.get(),
                                     .codec = std::move(codec),
                                     .gradients = std::move(gradients),
                                     .metrics = options_.sink,
                                     .sketch = std::move(sketch),
                                     .make_schedule = options_.make_schedule}));
  return absl::OkStatus();
}

Task<absl::Status> RehearsedPeer::Main() {
  Task<absl::Status> train = Train();
  status_ = co_await train.result();
  options_.on_end(*this);
  co_return absl::OkStatus();
}

Task<absl::Status> RehearsedPeer::Train() {
  client_->Start();
  Task<absl::Status> run = peer_->Run();
  const absl::Status status = co_await run.result();
  if (!refused_.ok()) co_return refused_;
  GOSSAMER_CO_RETURN_IF_ERROR(status);
  Pending<bool> told;
  // The service must know the end before the peer is gone, as of a real one.
  client_->Finish(kFinishLimit, [told]() mutable { told.Set(true); });
  co_await told;
  co_return absl::OkStatus();
}

}  // namespace gossamer
