// The gRPC side of a transport: its server, its channels, its completion queue.
//
// Internal to transport/grpc.  All I/O is done on the loop, which polls the
// queue while it has nothing else to do.  A thread that hands frames over would
// cost two wake-ups per exchange, more than moving 64 KiB does.  This header
// knows nothing of peers.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_IO_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_IO_H_

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/real_loop.h"
#include "runtime/transport/grpc/connection_limiter.h"
#include "runtime/transport/grpc/flood_guard.h"
#include "runtime/transport/grpc/grpc_stream.h"
#include "runtime/transport/grpc/grpc_transport.h"
#include "runtime/transport/grpc/socket_tuning.h"
#include "runtime/transport/grpc/tls.h"
#include "runtime/transport/grpc/tls_gate.h"

namespace gossamer {

// The largest chunk that either end accepts, whatever size it sends itself.  A
// message holds one chunk.
inline constexpr size_t kMaxChunkBytes = size_t{4} << 20;

// Passes the events of its streams on to `owner`, and knows when all streams
// are over.  Loop only, except Wake().
class GrpcIo final : public GrpcStreamOwner, public LoopPoller {
 public:
  GrpcIo(GrpcStreamOwner* owner, const GrpcOptions& options);
  ~GrpcIo() override;

  // Listens, if options.listen_address is not empty.
  absl::Status Start();
  // Ends all streams; no event comes after it.  The loop must no longer poll
  // this.
  void Shutdown();
  int port() const { return port_; }
  size_t authenticated_capacity() const {
    return limiter_->authenticated_capacity();
  }
  // The limits of every stream.
  GrpcStreamLimits limits() const;
  const ByteBudget& all_bytes() const { return *all_bytes_; }

  // `outgrown` may be null; set if connections adapt (GrpcOptions::lanes) and
  // this one should be several.
  GrpcStreamPtr Dial(const std::string& address, const TransportHello& hello,
                     OutgrownFlag outgrown = nullptr);
  // The certificate (PEM) that the other end of this stream has shown.  Returns
  // kUnavailable if the stream has ended.
  absl::StatusOr<std::string> CertificateOf(const GrpcStream& stream) const;
  // Tells the limiter that the other end of this accepted stream is `peer`.
  void MarkAuthenticated(GrpcStream& stream, PeerId peer);
  uint64_t unauthenticated_refused() const { return limiter_->refused(); }
  uint64_t chose_bbr() const {
    return congestion_ == nullptr ? 0 : congestion_->chose_bbr();
  }
  // Null if nobody asks what congestion control the sockets should have.
  SocketCongestion* congestion() { return congestion_.get(); }
  std::vector<std::string> TakeFloods() { return guard_->TakeReports(); }

  EventLoop::Callback Wait(absl::Duration limit) override;
  void Wake() override;

  void OnAccepted(GrpcStreamPtr stream) override;
  void OnHello(GrpcStreamPtr stream, TransportHello hello) override;
  void OnFrame(GrpcStreamPtr stream, ReceivedFrame frame) override;
  void OnChunk(const GrpcStreamPtr& stream) override;
  bool OnFull(const GrpcStreamPtr& stream, size_t bytes) override;
  void OnAcceptEnded() override;
  void OnEnd(GrpcStreamPtr stream, absl::Status why) override;

 private:
  absl::Status Listen();

  GrpcStreamOwner* const owner_;
  const GrpcOptions options_;
  const SocketTuning tuning_;
  const std::shared_ptr<SocketCongestion> congestion_;  // may be null
  const TlsCredentials tls_;
  const std::shared_ptr<grpc::ChannelCredentials> dial_credentials_;
  const std::shared_ptr<ConnectionLimiter> limiter_;
  const std::shared_ptr<FloodGuard> guard_;
  const std::shared_ptr<ShownCertificates> shown_;
  const std::shared_ptr<ByteBudget> all_bytes_;
  int port_ = 0;
  grpc::AsyncGenericService service_;
  // Destroyed after the server, whose last bytes it carries.  Null if there is
  // none.
  std::unique_ptr<TlsGate> gate_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::ServerCompletionQueue> server_queue_;
  std::unique_ptr<grpc::CompletionQueue> queue_;  // used if there is no server
  grpc::CompletionQueue* cq_ = nullptr;           // one of the two
  grpc::Alarm alarm_;
  // The alarm is set, and its event has not come yet.
  std::atomic<bool> woken_ = false;

  std::set<GrpcStreamPtr> streams_;
  // The one stream of each accepted connection, by its address.
  std::map<std::string, const GrpcStream*> accepted_;
  bool accepting_ = false;
  bool shutting_down_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_IO_H_
