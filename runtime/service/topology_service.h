// The Topology service of topology.proto over gRPC and a Store.
//
// It is a lock around the control plane, which does the work as long as this
// process holds the store.  If several instances share a store, the others
// stand by: they answer every call with UNAVAILABLE and name the active one.
// This header knows nothing of how the control plane decides.

#ifndef GOSSAMER_RUNTIME_SERVICE_TOPOLOGY_SERVICE_H_
#define GOSSAMER_RUNTIME_SERVICE_TOPOLOGY_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "algorithms/base/mutex.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/service/access.h"
#include "runtime/service/store.h"
#include "runtime/transport/grpc/connection_limiter.h"
#include "runtime/transport/grpc/flood_guard.h"
#include "runtime/transport/grpc/tls_gate.h"
#include "topology/fleet/control_plane.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/service_event.h"

namespace gossamer {

// Safe to use from any thread.
class TopologyService final : public wire::Topology::CallbackService {
 public:
  using Clock = ControlPlane::Clock;
  using Log = ControlPlane::Log;
  using Progress = ControlPlane::Progress;

  // Loads the state of `store`, unless another process holds it.  `log` gets a
  // line for people per event that changes the fleet, from any thread, one at a
  // time.  Returns the errors of Fleet::Create and of the store.  With
  // `certificates` callers must prove their identity, and have the rights of
  // access.h; without them every caller may do everything.
  static absl::StatusOr<std::unique_ptr<TopologyService>> Create(
      FleetOptions options, std::unique_ptr<Store> store, Clock clock, Log log,
      std::shared_ptr<CertificateFolder> certificates = nullptr);

  // Called a few times a second, from one thread.  Notices leases that ran out,
  // this instance's and peers', and takes over when it can.  An instance that
  // stands by has no progress.  Returns Create's errors for the state that
  // another instance left.
  absl::StatusOr<Progress> Tick() ABSL_LOCKS_EXCLUDED(mu_);

  // The limiter of a server of this service, before any byte is read.
  const std::shared_ptr<ConnectionLimiter>& limiter() const { return limiter_; }
  int max_request_bytes() const { return MaxRequestBytes(options_.expected); }
  const std::shared_ptr<FloodGuard>& guard() const { return guard_; }
  // The certificates of the callers, for the gate of a server to fill.
  const std::shared_ptr<ShownCertificates>& shown() const { return shown_; }

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
  grpc::ServerUnaryReactor* MeasureLinks(
      grpc::CallbackServerContext* context,
      const wire::MeasureLinksRequest* request,
      wire::LinkSurveyStatus* response) override;

 private:
  TopologyService(FleetOptions options, std::unique_ptr<Store> store,
                  Clock clock, Log log,
                  std::shared_ptr<CertificateFolder> certificates);
  // Returns kAlreadyExists or kUnavailable if it cannot take over now.
  absl::Status TakeOver() ABSL_LOCKS_EXCLUDED(mu_);
  void StandBy(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(
      grpc::CallbackServerContext* context, Call call, PeerId claimed,
      absl::Status (ControlPlane::*answer)(const Request&, Response&),
      const Request& request, Response& response) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns OK if the caller may make this call, and logs a refusal.
  absl::Status Authorize(const grpc::CallbackServerContext& context,
                         const absl::StatusOr<Certificate>& caller, Call call,
                         PeerId claimed, const std::string& run_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the certificate (PEM) that the caller has shown.
  absl::StatusOr<std::string> ShownBy(
      const grpc::CallbackServerContext& context) const;
  // The same, if it is valid; an empty one where no caller has to show one.
  absl::StatusOr<Certificate> CallerOf(
      const grpc::CallbackServerContext& context) const;
  // Remembers the certificate of `caller`.
  void NoteSerial(const grpc::CallbackServerContext& context,
                  const absl::StatusOr<Certificate>& caller)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EvictRevoked() ABSL_LOCKS_EXCLUDED(mu_);
  void ReportUnauthenticated() ABSL_LOCKS_EXCLUDED(mu_);
  void ReportFloods() ABSL_LOCKS_EXCLUDED(mu_);
  void ReportTrust() ABSL_LOCKS_EXCLUDED(mu_);

  const FleetOptions options_;
  const std::unique_ptr<Store> store_;
  const Clock clock_;
  const Log log_;
  // Used under mu_ only, which clang 14 does not check of a shared pointer.
  const std::shared_ptr<ServiceEvents> events_;
  const std::shared_ptr<CertificateFolder> certificates_;
  const std::shared_ptr<ConnectionLimiter> limiter_;
  const std::shared_ptr<FloodGuard> guard_;
  const std::shared_ptr<ShownCertificates> shown_ =
      std::make_shared<ShownCertificates>();
  Mutex mu_;
  std::unique_ptr<ControlPlane> plane_ ABSL_GUARDED_BY(mu_)
      ABSL_PT_GUARDED_BY(mu_);  // null: this instance stands by
  absl::Status stands_by_ ABSL_GUARDED_BY(mu_);  // the reason; OK: it does not
  AccessPolicy access_ ABSL_GUARDED_BY(mu_);
  std::string trust_problem_ ABSL_GUARDED_BY(mu_);
  // The certificate with which each peer was last heard since the plane began;
  // for a peer that was not heard, the one that was refused.
  std::map<PeerId, std::string> serials_ ABSL_GUARDED_BY(mu_);
};

struct TopologyServer {
  // Destroyed after the server.  Null without certificates.
  std::unique_ptr<TlsGate> gate;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

// Listens on "host:port"; port 0 takes a free one.  `certificates` as in
// TopologyService::Create.  Returns kUnavailable if it cannot listen.
absl::StatusOr<TopologyServer> StartTopologyServer(
    const std::string& listen, TopologyService* service,
    std::shared_ptr<CertificateFolder> certificates = nullptr);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_TOPOLOGY_SERVICE_H_
