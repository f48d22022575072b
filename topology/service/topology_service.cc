#include "topology/service/topology_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/membership/protocol.h"

namespace gossamer {
namespace {

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                               std::string(status.message())));
  return reactor;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TopologyService>> TopologyService::Create(
    FleetOptions options, Store store, Clock clock, Log log) {
  auto kept = std::make_shared<Store>(std::move(store));
  GOSSAMER_ASSIGN_OR_RETURN(std::optional<FleetRecord> stored, kept->Load());
  GOSSAMER_ASSIGN_OR_RETURN(
      std::unique_ptr<ControlPlane> plane,
      ControlPlane::Create(
          std::move(options), std::move(stored),
          [kept](const FleetRecord& record) { return kept->Save(record); },
          std::move(clock), std::move(log)));
  return std::unique_ptr<TopologyService>(
      new TopologyService(std::move(plane)));
}

TopologyService::Progress TopologyService::Tick() {
  MutexLock lock(&mu_);
  return plane_->Tick();
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* TopologyService::Answer(
    grpc::CallbackServerContext* context,
    absl::Status (ControlPlane::*call)(const Request&, Response&),
    const Request& request, Response& response) {
  absl::Status status;
  {
    MutexLock lock(&mu_);
    status = (plane_.get()->*call)(request, response);
  }
  return Finish(context, status);
}

grpc::ServerUnaryReactor* TopologyService::Register(
    grpc::CallbackServerContext* context, const wire::RegisterRequest* request,
    wire::RegisterResponse* response) {
  return Answer(context, &ControlPlane::Register, *request, *response);
}

grpc::ServerUnaryReactor* TopologyService::Heartbeat(
    grpc::CallbackServerContext* context, const wire::HeartbeatRequest* request,
    wire::HeartbeatResponse* response) {
  return Answer(context, &ControlPlane::Heartbeat, *request, *response);
}

grpc::ServerUnaryReactor* TopologyService::GetStatus(
    grpc::CallbackServerContext* context, const wire::GetStatusRequest* request,
    wire::FleetStatus* response) {
  return Answer(context, &ControlPlane::GetStatus, *request, *response);
}

grpc::ServerUnaryReactor* TopologyService::Stop(
    grpc::CallbackServerContext* context, const wire::StopRequest* request,
    wire::StopResponse* response) {
  return Answer(context, &ControlPlane::Stop, *request, *response);
}

absl::StatusOr<TopologyServer> StartTopologyServer(const std::string& listen,
                                                   TopologyService* service) {
  TopologyServer started;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(),
                           &started.port);
  builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                             1);
  // Two servers on one port would each see half of the fleet.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  started.server = builder.BuildAndStart();
  if (started.server == nullptr || started.port == 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", listen,
        ": the port is in use, or the address is not one of this machine; "
        "choose another with --listen (port 0 takes a free one)"));
  }
  return started;
}

}  // namespace gossamer
