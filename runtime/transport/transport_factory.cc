#include "runtime/transport/transport_factory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "runtime/transport/grpc/grpc_transport.h"

namespace gossamer {
namespace {

absl::StatusOr<MadeTransport> MakeGrpc(RealLoop* loop,
                                       TransportOptions options) {
  GrpcOptions grpc;
  grpc.self = options.self;
  grpc.run_id = std::move(options.run_id);
  grpc.listen_address = std::move(options.listen_address);
  grpc.allow_insecure_remote = options.allow_insecure_remote;
  grpc.certificates = std::move(options.certificates);
  grpc.lanes = options.connections;
  const int most_lanes =
      options.connections == 0 ? kAdaptiveLanes : options.connections;
  grpc.congestion_control = std::move(options.congestion_control);
  grpc.tls_gate = options.tls_gate;
  // An old connection may outlast the one that replaces it, and the other ends
  // may have several where this one has one.
  grpc.max_connections =
      std::max(grpc.max_connections, 2 * options.max_others) *
      std::max(grpc.lanes, kAdaptiveLanes);
  grpc.max_body_bytes = options.max_body_bytes;
  grpc.max_queued_bytes = options.max_queued_bytes;
  grpc.max_bytes_in_flight = options.max_bytes_in_flight;
  grpc.seed = options.seed;
  grpc.on_problem = std::move(options.on_problem);
  GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<GrpcTransport> made,
                            GrpcTransport::Create(loop, std::move(grpc)));
  MadeTransport result{.port = made->port(),
                       .connection_capacity = made->authenticated_capacity(),
                       .connections_an_edge = most_lanes};
  result.transport = std::move(made);
  return result;
}

absl::StatusOr<MadeTransport> MakeNccl(RealLoop* loop,
                                       TransportOptions options) {
  if (options.nccl == nullptr || options.device == nullptr) {
    return absl::FailedPreconditionError(
        "transport is nccl, but this peer's parameters are in host memory, and "
        "NCCL joins GPUs: write transport: \"auto\" or \"grpc\"");
  }
  NcclOptions nccl{.self = options.self,
                   .max_body_bytes = options.max_body_bytes,
                   // The other end's queue out is bounded alike.
                   .max_held_bytes = options.max_queued_bytes,
                   .report = options.report};
  NcclApi* const api = options.nccl;
  NcclDevice* const device = options.device;
  GOSSAMER_ASSIGN_OR_RETURN(MadeTransport made,
                            MakeGrpc(loop, std::move(options)));
  auto transport = std::make_unique<NcclTransport>(
      std::move(made.transport), loop, api, device, std::move(nccl));
  made.nccl = transport.get();
  made.transport = std::move(transport);
  return made;
}

absl::StatusOr<MadeTransport> MakeAuto(RealLoop* loop,
                                       TransportOptions options) {
  const bool on_device = options.nccl != nullptr && options.device != nullptr;
  return on_device ? MakeNccl(loop, std::move(options))
                   : MakeGrpc(loop, std::move(options));
}

struct Maker {
  std::string_view name;
  absl::StatusOr<MadeTransport> (*make)(RealLoop*, TransportOptions);
};

constexpr Maker kTransports[] = {
    {"auto", MakeAuto}, {"grpc", MakeGrpc}, {"nccl", MakeNccl}};

}  // namespace

std::vector<std::string_view> TransportNames() {
  std::vector<std::string_view> names;
  for (const Maker& maker : kTransports) names.push_back(maker.name);
  return names;
}

absl::StatusOr<MadeTransport> MakeTransport(std::string_view name,
                                            RealLoop* loop,
                                            TransportOptions options) {
  for (const Maker& maker : kTransports) {
    if (maker.name == name) return maker.make(loop, std::move(options));
  }
  std::vector<std::string> names;
  for (const Maker& maker : kTransports) names.emplace_back(maker.name);
  return absl::InvalidArgumentError(
      absl::StrCat("no transport is called \"", std::string(name),
                   "\"; there are ", absl::StrJoin(names, ", ")));
}

}  // namespace gossamer
