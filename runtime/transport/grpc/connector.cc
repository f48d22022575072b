#include "runtime/transport/grpc/connector.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/base/address.h"

namespace gossamer {
namespace {

// A connection that lived this long has shown that the peer is well: the next
// attempt is made soon.
constexpr absl::Duration kProvenAfter = absl::Seconds(5);
constexpr int kMaxDoublings = 20;

}  // namespace

Connector::Connector(RealLoop* loop, GrpcOptions options)
    : loop_(loop), options_(std::move(options)), io_(this, options_) {}

absl::Status Connector::Start() {
  absl::Status started = io_.Start();
  if (!started.ok()) return started;
  loop_->SetPoller(&io_);
  polled_ = true;
  if (options_.certificates != nullptr) CheckAgain();
  return started;
}

void Connector::Shutdown() {
  alive_ = false;
  loop_->Cancel(check_timer_);
  if (std::exchange(polled_, false)) loop_->SetPoller(nullptr);
  for (auto& [id, peer] : peers_) loop_->Cancel(peer.redial);
  for (auto& [stream, state] : streams_) loop_->Cancel(state.hello_timer);
  io_.Shutdown();
  peers_.clear();
  streams_.clear();
}

template <typename F>
void Connector::Post(F fn) {
  loop_->Post([self = shared_from_this(), fn = std::move(fn)]() mutable {
    if (self->alive_) fn(*self);
  });
}

void Connector::Connect(PeerId id, const std::string& address) {
  Peer& peer = peers_[id];
  if (!peer.address.empty() && peer.address == address) return;
  peer.address = address;
  peer.failures = 0;
  if (peer.dialling != nullptr) {
    peer.dialling->End(absl::CancelledError("the peer has a new address"));
  }
  loop_->Cancel(std::exchange(peer.redial, EventLoop::TimerId{0}));
  Dial(id);
}

void Connector::Disconnect(PeerId id) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  const absl::Status why = absl::CancelledError(
      absl::StrFormat("peer %d was disconnected by this end", id.value));
  while (!it->second.up.empty()) {
    CloseStream(id, it->second.up.begin()->first, why);
  }
  if (it->second.dialling != nullptr) it->second.dialling->End(why);
  loop_->Cancel(it->second.redial);
  peers_.erase(it);
}

void Connector::Dial(PeerId id) {
  Peer& peer = peers_.at(id);
  peer.redial = EventLoop::TimerId{0};
  if (peer.address.empty() || peer.dialling != nullptr || !peer.up.empty() ||
      (!options_.dial_from_both_ends && id < options_.self)) {
    return;
  }
  if (options_.certificates == nullptr && !options_.allow_insecure_remote &&
      !IsLoopback(peer.address)) {
    Report(id,
           absl::FailedPreconditionError(absl::StrFormat(
               "peer %d at %s is on another machine and nothing is "
               "encrypted; give certificates, or set allow_insecure_remote to "
               "dial it",
               id.value, peer.address)));
    return;
  }
  ++peer.attempt;
  peer.dialling = io_.Dial(peer.address, {.self = options_.self,
                                          .target = id,
                                          .attempt = peer.attempt,
                                          .run_id = options_.run_id});
  Track(peer.dialling, id);
}

void Connector::DialLater(PeerId id) {
  const auto it = peers_.find(id);
  if (it == peers_.end() || it->second.redial != EventLoop::TimerId{0}) return;
  Peer& peer = it->second;
  const int doublings = std::min(peer.failures++, kMaxDoublings);
  const double u = RngKey(options_.seed)
                       .Fold("redial")
                       .Fold(options_.self.value)
                       .Fold(id.value)
                       .Uniform(peer.attempt);
  const absl::Duration wait =
      std::min(options_.max_backoff,
               options_.initial_backoff * std::ldexp(1.0, doublings)) *
      (1 - u / 2);
  peer.redial =
      loop_->RunAt(loop_->Now() + wait, [self = shared_from_this(), id] {
        if (self->alive_) self->Dial(id);
      });
}

// A stream that does not say hello in time is given up.
void Connector::Track(const GrpcStreamPtr& stream, PeerId peer) {
  Stream& state = streams_[stream];
  state.peer = peer;
  state.hello_timer =
      loop_->RunAt(loop_->Now() + options_.hello_timeout,
                   [stream, timeout = options_.hello_timeout] {
                     stream->End(absl::DeadlineExceededError(absl::StrFormat(
                         "no hello within %s", absl::FormatDuration(timeout))));
                   });
}

void Connector::OnAccepted(GrpcStreamPtr stream) {
  if (alive_) Track(stream, PeerId{});
}

absl::Status Connector::Judge(const GrpcStream& stream, const Stream& state,
                              const TransportHello& hello) const {
  absl::Status ok = CheckHello(hello, options_.self, options_.run_id);
  if (ok.ok()) ok = CheckIdentity(stream, hello.self);
  if (!ok.ok()) return ok;
  if (stream.dialled() && hello.self != state.peer) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "peer %d answers at the address of peer %d; check the list of "
        "addresses",
        hello.self.value, state.peer.value));
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
  if (options_.certificates == nullptr) return absl::OkStatus();
  const absl::StatusOr<Certificate> shown =
      CheckCaller(*options_.certificates, *stream.caller());
  if (!shown.ok()) return shown.status();
  if (shown->identity.role == Role::kPeer && shown->identity.peer == peer) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError(
      absl::StrFormat("who says to be peer %d has the certificate of %s",
                      peer.value, Describe(shown->identity)));
}

void Connector::CheckAgain() {
  std::vector<std::pair<PeerId, ConnectionId>> open;
  for (const auto& [id, peer] : peers_) {
    for (const auto& [connection, stream] : peer.up) {
      open.emplace_back(id, connection);
    }
  }
  for (const auto& [id, connection] : open) {
    const absl::Status valid =
        CheckIdentity(*peers_.at(id).up.at(connection), id);
    if (valid.ok()) continue;
    Report(id, valid);
    CloseStream(id, connection, valid);
  }
  check_timer_ = loop_->RunAt(loop_->Now() + options_.check_again,
                              [self = shared_from_this()] {
                                if (self->alive_) self->CheckAgain();
                              });
}

void Connector::OnHello(GrpcStreamPtr stream, TransportHello hello) {
  const auto it = streams_.find(stream);
  if (!alive_ || it == streams_.end()) return;
  loop_->Cancel(it->second.hello_timer);
  const absl::Status verdict = Judge(*stream, it->second, hello);
  if (!verdict.ok()) {
    Report(stream->dialled() ? it->second.peer : hello.self, verdict);
    stream->End(verdict);
    return;
  }
  if (!stream->dialled()) {
    io_.Believe(*stream);
    stream->SendHello({.self = options_.self,
                       .target = hello.self,
                       .attempt = hello.attempt,
                       .run_id = options_.run_id});
  }
  it->second.peer = hello.self;
  it->second.id = ++last_id_;
  Up(hello.self, stream);
}

void Connector::Up(PeerId id, const GrpcStreamPtr& stream) {
  Peer& peer = peers_.at(id);
  if (peer.dialling == stream) peer.dialling = nullptr;
  peer.last_up = loop_->Now();
  peer.up.emplace(last_id_, stream);
  if (peer.up.size() > static_cast<size_t>(options_.max_connections_per_peer)) {
    CloseStream(id, peer.up.begin()->first,
                absl::ResourceExhaustedError("newer connections are open"));
  }
  listener_->OnUp(id, last_id_);
}

void Connector::OnFrame(GrpcStreamPtr stream, ReceivedFrame received) {
  const auto it = streams_.find(stream);
  if (!alive_ || it == streams_.end() || it->second.id == 0) return;
  counters_.bytes_received +=
      received.frame.head.size() + received.frame.body.size();
  listener_->OnFrame(it->second.peer, it->second.id, received.channel,
                     std::move(received.frame));
}

bool Connector::Send(PeerId id, Channel channel, Frame frame) {
  const auto it = peers_.find(id);
  if (it == peers_.end() || it->second.up.empty() ||
      frame.head.size() > kMaxHeadBytes ||
      frame.body.size() > options_.max_body_bytes) {
    return false;
  }
  const auto& [connection, stream] = *it->second.up.rbegin();
  const size_t bytes = frame.head.size() + frame.body.size();
  if (!stream->Send(channel, std::move(frame))) {
    CloseStream(
        id, ConnectionId{connection},
        absl::ResourceExhaustedError(absl::StrFormat(
            "peer %d reads too slowly: more than %d bytes wait for it, or %d "
            "for all",
            id.value, options_.max_queued_bytes,
            options_.max_bytes_in_flight)));
    return false;
  }
  counters_.bytes_sent += bytes;
  return true;
}

bool Connector::Idle(PeerId id) const {
  const auto it = peers_.find(id);
  return it == peers_.end() || it->second.up.empty() ||
         it->second.up.rbegin()->second->Drained();
}

void Connector::Close(PeerId id, ConnectionId connection,
                      const absl::Status& why) {
  const auto it = peers_.find(id);
  if (it == peers_.end() || !it->second.up.contains(connection)) return;
  CloseStream(id, connection, why);
}

void Connector::CloseStream(PeerId id, ConnectionId connection,
                            const absl::Status& why) {
  Peer& peer = peers_.at(id);
  const auto it = peer.up.find(connection);
  const GrpcStreamPtr stream = it->second;
  peer.up.erase(it);
  streams_.erase(stream);
  stream->End(why);
  Post([id, connection, why](Connector& self) {
    self.listener_->OnDown(id, connection, why);
  });
  if (peer.up.empty()) DialLater(id);
}

void Connector::OnEnd(GrpcStreamPtr stream, absl::Status why) {
  if (!alive_) return;
  const auto node = streams_.extract(stream);
  if (node.empty()) return;
  const Stream& state = node.mapped();
  loop_->Cancel(state.hello_timer);
  const auto it = peers_.find(state.peer);
  if (it == peers_.end()) {
    if (state.peer == PeerId{}) Report(PeerId{}, why);
    return;
  }
  Peer& peer = it->second;
  if (peer.dialling == stream) peer.dialling = nullptr;
  const bool was_up = peer.up.erase(state.id) != 0;
  if (was_up && loop_->Now() - peer.last_up > kProvenAfter) peer.failures = 0;
  if (peer.up.empty()) DialLater(state.peer);
  if (was_up) {
    listener_->OnDown(state.peer, state.id, why);
  } else {
    Report(state.peer, why);
  }
}

void Connector::Report(PeerId peer, const absl::Status& why) {
  if (options_.on_problem) options_.on_problem(peer, why);
}

}  // namespace gossamer
