// One peer of a rehearsal: the parts of peer_process.h on a simulated network
// and a virtual clock.
//
// This header knows nothing of other peers.

#ifndef GOSSAMER_RUNTIME_SIM_REHEARSED_PEER_H_
#define GOSSAMER_RUNTIME_SIM_REHEARSED_PEER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/run.pb.h"
#include "runtime/base/task.h"
#include "runtime/membership/topology_client.h"
#include "runtime/peer/peer.h"
#include "runtime/peer/waiter.h"
#include "runtime/sim/crash_point.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/sim_service.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/telemetry/metrics.h"

namespace gossamer {

class RehearsedPeer {
 public:
  struct Options {
    const RunConfig& config;
    int rank = 0;
    std::function<absl::Duration(uint64_t call)> step_time;
    double bytes_per_second = 0;
    MetricsSink* sink = nullptr;
    // Edges of a peer, for the time that its codecs take.
    size_t edges = 0;
    // The peers of a rehearsal share both.
    ViewReader read_view;
    ScheduleMaker make_schedule;
    std::function<void(const RehearsedPeer& ended)> on_end;
  };

  static PeerId IdOf(int rank) { return {static_cast<uint64_t>(rank) + 1}; }

  // All outlive it.  Registers and trains once the loop runs.
  static absl::StatusOr<std::unique_ptr<RehearsedPeer>> Create(
      Options options, VirtualLoop* loop, SimNetwork& network,
      simulation::SimService& service);
  ~RehearsedPeer();

  bool ended() const { return status_.has_value(); }
  // Called only once it has ended.
  const absl::Status& status() const { return *status_; }
  std::span<const float> parameters() const;
  // The view that it trains by; of epoch 0 before the first.
  const View& view() const { return peer_->view(); }
  uint64_t round() const { return peer_->round(); }

 private:
  class TimedGame;
  class Compute;

  RehearsedPeer(Options options, VirtualLoop* loop);
  absl::Status Compose(SimNetwork& network, simulation::SimService& service);
  absl::Duration Overhead() const;
  int Shard() const;
  Task<absl::Status> Train();
  Task<absl::Status> Main();

  const Options options_;
  VirtualPeerLoop loop_;
  Waiter waiter_;
  simulation::CrashPoint immortal_;
  std::unique_ptr<TimedGame> game_;
  std::unique_ptr<LocalStep> step_;
  std::unique_ptr<Compute> compute_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<TopologyClient> client_;
  std::unique_ptr<Peer> peer_;
  absl::Status refused_;
  std::optional<absl::Status> status_;
  Task<absl::Status> main_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SIM_REHEARSED_PEER_H_
