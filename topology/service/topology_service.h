// The Topology service of topology.proto over a Fleet and its Store.
//
// Turns calls into events and saves what changed before it answers.  Decides
// nothing itself.

#ifndef GOSSAMER_TOPOLOGY_SERVICE_TOPOLOGY_SERVICE_H_
#define GOSSAMER_TOPOLOGY_SERVICE_TOPOLOGY_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/base/ids.h"
#include "runtime/base/mutex.h"
#include "topology/service/fleet.h"
#include "topology/service/store.h"

namespace gossamer {

// Any thread.
class TopologyService final : public wire::Topology::CallbackService {
 public:
  using Clock = std::function<absl::Time()>;
  using Log = std::function<void(const std::string&)>;

  // Takes up what `store` holds.  `log` gets a line for people per event that
  // changes the fleet, from any thread, one at a time.  Errors: of
  // Fleet::Create and of the store.
  static absl::StatusOr<std::unique_ptr<TopologyService>> Create(
      FleetOptions options, Store store, Clock clock, Log log);

  struct Progress {
    bool finished = false;  // every member has
    bool some_finished = false;
    std::vector<PeerId> lost;  // unfinished and without a lease
    int unfinished = 0;
  };
  // To be called a few times a second: notices leases that ran out.
  Progress Tick() ABSL_LOCKS_EXCLUDED(mu_);

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const wire::RegisterRequest* request,
                                     wire::RegisterResponse* response) override;
  grpc::ServerUnaryReactor* Heartbeat(
      grpc::CallbackServerContext* context,
      const wire::HeartbeatRequest* request,
      wire::HeartbeatResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const wire::GetStatusRequest* request,
                                      wire::FleetStatus* response) override;
  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const wire::StopRequest* request,
                                 wire::StopResponse* response) override;

 private:
  TopologyService(Fleet fleet, Store store, Clock clock, Log log);
  absl::Status HandleRegister(const wire::RegisterRequest& request,
                              wire::RegisterResponse& response);
  absl::Status HandleHeartbeat(const wire::HeartbeatRequest& request,
                               wire::HeartbeatResponse& response);
  absl::Status HandleGetStatus(const wire::GetStatusRequest& request,
                               wire::FleetStatus& response);
  absl::Status HandleStop(const wire::StopRequest& request,
                          wire::StopResponse& response);
  absl::Status CheckRun(const std::string& run_id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes what changed durable, then tells people.
  absl::Status Save() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogChanges(const FleetRecord& before) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock clock_;
  const Log log_;
  Mutex mu_;
  Fleet fleet_ ABSL_GUARDED_BY(mu_);
  Store store_ ABSL_GUARDED_BY(mu_);
  uint64_t saved_version_ ABSL_GUARDED_BY(mu_) = 0;
  FleetRecord saved_ ABSL_GUARDED_BY(mu_);
};

struct TopologyServer {
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

// Listens on "host:port"; port 0 takes a free one.  kUnavailable if it cannot.
absl::StatusOr<TopologyServer> StartTopologyServer(const std::string& listen,
                                                   TopologyService* service);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_SERVICE_TOPOLOGY_SERVICE_H_
