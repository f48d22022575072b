// A run of a fleet in virtual time: what the lab does with processes and
// namespaces, without either and without privileges.
//
// The real peers, codecs, edges, all-reduces, topology client and control plane
// over a simulated network; only time is made up: a step takes the time that is
// given for it, a message the time that its link needs.  Knows nothing of
// files, terminals or where step times come from.

#ifndef GOSSAMER_RUNTIME_SIM_REHEARSAL_H_
#define GOSSAMER_RUNTIME_SIM_REHEARSAL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/run.pb.h"
#include "runtime/lab/scenario.h"
#include "runtime/membership/told_view.h"
#include "runtime/sim/rehearsed_peer.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/sim_service.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/telemetry/metrics.h"
#include "topology/fleet/fleet.h"

namespace gossamer {

struct RehearsalSpec {
  RunConfig config;   // resolved; its game has a closed form
  Scenario scenario;  // a host per peer
  // Of one gradient at a rank, the call-th.
  std::function<absl::Duration(int rank, uint64_t call)> step_time;
  // Of memory that optimizer and codecs read and write; infinite where step
  // times include them.
  double bytes_per_second = 15e9;
  std::function<MetricsSink*(int rank)> sink;
};

class Rehearsal {
 public:
  // kInvalidArgument: a game of networks, fewer hosts than peers, or what the
  // parts refuse.
  static absl::StatusOr<std::unique_ptr<Rehearsal>> Create(RehearsalSpec spec);
  ~Rehearsal();

  // Goes on until every peer has ended or `pause`, asked after every event,
  // says so.  The first error of a peer; kDeadlineExceeded if nothing is left
  // to happen.
  absl::Status Run(absl::FunctionRef<bool()> pause);
  bool done() const;
  // The fleet ends at a round that it agrees on.
  void Stop() { service_.RequestStop(); }
  // Returns the fleet as the service sees it.
  FleetSnapshot Snapshot() const;
  // 1/M sum_i ||x_i - mean||^2 over the parameters as they are now, which may
  // be of rounds that differ by a few.
  double ConsensusDistance() const;
  // Returns the totals so far; peers' ids are one more than their ranks.
  SimNetwork::Traffic AllSent() const { return network_.AllSent(); }
  absl::Duration elapsed() const { return loop_.Now() - begin_; }

 private:
  explicit Rehearsal(RehearsalSpec spec);
  double PayloadRate(uint64_t bytes_per_second) const;
  SimLink LinkOf(PeerId from, PeerId to);
  void Outages(PeerId from, PeerId to, const Outage& outage);
  // Of all peers: the view of a name is one, and so is its schedule.
  absl::StatusOr<std::shared_ptr<const ToldView>> Read(
      const wire::HeartbeatResponse& answer, const ToldView& base);
  absl::StatusOr<std::shared_ptr<const MixingSchedule>> ScheduleOf(
      const View& view);

  const RehearsalSpec spec_;
  VirtualLoop loop_;
  const absl::Time begin_;
  SimNetwork network_;
  simulation::SimService service_;
  VirtualPeerLoop outages_;
  // By generation, epoch and round to resume from; by generation and epoch.
  std::map<std::array<uint64_t, 3>, std::shared_ptr<const ToldView>> told_;
  std::map<std::array<uint64_t, 2>, std::shared_ptr<const MixingSchedule>>
      schedules_;
  std::vector<std::unique_ptr<RehearsedPeer>> peers_;
  size_t ended_ = 0;
  absl::Status failed_;  // the first error of a peer
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SIM_REHEARSAL_H_
