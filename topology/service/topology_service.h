// The Topology service of topology.proto over gRPC and a Store.
//
// A lock around the control plane, which does the work.

#ifndef GOSSAMER_TOPOLOGY_SERVICE_TOPOLOGY_SERVICE_H_
#define GOSSAMER_TOPOLOGY_SERVICE_TOPOLOGY_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/base/mutex.h"
#include "topology/service/control_plane.h"
#include "topology/service/store.h"

namespace gossamer {

// Any thread.
class TopologyService final : public wire::Topology::CallbackService {
 public:
  using Clock = ControlPlane::Clock;
  using Log = ControlPlane::Log;
  using Progress = ControlPlane::Progress;

  // Takes up what `store` holds.  `log` gets a line for people per event that
  // changes the fleet, from any thread, one at a time.  Errors: of
  // Fleet::Create and of the store.
  static absl::StatusOr<std::unique_ptr<TopologyService>> Create(
      FleetOptions options, Store store, Clock clock, Log log);

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
  explicit TopologyService(std::unique_ptr<ControlPlane> plane)
      : plane_(std::move(plane)) {}
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(
      grpc::CallbackServerContext* context,
      absl::Status (ControlPlane::*call)(const Request&, Response&),
      const Request& request, Response& response) ABSL_LOCKS_EXCLUDED(mu_);

  Mutex mu_;
  const std::unique_ptr<ControlPlane> plane_ ABSL_PT_GUARDED_BY(mu_);
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
