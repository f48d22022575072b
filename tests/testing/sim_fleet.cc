#include "tests/testing/sim_fleet.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gossamer {

int EventRecorder::Count(EventKind kind) const {
  return static_cast<int>(
      std::count_if(events.begin(), events.end(),
                    [&](const Event& e) { return e.kind == kind; }));
}

View SimFleet::MakeView(const SimFleetOptions& options) {
  View view;
  view.run_id = "sim";
  view.epoch = 1;
  for (int r = 0; r < options.peers; ++r) view.members.push_back({IdOf(r), ""});
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
  for (int r = 0; r < options_.peers; ++r) seats_.push_back(MakeSeat(r));
}

SimFleet::~SimFleet() {
  for (auto& seat : seats_) {
    seat->run = {};
    seat->peer.reset();
    seat->transport.reset();
  }
}

std::unique_ptr<SimFleet::Seat> SimFleet::MakeSeat(int rank) {
  auto seat = std::make_unique<Seat>();
  seat->loop = std::make_unique<VirtualPeerLoop>(&loop_);
  const auto slow = options_.slowness.find(rank);
  const double factor = slow == options_.slowness.end() ? 1 : slow->second;
  const RngKey key = RngKey(options_.seed).Fold("duration");
  VirtualCompute::DurationOf usual =
      VirtualCompute::Around(key.Fold(static_cast<uint64_t>(rank)),
                             factor * options_.step_time, options_.step_jitter);
  const auto first = options_.first_step.find(rank);
  const bool warms_up = first != options_.first_step.end();
  seat->compute = std::make_unique<VirtualCompute>(
      seat->loop.get(),
      [usual = std::move(usual),
       first = warms_up ? first->second : absl::ZeroDuration(),
       warms_up](uint64_t call) mutable {
        return warms_up && call == 0 ? first : usual(call);
      });
  seat->transport = network_.CreateEndpoint(IdOf(rank), seat->loop.get());
  if (options_.transport) {
    seat->transport = options_.transport(rank, std::move(seat->transport));
  }
  seat->membership = fleet_.Join(IdOf(rank), seat->loop.get());
  if (options_.membership) {
    seat->membership = options_.membership(std::move(seat->membership));
  }
  seat->game = options_.game(rank);
  LocalStepSpec step = options_.step;
  step.last_round = options_.peer.rounds;
  seat->step = *LocalStep::Create(step, seat->game.get());
  if (!options_.checkpoints.empty()) {
    seat->checkpoints = std::make_unique<CheckpointStore>(
        absl::StrCat(options_.checkpoints, "/peer-", rank), 2,
        options_.files ? *options_.files(rank) : SystemFileOps());
  }
  PeerSpec spec = options_.peer;
  spec.self = IdOf(rank);
  spec.run_id = "sim";
  spec.seed = options_.seed;
  spec.epoch = MakeEpoch(1'000'000'000 + options_.boot,
                         RngKey(options_.seed)
                             .Fold(options_.boot)
                             .Bits(static_cast<uint64_t>(rank)));
  if (options_.spec_of) options_.spec_of(rank, spec);
  seat->peer = *Peer::Create(
      spec,
      {.loop = seat->loop.get(),
       .compute = seat->compute.get(),
       .transport = seat->transport.get(),
       .membership = seat->membership.get(),
       .game = seat->game.get(),
       .step = seat->step.get(),
       .codec = *Codec::Create(options_.codec, seat->game->layout()),
       .gradients = *GradientCompressor::Create(options_.gradient_codec,
                                                seat->game->layout(),
                                                HostKernels(), options_.coders),
       .voting = options_.voting ? options_.voting(rank) : VotingParts(),
       .metrics = &seat->recorder,
       .decisions = options_.decisions ? options_.decisions(rank) : nullptr,
       .checkpoints = seat->checkpoints.get(),
       .sketch = nullptr});
  return seat;
}

void SimFleet::Start() {
  for (auto& seat : seats_) seat->run = seat->peer->Run();
}

bool SimFleet::Run(absl::Duration limit) {
  if (!seats_.front()->run.done()) {
    bool started = false;
    for (auto& seat : seats_) started = started || seat->run.valid();
    if (!started) Start();
  }
  loop_.RunUntil(
      [this] {
        return std::all_of(seats_.begin(), seats_.end(),
                           [](const auto& s) { return s->run.done(); });
      },
      limit);
  return std::all_of(seats_.begin(), seats_.end(), [](const auto& s) {
    return s->run.done() && s->run.value().ok();
  });
}

absl::Status SimFleet::StatusOf(int rank) const {
  const Seat& seat = *seats_[static_cast<size_t>(rank)];
  return seat.run.done() ? seat.run.value()
                         : absl::UnavailableError("still running");
}

std::vector<double> SimFleet::Mean() const {
  std::vector<double> mean(seats_[0]->game->layout().size());
  for (const auto& seat : seats_) {
    const auto x = seat->game->parameters();
    for (size_t k = 0; k < mean.size(); ++k) {
      mean[k] += x[k] / static_cast<double>(seats_.size());
    }
  }
  return mean;
}

double SimFleet::ConsensusDistance() const {
  const std::vector<double> mean = Mean();
  double sum = 0;
  for (const auto& seat : seats_) {
    const auto x = seat->game->parameters();
    for (size_t k = 0; k < mean.size(); ++k) {
      sum += (x[k] - mean[k]) * (x[k] - mean[k]);
    }
  }
  return sum / static_cast<double>(seats_.size());
}

uint64_t SimFleet::Hash() const {
  RngKey hash(0);
  for (const auto& seat : seats_) {
    for (float v : seat->game->parameters()) {
      uint32_t bits;
      std::memcpy(&bits, &v, sizeof bits);
      hash = hash.Fold(bits);
    }
  }
  return hash.Bits(0);
}

}  // namespace gossamer
