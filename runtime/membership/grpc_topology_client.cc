#include "runtime/membership/grpc_topology_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/base/real_loop.h"
#include "runtime/base/steady_time.h"
#include "runtime/membership/call_limit.h"
#include "runtime/transport/grpc/grpc_status.h"
#include "runtime/transport/grpc/instance_calls.h"
#include "runtime/transport/grpc/tls.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// Makes blocking calls on a thread of its own, one after the other.  The
// callback API of gRPC 1.51 is avoided: it sometimes fails an assertion of its
// own when a call's last reference goes while its callback returns.
class GrpcTopologyCalls final : public TopologyCalls {
 public:
  GrpcTopologyCalls(const std::string& addresses, EventLoop* loop,
                    std::shared_ptr<CertificateFolder> certificates,
                    absl::Duration deadline, int max_answer_bytes)
      : limit_(deadline),
        instances_(
            addresses,
            [own = std::move(certificates),
             max_answer_bytes](const std::string& address) {
              return MakeCallChannel(
                  address, TlsCredentials(own).Channel(Role::kTopology),
                  max_answer_bytes);
            },
            /*silent_calls=*/2),
        thread_(loop) {}
  ~GrpcTopologyCalls() override {
    // Callbacks that are on the loop already find this gone; Cancel() then ends
    // the blocking call, so that the thread can be joined.
    alive_.reset();
    instances_.Cancel();
  }

  void Register(wire::RegisterRequest request,
                Done<wire::RegisterResponse> done) override {
    Start(&wire::Topology::Stub::Register, std::move(request), std::move(done));
  }
  void Heartbeat(wire::HeartbeatRequest request,
                 Done<wire::HeartbeatResponse> done) override {
    Start(&wire::Topology::Stub::Heartbeat, std::move(request),
          std::move(done));
  }

 private:
  template <typename Request, typename Response>
  struct Call {
    Request request;
    Response response;
    grpc::Status status;
  };

  // A connection shows the certificate that was valid when it was made.  The
  // service refuses it once that expires or is revoked, whatever has replaced
  // it since.  So a client that was accepted before takes only a refusal on a
  // new connection for final.
  template <typename Request, typename Response>
  grpc::Status Try(grpc::Status (wire::Topology::Stub::*method)(
                       grpc::ClientContext*, const Request&, Response*),
                   Call<Request, Response>& call) {
    const absl::Time begun = SteadyNow();
    const grpc::Status status = instances_.Run(
        limit_.limit(), [&](const std::shared_ptr<grpc::Channel>& channel,
                            grpc::ClientContext* context) {
          wire::Topology::Stub stub(channel);
          return (stub.*method)(context, call.request, &call.response);
        });
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      limit_.TimedOut();
    } else if (status.ok()) {
      limit_.Answered(SteadyNow() - begun);
    }
    if (status.error_code() != grpc::StatusCode::UNAUTHENTICATED) {
      answered_ = answered_ || status.ok();
      return status;
    }
    // The next call makes a new connection, which shows the certificate that is
    // in the folder then.
    instances_.ResetChannels();
    if (!std::exchange(answered_, false)) return status;
    return {grpc::StatusCode::UNAVAILABLE,
            absl::StrCat(status.error_message(), "; shows its own again")};
  }

  // The thread uses the call, the instances and the loop, never the client.
  template <typename Request, typename Response>
  void Start(grpc::Status (wire::Topology::Stub::*method)(grpc::ClientContext*,
                                                          const Request&,
                                                          Response*),
             Request request, Done<Response> done) {
    auto call = std::make_shared<Call<Request, Response>>();
    call->request = std::move(request);
    thread_.Run(
        [this, call, method] { call->status = Try(method, *call); },
        [weak = std::weak_ptr<bool>(alive_), call, done = std::move(done)] {
          if (weak.lock()) done(ToAbsl(call->status), call->response);
        });
  }

  // These two belong to the thread.
  CallLimit limit_;
  bool answered_ = false;  // the service has believed these certificates
  InstanceCalls instances_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  ThreadCompute
      thread_;  // destroyed first, because its work uses the instances
};

}  // namespace

std::unique_ptr<TopologyCalls> MakeGrpcTopologyCalls(
    const std::string& addresses, EventLoop* loop,
    std::shared_ptr<CertificateFolder> certificates, absl::Duration deadline,
    int max_answer_bytes) {
  return std::make_unique<GrpcTopologyCalls>(
      addresses, loop, std::move(certificates), deadline, max_answer_bytes);
}

}  // namespace gossamer
