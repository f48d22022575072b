// The gRPC side of a transport: its server, its channels, its I/O thread.
//
// Internal to transport/grpc.  Knows nothing of peers or of the loop.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_IO_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_IO_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "runtime/transport/grpc/grpc_stream.h"
#include "runtime/transport/grpc/grpc_transport.h"

namespace gossamer {

// A message holds a chunk; both ends accept chunks up to this size whatever
// they send themselves.
inline constexpr size_t kMaxChunkBytes = size_t{4} << 20;

// Whether an address of gRPC's is of this machine only.
bool IsLoopback(absl::string_view address);

// Passes the events of its streams on to `owner`, and knows when all are over.
class GrpcIo final : public GrpcStreamOwner {
 public:
  // `owner` outlives the I/O thread.
  GrpcIo(GrpcStreamOwner* owner, const GrpcOptions& options);
  ~GrpcIo() override;

  // Listens if asked to, and starts the I/O thread.
  absl::Status Start();
  // Ends all streams and the thread.  No event comes after it.
  void Shutdown();
  int port() const { return port_; }

  GrpcStreamPtr Dial(const std::string& address, const TransportHello& hello)
      ABSL_LOCKS_EXCLUDED(mu_);

  void OnAccepted(GrpcStreamPtr stream) override;
  void OnHello(GrpcStreamPtr stream, TransportHello hello) override;
  void OnFrame(GrpcStreamPtr stream, ReceivedFrame frame) override;
  void OnAcceptEnded() override;
  void OnEnd(GrpcStreamPtr stream, absl::Status why) override;

 private:
  absl::Status Listen();
  void Poll();
  GrpcStreamLimits Limits() const;

  GrpcStreamOwner* const owner_;
  const GrpcOptions options_;
  int port_ = 0;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::ServerCompletionQueue> server_queue_;
  std::unique_ptr<grpc::CompletionQueue> queue_;  // if there is no server
  grpc::CompletionQueue* cq_ = nullptr;           // one of the two
  std::thread thread_;

  Mutex mu_;
  CondVar idle_;
  std::set<GrpcStreamPtr> streams_ ABSL_GUARDED_BY(mu_);
  bool accepting_ ABSL_GUARDED_BY(mu_) = false;
  bool shutting_down_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_GRPC_IO_H_
