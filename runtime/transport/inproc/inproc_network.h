// A transport for peers that are threads of one process: frames pass by
// reference from loop to loop.
//
// It loses frames only when a connection ends.  Knows nothing of what the
// frames say.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_INPROC_INPROC_NETWORK_H_
#define GOSSAMER_RUNTIME_TRANSPORT_INPROC_INPROC_NETWORK_H_

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/mutex.h"
#include "runtime/base/event_loop.h"
#include "runtime/transport/transport.h"

namespace gossamer {

struct InprocOptions {
  size_t max_body_bytes = size_t{1} << 30;
  // The time from a lost connection to the next attempt.
  absl::Duration redial_delay = absl::Milliseconds(10);
};

// The hub of all endpoints.  Safe to use from any thread.
class InprocNetwork {
 public:
  explicit InprocNetwork(InprocOptions options = {}) : options_(options) {}
  InprocNetwork(const InprocNetwork&) = delete;
  InprocNetwork& operator=(const InprocNetwork&) = delete;

  // Returns the transport of `peer`; the network and `loop` outlive it.  It is
  // created and destroyed on the loop, or while the loop does not run.  A peer
  // has at most one at a time.  A connection opens when both ends have called
  // Connect(); addresses are ignored.
  std::unique_ptr<Transport> CreateEndpoint(PeerId peer, EventLoop* loop)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class InprocEndpoint;
  using PairKey = std::pair<PeerId, PeerId>;  // the smaller id first

  static PairKey KeyOf(PeerId a, PeerId b) { return std::minmax(a, b); }

  // Opens a connection if both ends want one and there is none.
  void TryConnect(PeerId a, PeerId b) ABSL_LOCKS_EXCLUDED(mu_);
  void SetWanted(PeerId from, PeerId peer) ABSL_LOCKS_EXCLUDED(mu_);
  // Also ends a connection that `from` has not heard of yet.
  void SetUnwanted(PeerId from, PeerId peer, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);
  bool IsOpen(PeerId a, PeerId b, ConnectionId id) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends a connection and posts its end to `peer`.
  void End(PeerId from, PeerId peer, ConnectionId id, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Forward(PeerId from, PeerId peer, ConnectionId id, Channel channel,
               Frame frame) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(PeerId peer) ABSL_LOCKS_EXCLUDED(mu_);
  void EndLocked(PeerId from, PeerId peer, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const InprocOptions options_;
  Mutex mu_;
  std::map<PeerId, class InprocEndpoint*> endpoints_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<PeerId, PeerId>> wanted_ ABSL_GUARDED_BY(mu_);
  std::map<PairKey, ConnectionId> open_ ABSL_GUARDED_BY(mu_);
  ConnectionId last_id_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_INPROC_INPROC_NETWORK_H_
