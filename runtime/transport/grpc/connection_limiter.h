// Limits the connections whose other end has not proved to be a peer, those of
// one peer, and those of all.
//
// The limiter sees every TCP connection that a server accepts before gRPC reads
// a byte of it, and hears which connections have sent a valid hello.  A
// connection that comes when all places are taken is shut down.  So is every
// connection while nearly all descriptors of the process are in use: a listener
// of gRPC 1.51 that gets none never listens again (CVE-2023-4785).  Internal to
// transport/grpc; knows nothing of streams or certificates.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTION_LIMITER_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTION_LIMITER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"

namespace gossamer {

// Safe to use from any thread.
class ConnectionLimiter {
 public:
  static constexpr size_t kMaxPerIdentity = 16;
  // The time for which a host that floods gets no connection.  A flood is
  // noticed within a fraction of a second, so one that always comes back takes
  // less than a hundredth of what it could.
  static constexpr absl::Duration kBanTime = absl::Minutes(1);

  // Allows at most `most` unauthenticated connections at a time, or half of the
  // descriptors that the process may use, whichever is less.  Half of them may
  // be of one host, so that one machine cannot keep all others out.  An
  // identity has at most `max_per_identity` connections; its eldest is shut
  // down for one more.  A connection takes `descriptors`.
  explicit ConnectionLimiter(size_t most,
                             size_t max_per_identity = kMaxPerIdentity,
                             absl::Duration ban_time = kBanTime,
                             size_t descriptors = 1);

  size_t most() const { return most_; }
  // Connections that are let in however many unauthenticated ones there are.
  size_t authenticated_capacity() const {
    return ceiling_ / descriptors_ - most_;
  }

  // `listener` is a non-blocking socket on which connections are accepted.
  void Watch(int listener) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes an accepted socket.  Returns false if it is one too many, or had
  // ended before it was accepted, which is not counted; it has been shut down.
  bool Allow(int socket) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes the connection from `address`, as gRPC writes it
  // ("ipv4:10.0.0.2:4711"), for a peer's: that of `who`, if the identity is
  // known.
  void MarkAuthenticated(absl::string_view address, absl::string_view who = "")
      ABSL_LOCKS_EXCLUDED(mu_);
  // Allows no connection of this host for a while, and resets those that are
  // unauthenticated.
  void Ban(const std::string& host) ABSL_LOCKS_EXCLUDED(mu_);

  size_t unauthenticated() ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t refused() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Unauthenticated {
    std::string host;
    std::string address;  // not empty: a socket without one is not connected
  };
  struct Authenticated {
    std::string who;
    std::string address;
    uint64_t number = 0;  // the eldest has the smallest
  };
  // Returns whether one more unauthenticated connection of this host is too
  // many.
  bool Full(const std::string& host) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Banned(const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseBacklog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PruneClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Keep(int socket, Authenticated authenticated)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t ceiling_;  // no socket has this number or a larger one
  const size_t descriptors_;
  const size_t most_;
  const size_t max_per_identity_;
  const absl::Duration ban_time_;
  Mutex mu_;
  std::map<int, Unauthenticated> unauthenticated_
      ABSL_GUARDED_BY(mu_);  // by socket
  std::map<int, Authenticated> authenticated_
      ABSL_GUARDED_BY(mu_);  // by socket; those of a known identity
  std::map<int, uint64_t> listeners_ ABSL_GUARDED_BY(mu_);  // and their files
  std::map<std::string, absl::Time> banned_
      ABSL_GUARDED_BY(mu_);  // by host, and until when
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTION_LIMITER_H_
