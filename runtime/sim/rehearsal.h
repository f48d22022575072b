// A run of a fleet in virtual time: what the lab does with processes and
// namespaces, without either and without privileges.
//
// The real peers, codecs, edges, all-reduces, topology client and control plane
// over a simulated network; only time is made up: a step takes the time that is
// given for it, a message the time that its link needs.  This header knows
// nothing of files, terminals or where step times come from.

#ifndef GOSSAMER_RUNTIME_SIM_REHEARSAL_H_
#define GOSSAMER_RUNTIME_SIM_REHEARSAL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/run.pb.h"
#include "runtime/lab/scenario.h"
#include "runtime/membership/received_view.h"
#include "runtime/sim/fleet_event.h"
#include "runtime/sim/rehearsed_peer.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/sim_service.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/telemetry/metrics.h"
#include "topology/fleet/fleet.h"

namespace gossamer {

// A fleet has settled after an event: every living peer has trained a round by
// the service's newest view, whose members they are and no others.
struct FleetSettled {
  FleetEvent event;
  absl::Duration took = {};
  size_t members = 0;
  // The last round that all living peers had begun.
  uint64_t round_before = 0, round_after = 0;
};

struct RehearsalSpec {
  RunConfig config;   // resolved; its game has a closed form
  Scenario scenario;  // a host per peer, joiners included
  std::vector<FleetEvent> events = {};
  std::function<void(const FleetSettled&)> on_settled = nullptr;
  std::function<void(int rank)> on_lost = nullptr;  // its sink has no more
  std::function<void(absl::Duration at, const std::string& line)>
      on_service_log = nullptr;
  // Of one gradient at a rank, the call-th.
  std::function<absl::Duration(int rank, uint64_t call)> step_time;
  // Of memory that optimizer and codecs read and write; infinite where step
  // times include them.
  double bytes_per_second = 15e9;
  std::function<MetricsSink*(int rank)> sink;
};

class Rehearsal {
 public:
  // kInvalidArgument: a game of networks, fewer hosts than peers, events that
  // cannot happen, or what the parts refuse.
  static absl::StatusOr<std::unique_ptr<Rehearsal>> Create(RehearsalSpec spec);
  ~Rehearsal();

  // Goes on until every peer has ended or `pause`, asked after every event,
  // says so.  The first error of a peer; kDeadlineExceeded if nothing is left
  // to happen.
  absl::Status Run(absl::FunctionRef<bool()> pause);
  bool done() const;
  // The fleet ends at a round that it agrees on.
  void Stop();
  // Events that have not happened, or after which the fleet has not settled.
  size_t unsettled() const { return coming_ + unsettled_.size(); }
  // Returns the fleet as the service sees it; empty while the service is down.
  FleetSnapshot Snapshot() const;
  // 1/M sum_i ||x_i - mean||^2 over the parameters of the living peers as they
  // are now, which may be of rounds that differ by a few.
  double ConsensusDistance() const;
  // Returns the totals so far; peers' ids are one more than their ranks.
  SimNetwork::Traffic AllSent() const { return network_.AllSent(); }
  absl::Duration elapsed() const { return loop_.Now() - begin_; }

 private:
  explicit Rehearsal(RehearsalSpec spec);
  absl::Status AddPeer();
  void Happen(const FleetEvent& event);
  void Lose(const FleetEvent& event);
  void PollSettled();
  bool Settled() const;
  // Peers that have neither died nor ended.
  std::vector<size_t> Living() const;
  uint64_t SlowestRound() const;
  double PayloadRate(uint64_t bytes_per_second) const;
  SimLink LinkOf(PeerId from, PeerId to);
  SimLink SimLinkOf(const LinkSpec& link) const;
  void Outages(PeerId from, PeerId to, const Outage& outage);
  // Of all peers: the view of a name is one, and so is its schedule.
  absl::StatusOr<std::shared_ptr<const ReceivedView>> Read(
      const wire::HeartbeatResponse& answer, const ReceivedView& base);
  absl::StatusOr<std::shared_ptr<const MixingSchedule>> ScheduleOf(
      const View& view);

  const RehearsalSpec spec_;
  VirtualLoop loop_;
  const absl::Time begin_;
  SimNetwork network_;
  simulation::SimService service_;
  VirtualPeerLoop events_;  // of the fleet and its links
  // Of the first view; null if the algorithm is centralized.
  std::unique_ptr<MixingSchedule> schedule_;
  // By generation, epoch and round to resume from; by generation and epoch.
  std::map<std::array<uint64_t, 3>, std::shared_ptr<const ReceivedView>>
      received_;
  std::map<std::array<uint64_t, 2>, std::shared_ptr<const MixingSchedule>>
      schedules_;
  std::vector<std::unique_ptr<RehearsedPeer>> peers_;  // null: has died
  size_t ended_ = 0;                                   // or died
  bool stopping_ = false;
  size_t coming_ = 0;                    // events
  std::vector<FleetSettled> unsettled_;  // as they happened
  absl::Status failed_;                  // the first error of a peer
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SIM_REHEARSAL_H_
