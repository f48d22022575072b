// The gate before a server of gRPC whose callers show certificates.
//
// It accepts the connections, ends TLS on them, and hands gRPC a socket for
// each whose other end has shown a certificate of the run's authority: of
// others gRPC gets no byte, and hears nothing.  A thread of the gate carries
// the bytes between the two sockets, since gRPC takes over no connection of TLS
// that another has begun.  Internal to transport/grpc; also before the service.
// This header knows nothing of HTTP/2 or peers.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_GATE_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_GATE_H_

#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/transport/grpc/socket_tuning.h"

namespace gossamer {

// The certificates (PEM), issued by the run's authority, of the other ends of
// the connections that gRPC was handed.  Safe to use from any thread.
class ShownCertificates {
 public:
  // `connection` is its number in the name behind the gate (socket_names.h).
  void Add(uint64_t connection, std::string pem) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(uint64_t connection) ABSL_LOCKS_EXCLUDED(mu_);
  // That of a connection that gRPC calls `peer`.  Returns kUnavailable if it
  // has ended.
  absl::StatusOr<std::string> Of(absl::string_view peer) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable Mutex mu_;
  std::map<uint64_t, std::string> certificates_ ABSL_GUARDED_BY(mu_);
};

// Used by one thread.
class TlsGate {
 public:
  // The descriptors that a connection takes here: one outside, two inside.
  static constexpr size_t kDescriptors = 3;

  // The server of `builder` gets its connections from this gate alone, which
  // shows the certificate of `folder` and keeps those of the others in `shown`.
  // `patience` is the time for a handshake, for the last bytes of a connection
  // that gRPC has closed, and for bytes that nobody acknowledges.
  TlsGate(std::shared_ptr<CertificateFolder> folder,
          std::shared_ptr<ShownCertificates> shown, ServerSockets sockets,
          absl::Duration patience, grpc::ServerBuilder* builder);
  // Carries what gRPC has written, for at most a second if it has not closed
  // all connections or an end does not read.
  ~TlsGate();
  TlsGate(const TlsGate&) = delete;
  TlsGate& operator=(const TlsGate&) = delete;

  // Listens on "host:port", on all addresses of the host that this machine has.
  // Returns the port, a free one for 0; 0 if it is in use or the host is not
  // this machine.
  int Listen(const std::string& address);
  // Accepts connections from now on.  The server runs.
  void Start();
  // Hands over no connection any more.  Called before the server is shut down.
  void StopAccepting() ABSL_LOCKS_EXCLUDED(mu_);

  // Connections that gRPC was handed.
  uint64_t handed() const { return handed_; }

 private:
  class Context;
  class Relay;

  int ListenOn(const std::string& host, int port);
  void Wake();
  bool accepting() const {
    MutexLock lock(&mu_);
    return accepting_;
  }

  // The thread's.  An id is that of a connection or of a listener.
  void Run();
  void OnWake();
  // `how` as epoll_ctl() has it.
  bool Watch(int how, int fd, uint32_t events, uint64_t id);
  void Accept(int listener);
  void Advance(uint64_t id);
  bool HandOver(uint64_t id, Relay& relay) ABSL_LOCKS_EXCLUDED(mu_);
  void SetDeadline(uint64_t id, absl::Time deadline);
  void EndDeadline(uint64_t id);
  // Returns the time until the next deadline.
  absl::Duration EndOverdue();
  void Drop(uint64_t id);

  const ServerSockets sockets_;
  const absl::Duration patience_;
  const std::unique_ptr<Context> context_;
  const std::shared_ptr<ShownCertificates> shown_;
  const std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  const FileDescriptor poll_, wake_;
  std::vector<FileDescriptor> listeners_;  // the thread's, once it runs
  std::atomic<uint64_t> handed_ = 0;
  std::atomic<bool> ending_ = false;
  mutable Mutex mu_;
  bool accepting_ ABSL_GUARDED_BY(mu_) = true;

  // The thread's own.
  std::map<uint64_t, std::unique_ptr<Relay>> relays_;
  std::set<uint64_t> unfinished_;  // had more to do than one turn
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;
  std::vector<char> scratch_;

  std::thread thread_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_TLS_GATE_H_
