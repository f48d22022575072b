// The topology service in virtual time: the real control plane, its record on a
// disk that may be old, and calls that take time and get lost.
//
// This header knows nothing of peers but their calls.

#ifndef GOSSAMER_RUNTIME_SIM_SIM_SERVICE_H_
#define GOSSAMER_RUNTIME_SIM_SIM_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/rng.h"
#include "runtime/membership/topology_client.h"
#include "runtime/sim/crash_point.h"
#include "runtime/sim/virtual_loop.h"
#include "topology/fleet/control_plane.h"

namespace gossamer::simulation {

// Checks the service's decisions against the calls that reach it.
class ServiceObserver {
 public:
  virtual ~ServiceObserver() = default;
  // The service starts again with this record.
  virtual void Started(const FleetRecord& record, absl::Time now) = 0;
  // The service has accepted a call.
  virtual void Registered(const wire::RegisterRequest& request,
                          absl::Time now) = 0;
  virtual void Heard(const wire::HeartbeatRequest& request, absl::Time now) = 0;
  // Returns the error in the change to `record`; "" if there is none.
  virtual std::string Changed(const FleetRecord& record, absl::Time now) = 0;
};

struct SimServiceOptions {
  FleetOptions fleet;
  absl::Duration latency;  // of a call, and of its answer
  uint64_t seed = 0;
  // Called with the name of each fault that happens here; may be null.
  std::function<void(std::string_view)> on_fault;
  std::shared_ptr<ServiceObserver> observer;  // may be null
};

class SimService {
 public:
  using Log = std::function<void(const std::string&)>;

  // `loop` outlives it.  The service is down until Start().  `violation` gets
  // the errors that the observer finds.
  SimService(VirtualLoop* loop, SimServiceOptions options, Log log,
             Log violation = nullptr);

  // Starts from the record on its disk.  `old`: from the backup's record, if it
  // knows enough to go on from.
  absl::Status Start(bool old);
  void Crash() { plane_.reset(); }
  // Called while the service is down: its record is lost.
  void LoseDisk();
  bool up() const { return plane_ != nullptr; }
  const Fleet* fleet() const { return plane_ ? &plane_->fleet() : nullptr; }
  // Logs one line on each member.
  void ReportMembers() const;
  // Keeps a copy of the record as it is now.
  void BackUp() { backup_ = disk_; }
  void RequestStop();

  void SetLoss(double loss) { loss_ = loss; }
  // Sets the peers whose calls are lost, and those that get no answers, from
  // now on.
  void Cut(std::set<PeerId> calls, std::set<PeerId> answers) {
    deaf_to_ = std::move(calls);
    mute_to_ = std::move(answers);
  }
  void SetDiskError(double rate) { disk_error_ = rate; }

  // Returns the calls of one incarnation of a peer, to be used on `loop`.  All
  // outlive it.
  std::unique_ptr<TopologyCalls> Connect(VirtualPeerLoop* loop,
                                         CrashPoint* crash);

 private:
  class Calls;
  void Tick();
  bool Lost();
  void Count(std::string_view fault) const;
  void OnAnswered(const wire::RegisterRequest& request,
                  const absl::Status& status);
  void OnAnswered(const wire::HeartbeatRequest& request,
                  const absl::Status& status);
  void Watch();
  bool MayForget() const;
  // Takes the view out of an answer; answers under way share it, of which a
  // large fleet has thousands.
  std::shared_ptr<wire::ViewMessage> TakeView(wire::HeartbeatResponse& answer);
  std::shared_ptr<wire::ViewMessage> TakeView(wire::RegisterResponse&) {
    return nullptr;
  }

  VirtualPeerLoop loop_;
  const SimServiceOptions options_;
  const Log log_;
  const Log violation_;
  const RngKey key_;
  uint64_t watched_version_ = 0;
  std::set<PeerId> deaf_to_, mute_to_;
  std::optional<FleetRecord> disk_;
  std::optional<FleetRecord> backup_;
  // Incarnation ids and epochs.
  std::set<std::pair<uint64_t, uint64_t>> views_known_;
  std::unique_ptr<ControlPlane> plane_;
  std::shared_ptr<wire::ViewMessage> answered_view_;  // the last that was taken
  double loss_ = 0;
  double disk_error_ = 0;
  absl::Duration clock_error_;  // since the last start
  uint64_t starts_ = 0;
  uint64_t calls_ = 0;
  uint64_t saves_ = 0;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_RUNTIME_SIM_SIM_SERVICE_H_
