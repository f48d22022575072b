#include "runtime/transport/grpc/grpc_io.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/transport/grpc/lanes.h"
#include "runtime/transport/grpc/steady_deadline.h"

namespace gossamer {
namespace {

constexpr int kIdentityOnly = 1;  // the bit of GRPC_COMPRESS_NONE

// TCP connections of one peer: those of all lanes, before a loss and after it,
// and as many again that are about to end.
constexpr size_t kMaxPerPeer = 4 * kMaxLanes;

// Windows, as they are asked for, of bytes that gRPC may hold for the loop. Its
// estimate of the link makes them larger: 32 MiB of 16 at 20 ms without a limit
// of rate.  On wider links an honest peer still holds no more than it queues.
constexpr size_t kWindows = 8;

size_t MostUnheard(const GrpcOptions& options) {
  return std::max(kWindows * static_cast<size_t>(options.stream_window_bytes),
                  options.max_queued_bytes);
}

bool HasGate(const GrpcOptions& options) {
  return options.certificates != nullptr && options.tls_gate;
}

// Of the congestion controls that are asked for by name, CUBIC alone gets lanes
// where it is too slow.
bool MayNeedLanes(const GrpcOptions& options) {
  return options.lanes == 0 && options.congestion_control == "cubic";
}

int Milliseconds(absl::Duration d) {
  return static_cast<int>(absl::ToInt64Milliseconds(d));
}

// Sets the arguments that both ends of a connection must agree on.
template <typename SetInt>
void SetCommonArguments(const GrpcOptions& options, SetInt set) {
  // gRPC inflates a compressed message before it checks any limit.
  set("grpc.compression_enabled_algorithms_bitset", kIdentityOnly);
  // The dialling end would inflate a message even before it refuses it.
  set(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
      static_cast<int>(kMaxChunkBytes + kMaxChunkOverhead));
  // A window of less than two messages would have the sender wait for each of
  // them to be read.
  const int window =
      std::max(options.stream_window_bytes,
               static_cast<int>(2 * (options.chunk_bytes + kMaxChunkOverhead)));
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, window);
  // Frames of HTTP/2 that are larger than the usual 16 KiB cost fewer headers
  // and writes.
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  // Large reads make fewer pieces, but these are small enough for the allocator
  // not to map each from the kernel.
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, 64 << 10);
  set(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_time));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout));
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // An edge may be silent for as long as a round takes, and still has to notice
  // a machine that is gone.
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Newer releases of gRPC go by this instead of keepalive_timeout, of
  // which 1.51 knows nothing; without it they notice a lost machine after a
  // minute.  It holds for the pings that estimate the link, too, whose answers
  // wait behind all bytes under way on a slow link, so that it is longer.
  set("grpc.http2.ping_timeout_ms",
      Milliseconds(options.keepalive_time + options.keepalive_timeout));
}

}  // namespace

GrpcIo::GrpcIo(GrpcStreamOwner* owner, const GrpcOptions& options)
    : owner_(owner),
      options_(options),
      tuning_(ChooseTuning(ReadTcpSettings(), options.congestion_control,
                           options.stream_window_bytes)),
      congestion_(tuning_.adapts || MayNeedLanes(options)
                      ? std::make_shared<SocketCongestion>(tuning_.pauses,
                                                           tuning_.adapts)
                      : nullptr),
      tls_(options.certificates),
      dial_credentials_(tls_.Channel(Role::kPeer)),
      limiter_(std::make_shared<ConnectionLimiter>(
          static_cast<size_t>(options.max_unauthenticated), kMaxPerPeer,
          ConnectionLimiter::kBanTime,
          HasGate(options) ? TlsGate::kDescriptors : 1)),
      guard_(std::make_shared<FloodGuard>(MostUnheard(options), limiter_)),
      shown_(std::make_shared<ShownCertificates>()),
      all_bytes_(std::make_shared<ByteBudget>(options.max_bytes_in_flight)) {}

GrpcIo::~GrpcIo() { Shutdown(); }

absl::Status GrpcIo::Start() {
  if (options_.listen_address.empty()) {
    // A peer that only dials has no server, whose queue it could use.
    queue_ = std::make_unique<grpc::CompletionQueue>();
    cq_ = queue_.get();
  } else if (absl::Status listening = Listen(); !listening.ok()) {
    return listening;
  }
  return absl::OkStatus();
}

absl::Status GrpcIo::Listen() {
  grpc::ServerBuilder builder;
  int port = 0;
  const ServerSockets sockets = {tuning_, limiter_, guard_, congestion_};
  if (!HasGate(options_)) {
    builder.AddListeningPort(options_.listen_address, tls_.Server(), &port);
    AddTuning(sockets, &builder);
  } else {
    gate_ = std::make_unique<TlsGate>(options_.certificates, shown_, sockets,
                                      options_.hello_timeout, &builder);
    port = gate_->Listen(options_.listen_address);
  }
  builder.RegisterAsyncGenericService(&service_);
  SetCommonArguments(options_, [&](const char* name, int value) {
    builder.AddChannelArgument(name, value);
  });
  // Two processes on one port would each get some of the other's connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // One stream is all that a connection of this transport has, and the limits
  // count connections.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Milliseconds(options_.keepalive_time / 2));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Milliseconds(options_.hello_timeout));
  // A client that connects and then opens no stream is not kept.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             Milliseconds(options_.hello_timeout));
  guard_->Start();
  server_queue_ = builder.AddCompletionQueue();
  if (gate_ == nullptr || port != 0) server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrFormat(
        "cannot listen on %s: the port is in use, or the address is not one "
        "of this machine; choose another one, or port 0 for any free port",
        options_.listen_address));
  }
  if (gate_ != nullptr) gate_->Start();
  port_ = port;
  cq_ = server_queue_.get();
  // One call is always awaited, and Shutdown() has to wait for its end.
  accepting_ = true;
  GrpcStream::Accept(this, limits(), &service_, server_queue_.get());
  return absl::OkStatus();
}

GrpcStreamLimits GrpcIo::limits() const {
  return {options_.max_body_bytes, options_.chunk_bytes, all_bytes_};
}

GrpcStreamPtr GrpcIo::Dial(const std::string& address,
                           const TransportHello& hello, OutgrownFlag outgrown) {
  grpc::ChannelArguments arguments;
  SetCommonArguments(options_, [&](const char* name, int value) {
    arguments.SetInt(name, value);
  });
  // Every attempt is a connection of its own.  Shared subchannels, retries and
  // proxies would make connections that the connector does not know of.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  AddTuning(tuning_, congestion_, std::move(outgrown), &arguments);
  GrpcStreamPtr stream = GrpcStream::Dial(
      this, limits(),
      grpc::CreateCustomChannel(address, dial_credentials_, arguments), cq_,
      hello);
  streams_.insert(stream);
  return stream;
}

absl::StatusOr<std::string> GrpcIo::CertificateOf(
    const GrpcStream& stream) const {
  if (!stream.dialled() && gate_ != nullptr) {
    return shown_->Of(stream.address());
  }
  const std::shared_ptr<const grpc::AuthContext> caller = stream.caller();
  if (caller == nullptr) return absl::UnavailableError("the stream has ended");
  return gossamer::CertificateOf(*caller);
}

// Without certificates a peer only claims its id.  The limiter then does not
// count connections by id: any program could claim it, and so end the peer's
// own.
void GrpcIo::MarkAuthenticated(GrpcStream& stream, PeerId peer) {
  limiter_->MarkAuthenticated(stream.address(), options_.certificates == nullptr
                                                    ? std::string()
                                                    : absl::StrCat(peer.value));
  stream.CreditTo(guard_->AccountOf(stream.address()));
}

EventLoop::Callback GrpcIo::Wait(absl::Duration limit) {
  void* tag = nullptr;
  bool ok = false;
  const auto end = limit > absl::ZeroDuration()
                       ? SteadyDeadline(limit)
                       : gpr_inf_past(GPR_CLOCK_MONOTONIC);
  if (cq_->AsyncNext(&tag, &ok, end) != grpc::CompletionQueue::GOT_EVENT) {
    return nullptr;
  }
  // The alarm wakes the loop for its own work: it has no event to run.
  if (tag == &alarm_) {
    woken_ = false;
    return nullptr;
  }
  const auto* t = static_cast<const GrpcStream::Tag*>(tag);
  return [t, ok] { (t->stream->*t->done)(ok); };
}

void GrpcIo::Wake() {
  // Other threads call this.  One alarm is enough for any number of wake-ups:
  // the loop looks at all of its work.
  if (woken_.exchange(true)) return;
  alarm_.Set(cq_, std::chrono::system_clock::time_point(), &alarm_);
}

void GrpcIo::OnAccepted(GrpcStreamPtr stream) {
  const bool full =
      shutting_down_ ||
      streams_.size() >= static_cast<size_t>(options_.max_connections);
  // gRPC 1.51 does not enforce its limit of streams on a client that has not
  // acknowledged the settings.
  const bool second =
      !accepted_.try_emplace(stream->address(), stream.get()).second;
  // A refused stream is tracked as well: its last event is waited for.
  streams_.insert(stream);
  if (full) {
    stream->End(absl::ResourceExhaustedError(
        "this peer has as many connections as it may have"));
  } else if (second) {
    stream->End(absl::ResourceExhaustedError(
        "there is a stream already on this connection of TCP"));
  }
  owner_->OnAccepted(std::move(stream));
}

void GrpcIo::OnHello(GrpcStreamPtr stream, TransportHello hello) {
  owner_->OnHello(std::move(stream), std::move(hello));
}

void GrpcIo::OnFrame(GrpcStreamPtr stream, ReceivedFrame frame) {
  owner_->OnFrame(std::move(stream), std::move(frame));
}

void GrpcIo::OnChunk(const GrpcStreamPtr& stream) { owner_->OnChunk(stream); }

bool GrpcIo::OnFull(const GrpcStreamPtr& stream, size_t bytes) {
  return owner_->OnFull(stream, bytes);
}

void GrpcIo::OnAcceptEnded() { accepting_ = false; }

void GrpcIo::OnEnd(GrpcStreamPtr stream, absl::Status why) {
  owner_->OnEnd(stream, std::move(why));
  streams_.erase(stream);
  const auto it = accepted_.find(stream->address());
  if (it != accepted_.end() && it->second == stream.get()) accepted_.erase(it);
}

// gRPC allows no operation on a queue that has been shut down, so all streams
// end first.
void GrpcIo::Shutdown() {
  if (cq_ == nullptr) return;
  shutting_down_ = true;
  const absl::Status why = absl::CancelledError("the peer shuts down");
  // A stream may end inline and erase itself, so the loop is over a copy.
  for (const GrpcStreamPtr& stream : std::set(streams_)) stream->End(why);
  if (gate_ != nullptr) gate_->StopAccepting();
  if (server_ != nullptr) server_->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC));
  while (!streams_.empty() || accepting_) {
    // A callback of a stream may start another operation, so events are taken
    // until all streams have had their last one.
    if (EventLoop::Callback event = Wait(absl::Seconds(1))) {
      std::move(event)();
    }
  }
  cq_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  // The queue has to be empty before it is destroyed.
  while (cq_->Next(&tag, &ok)) {
  }
  cq_ = nullptr;
  server_.reset();
  gate_.reset();
}

}  // namespace gossamer
