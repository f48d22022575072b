// The cost of a round beside its gradients: two peers in one process, over gRPC
// on loopback, real networks on real pictures.
//
//   round_benchmark --data data/emoji-32 [--rounds 60] [--model wgan-gp-resnet]
//                   [--width 32] [--codec innov-int4]
//
// Prints the thread CPU time of Game::Gradient, and all other CPU time of the
// process (optimizers, codecs, edges, transport, event loops) as a share of
// it. Start-up is measured apart and left out.

#include <time.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/optim/local_step.h"
#include "gan_models/make_game.h"
#include "runtime/base/command_line.h"
#include "runtime/base/real_loop.h"
#include "runtime/peer/peer.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "tests/testing/static_membership.h"
#include "topology/fleet/sketch.h"

namespace gossamer {
namespace {

double CpuSeconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Forwards to a game and adds up the CPU time of its gradients.
class TimedGame final : public Game {
 public:
  explicit TimedGame(std::unique_ptr<Game> game) : game_(std::move(game)) {}
  const ParameterLayout& layout() const override { return game_->layout(); }
  DeviceSpan<float> device_parameters() override {
    return game_->device_parameters();
  }
  DeviceSpan<const float> device_gradients() const override {
    return game_->device_gradients();
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    const double before = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
    auto losses = game_->Gradient(players, key);
    seconds += CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - before;
    return losses;
  }
  void VisitState(StateVisitor& v) override { game_->VisitState(v); }
  double seconds = 0;

 private:
  const std::unique_ptr<Game> game_;
};

// Notes the process's CPU time at two rounds of one peer.
class Marks final : public MetricsSink {
 public:
  Marks(uint64_t from, uint64_t to, const TimedGame* a)
      : from_(from), to_(to), game_(a) {}
  void OnRound(const RoundMetrics& m) override {
    if (m.round == from_) {
      process = -CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
      gradient = -game_->seconds;
    } else if (m.round == to_) {
      process += CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
      gradient += game_->seconds;
    }
  }
  void OnEvent(const Event& e) override {
    if (e.kind == "step_skipped") std::printf("%s\n", e.detail.c_str());
  }
  double process = 0;
  double gradient = 0;

 private:
  const uint64_t from_, to_;
  const TimedGame* const game_;
};

struct Host {
  std::unique_ptr<TimedGame> game;
  std::unique_ptr<LocalStep> step;
  RealLoop loop;
  std::unique_ptr<ThreadCompute> compute;
  std::unique_ptr<GrpcTransport> transport;
  std::unique_ptr<Membership> membership;
  std::unique_ptr<Marks> marks;
  std::unique_ptr<Peer> peer;
  Task<absl::Status> run;
};

int Measure(const GanSpec& gan, uint64_t rounds, const std::string& codec) {
  constexpr int kPeers = 2;
  constexpr uint64_t kWarmUp = 10;
  std::vector<Host> hosts(kPeers);
  View view;
  view.run_id = "benchmark";
  for (int r = 0; r < kPeers; ++r) {
    Host& s = hosts[r];
    auto game = MakeGan(gan, r, kPeers, 1, 1);
    if (!game.ok()) {
      std::fprintf(stderr, "%s\n",
                   std::string(game.status().message()).c_str());
      return 1;
    }
    s.game = std::make_unique<TimedGame>(*std::move(game));
    s.step = *LocalStep::Create({}, s.game.get());
    s.compute = std::make_unique<ThreadCompute>(&s.loop);
    GrpcOptions grpc;
    grpc.self = {static_cast<uint64_t>(r) + 1};
    grpc.run_id = view.run_id;
    s.transport = *GrpcTransport::Create(&s.loop, std::move(grpc));
    view.members.push_back(
        {{static_cast<uint64_t>(r) + 1},
         "127.0.0.1:" + std::to_string(s.transport->port())});
  }
  StaticFleet fleet(view);
  std::atomic<int> ended = 0;
  for (int r = 0; r < kPeers; ++r) {
    Host& s = hosts[r];
    s.membership = fleet.Join(view.members[r].id, &s.loop);
    s.marks = std::make_unique<Marks>(kWarmUp, kWarmUp + rounds, s.game.get());
    PeerSpec spec;
    spec.self = view.members[r].id;
    spec.run_id = view.run_id;
    spec.epoch = MakeEpoch(1'000'000'000, RngKey(7).Bits(r));
    spec.rounds = kWarmUp + rounds;
    spec.ema = 0.995;
    s.peer = *Peer::Create(
        spec,
        {.loop = &s.loop,
         .compute = s.compute.get(),
         .transport = s.transport.get(),
         .membership = s.membership.get(),
         .game = s.game.get(),
         .step = s.step.get(),
         .codec = *Codec::Create(codec, s.game->layout()),
         .metrics = s.marks.get(),
         .checkpoints = nullptr,
         .sketch = [layout = &s.game->layout()](const DeviceQueue& queue,
                                                DeviceSpan<const float> x) {
           return SketchPlayers(queue, x, *layout, 1);
         }});
    s.loop.Post([&s] { s.run = s.peer->Run(); });
    s.loop.Start();
  }
  while (ended < kPeers) {
    ended = 0;
    for (Host& s : hosts) {
      s.loop.PostAndWait([&] { ended += s.run.done(); }, absl::Seconds(5));
    }
    const timespec pause{0, 100'000'000};
    nanosleep(&pause, nullptr);
  }
  for (Host& s : hosts) {
    s.loop.PostAndWait(
        [&s] {
          s.run = {};
          s.peer.reset();
          s.membership.reset();
          s.transport.reset();
        },
        absl::Seconds(5));
    s.loop.Stop();
  }
  // Both peers share the process, so its CPU time less both gradients is the
  // rest.
  const double process = hosts[0].marks->process;
  const double gradient = hosts[0].marks->gradient + hosts[1].marks->gradient;
  std::printf("%s, width %d, %zu parameters, %s, %llu rounds\n",
              gan.model.c_str(), gan.width, hosts[0].game->layout().size(),
              codec.c_str(), static_cast<unsigned long long>(rounds));
  std::printf("gradient %.2f ms of CPU a round, all else %.3f ms: %.2f %%\n",
              1e3 * gradient / rounds / kPeers,
              1e3 * (process - gradient) / rounds / kPeers,
              100 * (process - gradient) / gradient);
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::GanSpec gan;
  gan.model = "wgan-gp-resnet";
  gan.width = 32;
  gan.latent = 128;
  uint64_t rounds = 60;
  std::string codec = "innov-int4";
  gossamer::Command program(
      {.name = "round_benchmark",
       .about = "CPU time of a round beside its gradients.",
       .run = [&] { return gossamer::Measure(gan, rounds, codec); }});
  program.AddOption("--data", &gan.data.path, "CIFAR-10 files",
                    {.required = true});
  const gossamer::OptionRules shown = {.show_default = true};
  program.AddOption("--model", &gan.model, "network", shown);
  program.AddOption("--width", &gan.width, "of the network", shown);
  program.AddOption("--latent", &gan.latent, "size", shown);
  program.AddOption("--rounds", &rounds, "measured", shown);
  program.AddOption("--codec", &codec, "of the edge", shown);
  return program.Run(argc, argv);
}
