#include "runtime/membership/grpc_topology_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/base/real_loop.h"
#include "runtime/membership/protocol.h"
#include "runtime/transport/grpc/tls.h"

namespace gossamer {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address,
    std::shared_ptr<const CertificateFolder> certificates) {
  grpc::ChannelArguments arguments;
  // Identity only: the parsers of compressed messages have had bombs.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // Reconnecting must not be slower than the retries here.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(
      address, TlsCredentials(std::move(certificates)).Channel(Role::kTopology),
      arguments);
}

absl::Status ToAbsl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

// Blocking calls on a thread of their own, one after the other.  gRPC 1.51's
// callback API is the obvious choice, but now and then it fails an assertion
// of its own when a call's last reference goes while its callback returns.
class GrpcTopologyCalls final : public TopologyCalls {
 public:
  GrpcTopologyCalls(const std::string& address, EventLoop* loop,
                    std::shared_ptr<const CertificateFolder> certificates,
                    absl::Duration deadline)
      : address_(address),
        certificates_(std::move(certificates)),
        deadline_(deadline),
        thread_(loop) {}
  ~GrpcTopologyCalls() override {
    alive_.reset();
    if (current_) current_->TryCancel();
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
    grpc::ClientContext context;
    Request request;
    Response response;
    grpc::Status status;
  };

  // Of this class's thread only, one call at a time.
  struct Line {
    std::unique_ptr<wire::Topology::Stub> stub;
    bool answered = false;  // the service has believed these certificates
  };

  // A connection shows the certificate that was in force when it was made, and
  // is refused once that expires or is revoked, whatever has taken its place
  // since.  So who was believed before is refused for good only on a new one.
  template <typename Request, typename Response>
  grpc::Status Try(grpc::Status (wire::Topology::Stub::*method)(
                       grpc::ClientContext*, const Request&, Response*),
                   Call<Request, Response>& call) {
    if (line_.stub == nullptr) {
      line_ = {.stub = wire::Topology::NewStub(
                   MakeChannel(address_, certificates_))};
    }
    const grpc::Status status = (line_.stub.get()->*method)(
        &call.context, call.request, &call.response);
    if (status.error_code() != grpc::StatusCode::UNAUTHENTICATED) {
      line_.answered = line_.answered || status.ok();
      return status;
    }
    const bool answered = line_.answered;
    line_ = {};
    if (!answered) return status;
    return {grpc::StatusCode::UNAVAILABLE,
            absl::StrCat(status.error_message(), "; shows its own again")};
  }

  // gRPC's thread sees the call, the line and the loop, never the client.
  template <typename Request, typename Response>
  void Start(grpc::Status (wire::Topology::Stub::*method)(grpc::ClientContext*,
                                                          const Request&,
                                                          Response*),
             Request request, Done<Response> done) {
    auto call = std::make_shared<Call<Request, Response>>();
    call->request = std::move(request);
    call->context.set_deadline(gpr_time_from_millis(
        absl::ToInt64Milliseconds(deadline_), GPR_TIMESPAN));
    // May be cancelled from the loop at any time.
    current_ = std::shared_ptr<grpc::ClientContext>(call, &call->context);
    thread_.Run(
        [this, call, method] { call->status = Try(method, *call); },
        [weak = std::weak_ptr<bool>(alive_), call, done = std::move(done)] {
          if (weak.lock()) done(ToAbsl(call->status), call->response);
        });
  }

  const std::string address_;
  const std::shared_ptr<const CertificateFolder> certificates_;
  const absl::Duration deadline_;
  Line line_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::shared_ptr<grpc::ClientContext> current_;  // the last call's
  ThreadCompute thread_;  // ends first: its work uses the line
};

}  // namespace

std::unique_ptr<TopologyCalls> MakeGrpcTopologyCalls(
    const std::string& address, EventLoop* loop,
    std::shared_ptr<const CertificateFolder> certificates,
    absl::Duration deadline) {
  return std::make_unique<GrpcTopologyCalls>(address, loop,
                                             std::move(certificates), deadline);
}

}  // namespace gossamer
