#include "runtime/cli/fleet_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "proto/topology.grpc.pb.h"
#include "runtime/transport/grpc/grpc_status.h"
#include "runtime/transport/grpc/instance_calls.h"
#include "runtime/transport/grpc/tls.h"
#include "topology/fleet/losses_message.h"
#include "topology/fleet/protocol.h"

namespace gossamer {

struct FleetClient::Stub {
  const std::string addresses;
  InstanceCalls instances;

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      absl::Duration timeout,
      grpc::Status (wire::Topology::Stub::*method)(grpc::ClientContext*,
                                                   const Request&, Response*),
      const Request& request) {
    Response response;
    const grpc::Status status = instances.Run(
        timeout, [&](const std::shared_ptr<grpc::Channel>& channel,
                     grpc::ClientContext* context) {
          wire::Topology::Stub rpc(channel);
          return (rpc.*method)(context, request, &response);
        });
    if (status.ok()) return response;
    return absl::Status(ToAbsl(status).code(),
                        absl::StrCat("topology service at ", addresses, ": ",
                                     status.error_message()));
  }
};

FleetClient::FleetClient(const std::string& addresses,
                         std::shared_ptr<CertificateFolder> certificates,
                         int max_answer_bytes)
    : stub_(new Stub{
          .addresses = addresses,
          .instances = {
              addresses, [own = std::move(certificates),
                          max_answer_bytes](const std::string& address) {
                return MakeCallChannel(
                    address, TlsCredentials(own).Channel(Role::kTopology),
                    max_answer_bytes);
              }}}) {}

FleetClient::~FleetClient() = default;

absl::StatusOr<wire::FleetStatus> FleetClient::GetStatus(
    const std::string& run_id, absl::Duration timeout) {
  wire::GetStatusRequest request;
  request.set_run_id(run_id);
  return stub_->Call(timeout, &wire::Topology::Stub::GetStatus, request);
}

absl::StatusOr<wire::LinkSurveyStatus> FleetClient::MeasureLinks(
    const std::string& run_id, bool start, absl::Duration timeout) {
  wire::MeasureLinksRequest request;
  request.set_run_id(run_id);
  request.set_start(start);
  return stub_->Call(timeout, &wire::Topology::Stub::MeasureLinks, request);
}

absl::StatusOr<uint64_t> FleetClient::Stop(const std::string& run_id,
                                           absl::Duration timeout) {
  wire::StopRequest request;
  request.set_run_id(run_id);
  GOSSAMER_ASSIGN_OR_RETURN(
      const wire::StopResponse response,
      stub_->Call(timeout, &wire::Topology::Stub::Stop, request));
  return response.stop_round();
}

namespace {

// Nullopt before there is one.
std::optional<Consensus> ConsensusOf(const wire::FleetStatus& status) {
  if (!status.has_consensus_distance()) return std::nullopt;
  Consensus consensus = {.round = status.consensus_round(),
                         .distance = status.consensus_distance()};
  const int players =
      std::min(status.consensus_player_size(), status.player_distance_size());
  for (int i = 0; i < players; ++i) {
    consensus.players.push_back(
        {status.consensus_player(i), status.player_distance(i)});
  }
  consensus.players = Bounded(std::move(consensus.players));
  return consensus;
}

}  // namespace

FleetProgress ProgressOf(const wire::FleetStatus& status, uint64_t rounds,
                         const std::string& title) {
  FleetProgress progress{.title = title, .rounds = rounds};
  for (const wire::PeerStatus& peer : status.peers()) {
    PeerProgress& p = progress.peers.emplace_back();
    p.id = peer.peer_id();
    // Heartbeats have the next round; people ask for the last.
    p.round = std::min(peer.round() > 0 ? peer.round() - 1 : 0, rounds);
    p.rounds_per_second = peer.rounds_per_second();
    p.losses = Bounded(LossesOf(peer));
    p.bytes_sent = peer.bytes_sent();
    if (peer.has_score()) p.score = peer.score();
    p.silent = absl::Seconds(peer.seconds_since_heartbeat());
    p.finished = peer.finished();
  }
  progress.consensus = ConsensusOf(status);
  if (status.peers_size() < static_cast<int>(status.expected())) {
    progress.note = absl::StrCat("waiting for peers: ", status.peers_size(),
                                 " of ", status.expected());
  } else if (status.stop_round() != 0) {
    progress.note = absl::StrCat("stopping at round ", status.stop_round());
  }
  return progress;
}

}  // namespace gossamer
