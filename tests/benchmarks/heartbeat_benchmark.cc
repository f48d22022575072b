// The topology service's CPU time for a heartbeat, in fleets of different
// sizes.
//
// From request to answer as messages, without gRPC and the disk.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/topology.pb.h"
#include "topology/fleet/control_plane.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/sketch.h"

namespace gossamer {
namespace {

constexpr int kTicksAnInterval = 4;

// A fleet under way, whose members report in turn.
class BeatingService {
 public:
  explicit BeatingService(int peers) : peers_(peers) {
    auto plane = ControlPlane::Create(
        {.run_id = "beats",
         .expected = peers,
         .schedule = {.graph = "random-regular", .degree = 4, .edges = {}}},
        std::nullopt, [](const FleetRecord&) { return absl::OkStatus(); },
        [this] { return now_; }, [](const std::string&) {});
    Require(plane.status());
    plane_ = *std::move(plane);
    for (int i = 0; i < peers; ++i) Register(i);
    beat_.set_run_id("beats");
    beat_.set_sketch(std::string(kSketchBuckets * sizeof(double), '\0'));
    // Two intervals, in which every member hears of the view and takes it up.
    for (int i = 0; i < 2 * peers; ++i) Beat();
  }

  void Beat() {
    now_ += absl::Seconds(1) / peers_;
    if (beats_ % (peers_ / kTicksAnInterval) == 0) plane_->Tick();
    const uint64_t round = beats_ / peers_ + 1;
    const uint64_t id = beats_++ % peers_ + 1;
    const View& view = plane_->fleet().record().view;
    beat_.set_peer_id(id);
    beat_.set_incarnation_id(id);
    beat_.set_registered_generation(plane_->fleet().record().generation);
    beat_.set_view_generation(round > 1 ? view.generation : 0);
    beat_.set_view_epoch(round > 1 ? view.epoch : 0);
    beat_.set_round(round);
    beat_.set_round_begun(round > 1 ? round : 0);
    beat_.set_rounds_per_second(1);
    beat_.set_sketch_round(round);
    wire::HeartbeatResponse answer;
    Require(plane_->Heartbeat(beat_, answer));
    benchmark::DoNotOptimize(answer);
  }

 private:
  static void Require(const absl::Status& status) {
    if (!status.ok()) std::abort();
  }

  void Register(int i) {
    wire::RegisterRequest request;
    request.set_protocol_version(kControlVersions.newest);
    request.set_run_id("beats");
    request.set_peer_id(i + 1);
    request.set_incarnation_id(i + 1);
    request.set_address(absl::StrCat("10.0.0.1:", i + 1));
    wire::RegisterResponse response;
    Require(plane_->Register(request, response));
  }

  const int peers_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::unique_ptr<ControlPlane> plane_;
  wire::HeartbeatRequest beat_;
  uint64_t beats_ = 0;
};

void BM_Heartbeat(benchmark::State& state) {
  BeatingService service(static_cast<int>(state.range(0)));
  for (auto _ : state) service.Beat();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Heartbeat)
    ->Arg(16)
    ->Arg(128)
    ->Arg(1024)
    ->Arg(10000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace gossamer

BENCHMARK_MAIN();
