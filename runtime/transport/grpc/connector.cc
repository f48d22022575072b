#include "runtime/transport/grpc/connector.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "runtime/base/address.h"

namespace gossamer {
namespace {

// The time for which a connection has to stay open to prove its peer well.  The
// failures before it then no longer delay the next attempt; a connection that
// always ends sooner is dialled ever more seldom.
constexpr absl::Duration kProvenAfter = absl::Seconds(5);
// The doubling stops before ldexp() overflows a duration; max_backoff is
// reached much sooner.
constexpr int kMaxDoublings = 20;

}  // namespace

Connector::Connector(RealLoop* loop, GrpcOptions options)
    : loop_(loop), options_(std::move(options)), io_(this, options_) {}

absl::Status Connector::Start() {
  absl::Status started = io_.Start();
  if (!started.ok()) return started;
  // Polling begins once there is a queue to poll.
  loop_->SetPoller(&io_);
  // The loop has one poller; Shutdown() gives the place back only if it was
  // taken.
  polled_ = true;
  CheckAgain();
  PollSockets();
  return started;
}

void Connector::PollSockets() {
  if (io_.congestion() != nullptr) {
    io_.congestion()->Poll();
    DialLanesWhereOutgrown();
  }
  for (const std::string& flood : io_.TakeFloods()) {
    // Nobody knows which peer it is: a flood needs no stream.
    Report(PeerId{}, absl::ResourceExhaustedError(flood));
  }
  socket_timer_ = loop_->RunAt(loop_->Now() + SocketCongestion::kPollInterval,
                               [self = shared_from_this()] {
                                 if (self->alive_) self->PollSockets();
                               });
}

void Connector::Shutdown() {
  // The owner's callbacks may still be on the loop.  They see this and do
  // nothing.
  alive_ = false;
  loop_->Cancel(check_timer_);
  loop_->Cancel(socket_timer_);
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
  // A peer that is dialled, or connected, stays so.  A new address is a new
  // chance: its failures count anew.
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
  // All connections end here, not only the newest: the peer is no neighbour any
  // more.
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
  // By default the larger id waits to be dialled: two ends that dial each
  // other at once would make two connections of each edge.
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
  // The attempt counts from the start of this process.  It ties further lanes
  // to their connection, and draws the next delay.
  ++peer.attempt;
  OutgrownFlag outgrown;
  if (options_.lanes == 0) outgrown = std::make_shared<bool>();
  peer.dialling = io_.Dial(peer.address,
                           {.versions = options_.versions,
                            .self = options_.self,
                            .target = id,
                            .attempt = peer.attempt,
                            .run_id = options_.run_id},
                           outgrown);
  Track(peer.dialling, id).outgrown = std::move(outgrown);
}

void Connector::DialLanesWhereOutgrown() {
  for (auto& [stream, state] : streams_) {
    // A connection is outgrown once, and gets its lanes once it is up and has
    // something for them.
    if (state.id == 0 || state.outgrown == nullptr || !*state.outgrown ||
        !peers_.at(state.peer).up.at(state.id).had_large_body()) {
      continue;
    }
    state.outgrown = nullptr;
    DialLanes(state.peer, state.id, kAdaptiveLanes);
  }
}

void Connector::DialLanes(PeerId id, ConnectionId connection, int lanes) {
  Peer& peer = peers_.at(id);
  Connection& first = peer.up.at(connection);
  for (size_t lane = 1; lane < static_cast<size_t>(lanes); ++lane) {
    const GrpcStreamPtr stream =
        io_.Dial(peer.address, {.versions = options_.versions,
                                .self = options_.self,
                                .target = id,
                                // The accepting end finds the connection by
                                // this number (OpenLane).
                                .attempt = first.attempt(),
                                .lane = static_cast<uint32_t>(lane),
                                .run_id = options_.run_id});
    Stream& state = Track(stream, id);
    state.id = connection;
    state.lane = lane;
    first.Add(lane, stream);
  }
}

void Connector::DialLater(PeerId id) {
  const auto it = peers_.find(id);
  if (it == peers_.end() || it->second.redial != EventLoop::TimerId{0}) return;
  Peer& peer = it->second;
  const int doublings = std::min(peer.failures++, kMaxDoublings);
  // The jitter is drawn by a key of both ids, so that peers that lost the same
  // neighbour do not dial it in step, and a seeded run repeats.
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

// Follows a stream from now on.  A stream that sends no hello in time is ended.
Connector::Stream& Connector::Track(const GrpcStreamPtr& stream, PeerId peer) {
  Stream& state = streams_[stream];
  state.peer = peer;
  state.hello_timer =
      loop_->RunAt(loop_->Now() + options_.hello_timeout,
                   [stream, timeout = options_.hello_timeout] {
                     stream->End(absl::DeadlineExceededError(absl::StrFormat(
                         "no hello within %s", absl::FormatDuration(timeout))));
                   });
  return state;
}

void Connector::OnAccepted(GrpcStreamPtr stream) {
  if (alive_) Track(stream, PeerId{});
}

void Connector::OnHello(GrpcStreamPtr stream, TransportHello hello) {
  const auto it = streams_.find(stream);
  // The stream may have ended while its hello was on its way to the loop.
  if (!alive_ || it == streams_.end()) return;
  Stream& state = it->second;
  loop_->Cancel(state.hello_timer);
  absl::Status verdict = Judge(*stream, state, hello);
  if (verdict.ok() && hello.lane != 0) {
    verdict = OpenLane(stream, &state, hello);
  }
  // The verdict is reported here with the peer that the hello names; OnEnd()
  // would only know the stream.
  if (!verdict.ok()) {
    state.reported = true;
    Report(stream->dialled() ? state.peer : hello.self, verdict);
    stream->End(verdict);
    return;
  }
  if (!stream->dialled()) {
    // The other end counts as a neighbour from here on, so its place at the
    // limiter is free for the next unauthenticated one.
    io_.MarkAuthenticated(*stream, hello.self);
    stream->SendHello({.versions = options_.versions,
                       .self = options_.self,
                       .target = hello.self,
                       .attempt = hello.attempt,
                       .lane = hello.lane,
                       .run_id = options_.run_id});
  }
  if (hello.lane != 0) return;
  state.peer = hello.self;
  // Connection ids rise, so the newest connection is the last of the map `up`.
  state.id = ++last_id_;
  Up(stream, hello);
}

absl::Status Connector::OpenLane(const GrpcStreamPtr& stream, Stream* state,
                                 const TransportHello& hello) {
  auto& up = peers_.at(hello.self).up;
  auto it = up.find(state->id);
  if (!stream->dialled()) {
    // The accepting end does not know the dialling end's connection id: the
    // attempt of the hello names it.
    it = std::find_if(up.begin(), up.end(), [&](const auto& connection) {
      return connection.second.attempt() == hello.attempt &&
             !connection.second.first().dialled();
    });
  }
  // The end that dials says how many lanes there are.
  if (it == up.end() || hello.lane >= kMaxLanes ||
      it->second.IsOpen(hello.lane)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "lane %d of connection %d of peer %d: there is no such connection, or "
        "it has that lane, or no connection has so many",
        hello.lane, hello.attempt, hello.self.value));
  }
  state->peer = hello.self;
  state->id = it->first;
  state->lane = hello.lane;
  it->second.Add(hello.lane, stream);
  it->second.Open(hello.lane);
  const bool adapts = stream->dialled() && options_.lanes == 0;
  if (adapts && hello.lane == 1) ++counters_.outgrew_cubic;
  return absl::OkStatus();
}

void Connector::Up(const GrpcStreamPtr& stream, const TransportHello& hello) {
  const PeerId id = hello.self;
  Peer& peer = peers_.at(id);
  const ConnectionId connection = last_id_;
  // The attempt has become a connection; another may be dialled once it ends.
  if (peer.dialling == stream) peer.dialling = nullptr;
  peer.last_up = loop_->Now();
  peer.up.try_emplace(connection, stream, hello.attempt,
                      options_.versions.Agree(hello.versions).value_or(0),
                      io_.limits());
  // The eldest connection gives way: the other end opened the newer one, so it
  // has probably given up the eldest, whose end is not noticed here yet.
  if (peer.up.size() > static_cast<size_t>(options_.max_connections_per_peer)) {
    CloseStream(id, peer.up.begin()->first,
                absl::ResourceExhaustedError("newer connections are open"));
  }
  // The dialling end dials the lanes, too.  The connection is in use meanwhile.
  if (stream->dialled()) DialLanes(id, connection, options_.lanes);
  listener_->OnUp(id, connection);
}

void Connector::OnFrame(GrpcStreamPtr stream, ReceivedFrame received) {
  const auto it = streams_.find(stream);
  if (!alive_ || it == streams_.end() || it->second.id == 0) return;
  // The state is copied: the listener may end the stream while this runs.
  const Stream state = it->second;
  auto& up = peers_.at(state.peer).up;
  std::vector<ReceivedFrame> complete;
  const absl::Status good =
      up.at(state.id).Receive(state.lane, std::move(received), &complete);
  for (ReceivedFrame& whole : complete) {
    counters_.bytes_received +=
        whole.frame.head.size() + whole.frame.body.size();
    listener_->OnFrame(state.peer, state.id, whole.channel,
                       std::move(whole.frame));
    // The listener may have ended the connection because of this frame.
    if (!streams_.contains(stream)) return;
  }
  if (!good.ok()) return Close(state.peer, state.id, good);
  // A part of a frame whose other parts come by other lanes.
  if (complete.empty()) listener_->OnProgress(state.peer);
}

void Connector::OnChunk(const GrpcStreamPtr& stream) {
  const auto it = streams_.find(stream);
  if (!alive_ || it == streams_.end() || it->second.id == 0) return;
  listener_->OnProgress(it->second.peer);
}

bool Connector::Send(PeerId id, Channel channel, Frame frame) {
  const auto it = peers_.find(id);
  if (it == peers_.end() || it->second.up.empty() ||
      frame.head.size() > kMaxHeadBytes ||
      frame.body.size() > options_.max_body_bytes) {
    return false;
  }
  // Frames go out on the newest connection: an older one may be dead without
  // notice.
  auto& [connection, lanes] = *it->second.up.rbegin();
  if (!lanes.Knows(channel)) return false;
  // The two bounds differ in who pays.  A queue of one peer that is too long
  // ends its own connection; a full budget ends one of the peer that holds the
  // most.
  const size_t cost = lanes.CostOf(frame);
  const bool fits = lanes.queued() + cost <= options_.max_queued_bytes;
  while (fits && cost > io_.all_bytes().left() &&
         MakeRoom(id, connection, cost)) {
  }
  if (!fits || !lanes.Send(channel, frame)) {
    CloseStream(
        id, ConnectionId{connection},
        absl::ResourceExhaustedError(absl::StrFormat(
            "peer %d reads too slowly: more than %d bytes wait for it, or %d "
            "for all",
            id.value, options_.max_queued_bytes,
            options_.max_bytes_in_flight)));
    return false;
  }
  counters_.bytes_sent += frame.head.size() + frame.body.size();
  return true;
}

bool Connector::IsWritable(PeerId id) const {
  const auto it = peers_.find(id);
  // A peer without a connection counts as writable: a frame for it is dropped
  // at once and fills no queue.
  return it == peers_.end() || it->second.up.empty() ||
         it->second.up.rbegin()->second.queued() == 0;
}

TransportCounters Connector::counters() const {
  TransportCounters counters = counters_;
  counters.unauthenticated_refused = io_.unauthenticated_refused();
  counters.chose_bbr = io_.chose_bbr();
  return counters;
}

void Connector::Close(PeerId id, ConnectionId connection,
                      const absl::Status& why) {
  const auto it = peers_.find(id);
  if (it == peers_.end() || !it->second.up.contains(connection)) return;
  CloseStream(id, connection, why);
}

void Connector::Drop(Peer* peer, ConnectionId id, const absl::Status& why) {
  const auto node = peer->up.extract(id);
  for (const GrpcStreamPtr& stream : node.mapped().streams()) {
    const auto tracked = streams_.extract(stream);
    if (!tracked.empty()) loop_->Cancel(tracked.mapped().hello_timer);
    stream->End(why);
  }
}

void Connector::CloseStream(PeerId id, ConnectionId connection,
                            const absl::Status& why) {
  Peer& peer = peers_.at(id);
  Drop(&peer, connection, why);
  // The listener hears of it later, on the loop: it may be in the middle of the
  // call that ends the connection.
  Post([id, connection, why](Connector& self) {
    self.listener_->OnDown(id, connection, why);
  });
  // With another connection open there is no need to dial.
  if (peer.up.empty()) DialLater(id);
}

void Connector::OnEnd(GrpcStreamPtr stream, absl::Status why) {
  if (!alive_) return;
  const auto node = streams_.extract(stream);
  if (node.empty()) return;
  const Stream& state = node.mapped();
  loop_->Cancel(state.hello_timer);
  const auto it = peers_.find(state.peer);
  // The peer was disconnected meanwhile, or the stream never said whose it is.
  if (it == peers_.end()) {
    if (state.peer == PeerId{} && !state.reported) Report(PeerId{}, why);
    return;
  }
  Peer& peer = it->second;
  if (peer.dialling == stream) peer.dialling = nullptr;
  const auto up = peer.up.find(state.id);
  if (up != peer.up.end() && !up->second.IsOpen(state.lane)) {
    // A connection works without a lane that could not be opened.
    up->second.Remove(state.lane);
    if (!state.reported) Report(state.peer, why);
    return;
  }
  const bool was_up = up != peer.up.end();
  if (was_up) Drop(&peer, state.id, why);
  // The failures are judged before the next attempt is planned by them.
  if (was_up && loop_->Now() - peer.last_up > kProvenAfter) peer.failures = 0;
  if (peer.up.empty()) DialLater(state.peer);
  if (was_up) {
    listener_->OnDown(state.peer, state.id, why);
  } else if (!state.reported) {
    Report(state.peer, why);
  }
}

void Connector::Report(PeerId peer, const absl::Status& why) {
  if (options_.on_problem) options_.on_problem(peer, why);
}

}  // namespace gossamer
