// The checks of a connector: at a hello, and of open connections afterwards.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/steady_time.h"
#include "runtime/transport/grpc/connector.h"

namespace gossamer {

absl::Status Connector::Judge(const GrpcStream& stream, const Stream& state,
                              const TransportHello& hello) const {
  // The identity is checked before anything is said about this peer's
  // neighbours: a program without a certificate learns nothing of the fleet.
  absl::Status ok =
      CheckHello(hello, options_.self, options_.run_id, options_.versions)
          .status();
  if (ok.ok()) ok = CheckIdentity(stream, hello.self);
  if (!ok.ok()) return ok;
  // An accepted stream may be of any neighbour; a dialled one is of the peer
  // that was meant.
  if (stream.dialled() && hello.self != state.peer) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "peer %d answers at the address of peer %d; check the list of "
        "addresses",
        hello.self.value, state.peer.value));
  }
  if (stream.dialled() && hello.lane != state.lane) {
    return absl::FailedPreconditionError(
        absl::StrFormat("peer %d answers lane %d as if it were lane %d",
                        hello.self.value, state.lane, hello.lane));
  }
  if (!peers_.contains(hello.self)) {
    return absl::UnavailableError(
        absl::StrFormat("peer %d is not a neighbour of peer %d, or not yet",
                        hello.self.value, options_.self.value));
  }
  return absl::OkStatus();
}

absl::Status Connector::CheckIdentity(const GrpcStream& stream,
                                      PeerId peer) const {
  // Without certificates an id is only claimed, which is why other machines are
  // refused then (Dial, Validate).
  if (options_.certificates == nullptr) return absl::OkStatus();
  // A stream that has ended is kUnavailable, which says that trying again may
  // help: the two ends learn of a view at different times.
  GOSSAMER_ASSIGN_OR_RETURN(const std::string pem, io_.CertificateOf(stream));
  const absl::StatusOr<Certificate> shown = options_.certificates->Check(pem);
  if (!shown.ok()) return shown.status();
  if (shown->identity.role == Role::kPeer && shown->identity.peer == peer) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError(
      absl::StrFormat("who says to be peer %d has the certificate of %s",
                      peer.value, Describe(shown->identity)));
}

absl::Status Connector::CheckOpen(PeerId id,
                                  const Connection& connection) const {
  // Each lane is a TLS connection of its own and has shown its own certificate.
  for (size_t lane = 0; lane < kMaxLanes; ++lane) {
    if (!connection.IsOpen(lane)) continue;
    GOSSAMER_RETURN_IF_ERROR(CheckIdentity(connection.lane(lane), id));
  }
  const absl::Time now = SteadyNow();
  if (now < connection.Deadline(options_.frame_slack)) return absl::OkStatus();
  // A peer that answers keepalives could otherwise hold the bytes of a frame
  // for ever.
  return absl::DeadlineExceededError(
      absl::StrFormat("a frame of peer %d has begun and does not come to its "
                      "end; a link that is slow needs a codec of fewer bytes",
                      id.value));
}

bool Connector::OnFull(const GrpcStreamPtr& stream, size_t bytes) {
  const auto it = streams_.find(stream);
  return alive_ && it != streams_.end() &&
         MakeRoom(it->second.peer, it->second.id, bytes);
}

bool Connector::MakeRoom(PeerId asks, ConnectionId asking, size_t bytes) {
  // No connection that ends could make room for so much.
  if (bytes > io_.all_bytes().most()) return false;
  PeerId heaviest = asks;
  size_t most = 0;
  for (const auto& [id, peer] : peers_) {
    // The peer that asks counts with what it asks for, and a tie goes against
    // it: otherwise two peers could end each other's connections in turn.
    size_t held = id == asks ? bytes : 0;
    for (const auto& [connection, lanes] : peer.up) held += lanes.held();
    if (held > most || (held == most && id == asks)) {
      most = held;
      heaviest = id;
    }
  }
  ConnectionId victim = 0;
  size_t freed = 0;
  for (const auto& [connection, lanes] : peers_.at(heaviest).up) {
    // Of the heaviest peer's connections the one ends that gives back the most.
    if ((heaviest == asks && connection == asking) || lanes.held() <= freed) {
      continue;
    }
    victim = connection;
    freed = lanes.held();
  }
  if (victim == 0) return false;
  CloseStream(heaviest, victim,
              absl::ResourceExhaustedError(absl::StrFormat(
                  "peer %d holds the most, %d of the %d bytes that all "
                  "connections may hold, and others need them",
                  heaviest.value, most, io_.all_bytes().most())));
  return true;
}

void Connector::CheckAgain() {
  // The connections are listed first: CloseStream() below changes `peers_`.
  std::vector<std::pair<PeerId, ConnectionId>> open;
  for (const auto& [id, peer] : peers_) {
    for (const auto& [connection, stream] : peer.up) {
      open.emplace_back(id, connection);
    }
  }
  for (const auto& [id, connection] : open) {
    const absl::Status good = CheckOpen(id, peers_.at(id).up.at(connection));
    // The event that a stream has ended is on its way.
    if (good.ok() || absl::IsUnavailable(good)) continue;
    Report(id, good);
    CloseStream(id, connection, good);
  }
  check_timer_ = loop_->RunAt(loop_->Now() + options_.check_again,
                              [self = shared_from_this()] {
                                if (self->alive_) self->CheckAgain();
                              });
}

}  // namespace gossamer
