#include "tests/testing/sim_fleet.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/kernels/host_copy.h"

namespace gossamer {
namespace {

// Does one thing after the other, each at the end of its time: what others do
// meanwhile comes first.
class VirtualDisk final : public ComputeEngine {
 public:
  // `loop` outlives it.
  VirtualDisk(EventLoop* loop, absl::Duration each)
      : loop_(loop), each_(each) {}
  void Run(EventLoop::Callback work, EventLoop::Callback done) override {
    free_ = std::max(free_, loop_->Now()) + each_;
    loop_->RunAt(free_,
                 [work = std::move(work), done = std::move(done)]() mutable {
                   std::move(work)();
                   std::move(done)();
                 });
  }

 private:
  EventLoop* const loop_;
  const absl::Duration each_;
  absl::Time free_ = absl::InfinitePast();
};

}  // namespace

int EventRecorder::Count(EventKind kind) const {
  return static_cast<int>(
      std::count_if(events.begin(), events.end(),
                    [&](const Event& e) { return e.kind == kind; }));
}

View SimFleet::MakeView(const SimFleetOptions& options) {
  View view;
  view.run_id = "sim";
  view.epoch = 1;
  for (int r = 0; r < options.peers; ++r) {
    view.members.push_back({.id = IdOf(r),
                            .address = "",
                            .device = options.device ? options.device(r) : ""});
  }
  view.schedule = options.schedule;
  view.seed = options.seed;
  view.overlap_steps = options.peer.overlap_steps;
  view.resume_round = options.resume_round;
  view.from_round = std::max<uint64_t>(1, options.resume_round);
  return view;
}

SimFleet::SimFleet(SimFleetOptions options)
    : options_(std::move(options)),
      network_(&loop_, options_.network),
      fleet_(MakeView(options_)) {
  for (int r = 0; r < options_.peers; ++r) hosts_.push_back(MakeSeat(r));
}

SimFleet::~SimFleet() {
  for (auto& host : hosts_) {
    host->run = {};
    host->peer.reset();
    host->nccl_sum.reset();
    host->transport.reset();
  }
}

std::unique_ptr<SimFleet::Host> SimFleet::MakeSeat(int rank) {
  auto host = std::make_unique<Host>();
  host->loop = std::make_unique<VirtualPeerLoop>(&loop_);
  const auto slow = options_.slowness.find(rank);
  const double factor = slow == options_.slowness.end() ? 1 : slow->second;
  const RngKey key = RngKey(options_.seed).Fold("duration");
  VirtualCompute::DurationOf usual =
      VirtualCompute::Around(key.Fold(static_cast<uint64_t>(rank)),
                             factor * options_.step_time, options_.step_jitter);
  const auto first = options_.first_step.find(rank);
  const bool warms_up = first != options_.first_step.end();
  host->compute = std::make_unique<VirtualCompute>(
      host->loop.get(),
      [usual = std::move(usual),
       first = warms_up ? first->second : absl::ZeroDuration(),
       warms_up](uint64_t call) mutable {
        return warms_up && call == 0 ? first : usual(call);
      });
  host->disk = std::make_unique<VirtualDisk>(
      host->loop.get(),
      options_.disk_time ? options_.disk_time(rank) : absl::ZeroDuration());
  if (options_.score_time) {
    host->scores = std::make_unique<VirtualCompute>(
        host->loop.get(), [t = *options_.score_time](uint64_t) { return t; });
  }
  host->transport = network_.CreateEndpoint(IdOf(rank), host->loop.get());
  if (options_.transport) {
    host->transport =
        options_.transport(rank, host->loop.get(), std::move(host->transport));
  }
  host->membership = fleet_.Join(IdOf(rank), host->loop.get());
  if (options_.membership) {
    host->membership = options_.membership(std::move(host->membership));
  }
  host->game = options_.game(rank);
  if (options_.nccl_sum) {
    host->nccl_sum = options_.nccl_sum(
        rank, host->loop.get(), host->transport.get(), host->game->queue());
  }
  LocalStepSpec step = options_.step;
  step.last_round = options_.peer.rounds;
  host->step = *LocalStep::Create(step, host->game.get());
  if (!options_.checkpoints.empty()) {
    host->checkpoints = std::make_unique<CheckpointStore>(
        absl::StrCat(options_.checkpoints, "/peer-", rank), 2,
        options_.files ? *options_.files(rank) : SystemFileOps());
  }
  PeerSpec spec = options_.peer;
  spec.self = IdOf(rank);
  spec.run_id = "sim";
  spec.seed = options_.seed;
  spec.epoch = MakeEpoch(1'000'000'000 + options_.incarnation,
                         RngKey(options_.seed)
                             .Fold(options_.incarnation)
                             .Bits(static_cast<uint64_t>(rank)));
  if (options_.spec_of) options_.spec_of(rank, spec);
  host->peer = *Peer::Create(
      spec,
      {.loop = host->loop.get(),
       .compute = host->compute.get(),
       .disk = host->disk.get(),
       .scores = host->scores.get(),
       .transport = host->transport.get(),
       .membership = host->membership.get(),
       .game = host->game.get(),
       .step = host->step.get(),
       .codec = *Codec::Create(options_.codec, host->game->layout(),
                               host->game->queue()),
       .gradients = *GradientCompressor::Create(options_.gradient_codec,
                                                host->game->layout(),
                                                HostKernels(), options_.coders),
       .nccl_sum = host->nccl_sum.get(),
       .voting = options_.voting ? options_.voting(rank) : VotingParts(),
       .metrics = &host->recorder,
       .decisions = options_.decisions ? options_.decisions(rank) : nullptr,
       .checkpoints = host->checkpoints.get(),
       .sketch = nullptr});
  return host;
}

void SimFleet::Start() {
  for (auto& host : hosts_) host->run = host->peer->Run();
}

bool SimFleet::Run(absl::Duration limit) {
  if (!hosts_.front()->run.done()) {
    bool started = false;
    for (auto& host : hosts_) started = started || host->run.valid();
    if (!started) Start();
  }
  loop_.RunUntil(
      [this] {
        return std::all_of(hosts_.begin(), hosts_.end(),
                           [](const auto& s) { return s->run.done(); });
      },
      limit);
  return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& s) {
    return s->run.done() && s->run.value().ok();
  });
}

absl::Status SimFleet::StatusOf(int rank) const {
  const Host& host = *hosts_[static_cast<size_t>(rank)];
  return host.run.done() ? host.run.value()
                         : absl::UnavailableError("still running");
}

std::vector<double> SimFleet::Mean() const {
  std::vector<double> mean(hosts_[0]->game->layout().size());
  for (const auto& host : hosts_) {
    const HostCopy<float> copy(host->game->queue(),
                               host->game->device_parameters());
    const std::span<const float> x = copy.span();
    for (size_t k = 0; k < mean.size(); ++k) {
      mean[k] += x[k] / static_cast<double>(hosts_.size());
    }
  }
  return mean;
}

double SimFleet::ConsensusDistance() const {
  const std::vector<double> mean = Mean();
  double sum = 0;
  for (const auto& host : hosts_) {
    const HostCopy<float> copy(host->game->queue(),
                               host->game->device_parameters());
    const std::span<const float> x = copy.span();
    for (size_t k = 0; k < mean.size(); ++k) {
      sum += (x[k] - mean[k]) * (x[k] - mean[k]);
    }
  }
  return sum / static_cast<double>(hosts_.size());
}

uint64_t SimFleet::Hash() const {
  RngKey hash(0);
  for (const auto& host : hosts_) {
    const HostCopy<float> x(host->game->queue(),
                            host->game->device_parameters());
    for (float v : x.span()) {
      uint32_t bits;
      std::memcpy(&bits, &v, sizeof bits);
      hash = hash.Fold(bits);
    }
  }
  return hash.Bits(0);
}

}  // namespace gossamer
