// How many connections there may be of which nobody has proved to be a peer.
//
// Sees every TCP connection that a server accepts before gRPC reads a byte of
// it, and is told which ones have said a hello that was believed; who comes
// when all places are taken is hung up on.  Internal to transport/grpc; knows
// nothing of streams or certificates.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_STRANGER_GATE_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_STRANGER_GATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"

namespace gossamer {

// Any thread.
class StrangerGate {
 public:
  // At most `most` strangers at a time, and half of them of one host, so that
  // one machine alone cannot keep all others out.
  explicit StrangerGate(size_t most) : most_(most) {}

  // A connected socket that was accepted.  False: it is one too many, and has
  // been shut down.
  bool Admit(int socket) ABSL_LOCKS_EXCLUDED(mu_);
  // The connection from `address`, as gRPC says it ("ipv4:10.0.0.2:4711"), is a
  // peer's.
  void Believe(absl::string_view address) ABSL_LOCKS_EXCLUDED(mu_);

  size_t strangers() ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t refused() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Stranger {
    std::string host;
    std::string address;
  };
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t most_;
  Mutex mu_;
  std::map<int, Stranger> strangers_ ABSL_GUARDED_BY(mu_);  // by socket
  uint64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_STRANGER_GATE_H_
