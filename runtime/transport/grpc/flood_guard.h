// Ends accepted connections that bring work and no messages: HTTP/2's resets,
// pings, settings and headers, as many as the other end likes to send.
//
// gRPC reads and answers all of them, and its caller hears of none: while they
// come without a pause, the thread that polls does not even return.  So a
// thread of its own compares the bytes that TCP has brought with those of the
// messages that came out of them.  Internal to transport/grpc; also before the
// service.  This header knows nothing of HTTP/2's frames, of peers or of what
// messages say.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_FLOOD_GUARD_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_FLOOD_GUARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"
#include "runtime/transport/grpc/call_counter.h"
#include "runtime/transport/grpc/connection_limiter.h"
#include "runtime/transport/grpc/socket_names.h"

namespace gossamer {

// The bytes that one connection may bring beside its messages.  Pure.
class FloodBudget {
 public:
  // The bytes before a first message: a handshake of TLS with certificates,
  // settings, headers.  As resets of HTTP/2, each of which holds 12 KiB for a
  // while, these bytes take 10 MiB.
  static constexpr double kBurst = 32 << 10;
  // The bytes of a first message that is not complete, or is refused: its
  // sender is told why.  As pings they take 5 MiB.
  static constexpr double kFirst = 512 << 10;
  // Bytes a second for what no message brings: keepalives, calls that are
  // refused or break off.
  static constexpr double kRate = 16 << 10;
  // The bytes for each message beside its own: the headers of a call, an answer
  // to a ping, a record of TLS.
  static constexpr double kPerMessage = 512;
  // The share of a message's bytes for the headers of its frames and records,
  // and that of the bytes sent for the updates of windows that come back.
  static constexpr double kShare = 1.0 / 16;
  // Calls that may have begun and not been heard of yet.
  static constexpr uint64_t kUnheard = 16;

  // The connection's totals so far.
  struct Facts {
    double read = 0;  // bytes that were taken from the socket
    double sent = 0;  // bytes that have arrived at the other end
    uint64_t calls = 0, messages = 0;
    double message_bytes = 0;
  };

  // `window`: the bytes of messages that may have come and not be complete or
  // taken yet, once a call was heard of.
  explicit FloodBudget(double window) : window_(window) {}

  // Returns whether the connection has brought more than it may, at `passed`
  // after the last poll.  `begun` tells how many calls have begun on it, heard
  // of or not; it is asked seldom.
  bool Exceeded(const Facts& facts, absl::Duration passed,
                absl::FunctionRef<uint64_t()> begun);

 private:
  double window_;
  double debt_ = 0;  // the bytes that no message is known for, never negative
  double due_ = 0;   // what was read beyond all allowances, at the last poll
};

// The calls and messages of one connection that the application has heard of.
// Safe to use from any thread.
class FloodAccount {
 public:
  void CreditCall() { ++calls_; }
  void CreditMessage(size_t bytes) {
    bytes_ += bytes;
    ++messages_;
  }
  uint64_t calls() const { return calls_; }
  uint64_t messages() const { return messages_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<uint64_t> calls_ = 0, messages_ = 0, bytes_ = 0;
};

// Polls the accepted sockets of a server.  Safe to use from any thread.
class FloodGuard {
 public:
  // A flood brings about a megabyte a second, since gRPC takes no more; behind
  // a gate, what the sockets inside hold comes on top.
  static constexpr absl::Duration kPollInterval = absl::Milliseconds(50);

  // `window` as above.  Has `limiter` ban the hosts of floods.
  FloodGuard(size_t window, std::shared_ptr<ConnectionLimiter> limiter)
      : window_(static_cast<double>(window)), limiter_(std::move(limiter)) {}
  ~FloodGuard();

  // Polls again and again from now on, on a thread of its own.
  void Start();
  // An accepted socket, which its owner may close at any time.
  void Add(int socket) ABSL_LOCKS_EXCLUDED(mu_);
  // The account of the connection from `address`, as gRPC writes it; null if
  // there is none.
  std::shared_ptr<FloodAccount> AccountOf(absl::string_view address)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Polls all sockets.  Drops those that are closed, and resets those that
  // have brought too much.
  void Poll() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a line for each connection that was reset since the last call.
  std::vector<std::string> TakeReports() ABSL_LOCKS_EXCLUDED(mu_);
  // The connections that it polls.
  size_t watched() const {
    MutexLock lock(&mu_);
    return connections_.size();
  }

 private:
  struct Connection {
    int socket = -1;
    std::string host;
    // The kernel's name of the socket: the descriptor may be another's by now.
    uint64_t cookie = 0;
    absl::Time checked_at;
    FloodBudget budget;
    std::shared_ptr<FloodAccount> account;
    CountedConnection counted = 0;  // 0: not found yet
    bool count = false;             // its calls are asked for
  };
  enum class Verdict { kGood, kFloods, kClosed };
  static Verdict Check(Connection& connection);
  // Returns the address and cookie of the connections whose calls are to be
  // counted and are not found yet.
  std::map<std::string, uint64_t> CheckAll() ABSL_LOCKS_EXCLUDED(mu_);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  const double window_;
  const std::shared_ptr<ConnectionLimiter> limiter_;
  std::thread thread_;
  mutable Mutex mu_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, Connection, std::less<>> connections_
      ABSL_GUARDED_BY(mu_);  // by address
  std::vector<std::string> reports_ ABSL_GUARDED_BY(mu_);
  // When the memory that a flood took is free again.
  absl::Time give_back_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_FLOOD_GUARD_H_
