#include "runtime/cli/fleet_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "runtime/membership/protocol.h"
#include "runtime/transport/grpc/tls.h"

namespace gossamer {

struct FleetClient::Stub {
  std::unique_ptr<wire::Topology::Stub> rpc;

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      const std::string& address, absl::Duration timeout,
      grpc::Status (wire::Topology::Stub::*method)(grpc::ClientContext*,
                                                   const Request&, Response*),
      Request request) {
    Response response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMilliseconds(timeout));
    const grpc::Status status =
        (rpc.get()->*method)(&context, request, &response);
    if (status.ok()) return response;
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        absl::StrCat("topology service at ", address, ": ",
                                     status.error_message()));
  }
};

FleetClient::FleetClient(const std::string& address,
                         std::shared_ptr<const CertificateFolder> certificates)
    : address_(address), stub_(std::make_unique<Stub>()) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  // A proxy for the web has no part in a fleet's control plane.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  stub_->rpc = wire::Topology::NewStub(grpc::CreateCustomChannel(
      address, TlsCredentials(std::move(certificates)).Channel(Role::kTopology),
      arguments));
}

FleetClient::~FleetClient() = default;

absl::StatusOr<wire::FleetStatus> FleetClient::GetStatus(
    const std::string& run_id, absl::Duration timeout) {
  wire::GetStatusRequest request;
  request.set_run_id(run_id);
  return stub_->Call(address_, timeout, &wire::Topology::Stub::GetStatus,
                     std::move(request));
}

absl::StatusOr<wire::LinkSurveyStatus> FleetClient::MeasureLinks(
    const std::string& run_id, bool start, absl::Duration timeout) {
  wire::MeasureLinksRequest request;
  request.set_run_id(run_id);
  request.set_start(start);
  return stub_->Call(address_, timeout, &wire::Topology::Stub::MeasureLinks,
                     std::move(request));
}

absl::StatusOr<uint64_t> FleetClient::Stop(const std::string& run_id,
                                           absl::Duration timeout) {
  wire::StopRequest request;
  request.set_run_id(run_id);
  GOSSAMER_ASSIGN_OR_RETURN(
      const wire::StopResponse response,
      stub_->Call(address_, timeout, &wire::Topology::Stub::Stop,
                  std::move(request)));
  return response.stop_round();
}

FleetProgress ProgressOf(const wire::FleetStatus& status, uint64_t rounds,
                         const std::string& title) {
  FleetProgress progress{.title = title, .rounds = rounds};
  for (const wire::PeerStatus& peer : status.peers()) {
    PeerProgress& p = progress.peers.emplace_back();
    p.rank = static_cast<int>(progress.peers.size()) - 1;  // sorted by id
    // Heartbeats tell the next round, people ask for the last.
    p.round = std::min(peer.round() > 0 ? peer.round() - 1 : 0, rounds);
    p.rounds_per_second = peer.rounds_per_second();
    p.generator_loss = peer.generator_loss();
    p.discriminator_loss = peer.discriminator_loss();
    p.bytes_sent = peer.bytes_sent();
    if (peer.has_score()) p.score = peer.score();
    p.silent = absl::Seconds(peer.seconds_since_heartbeat());
    p.finished = peer.finished();
  }
  if (status.has_consensus_distance()) {
    progress.consensus_distance = status.consensus_distance();
  }
  if (status.peers_size() < static_cast<int>(status.expected())) {
    progress.note = absl::StrCat("waiting for peers: ", status.peers_size(),
                                 " of ", status.expected());
  } else if (status.stop_round() != 0) {
    progress.note = absl::StrCat("stopping at round ", status.stop_round());
  }
  return progress;
}

}  // namespace gossamer
