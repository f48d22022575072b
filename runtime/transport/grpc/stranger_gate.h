// How many connections there may be of which nobody has proved to be a peer,
// how many of one peer, and of all.
//
// Sees every TCP connection that a server accepts before gRPC reads a byte of
// it, and is told which ones have said a hello that was believed; who comes
// when all places are taken is hung up on.  So is everybody while nearly all
// descriptors of the process are in use: a listener of gRPC 1.51 that gets none
// never listens again (CVE-2023-4785).  Internal to transport/grpc; knows
// nothing of streams or certificates.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_STRANGER_GATE_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_STRANGER_GATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "algorithms/base/mutex.h"

namespace gossamer {

// Any thread.
class StrangerGate {
 public:
  static constexpr size_t kMostOfOne = 16;

  // At most `most` strangers at a time, or as many as half of the descriptors
  // that there may be, and half of them of one host, so that one machine alone
  // cannot keep all others out.  Of `most_of_one` of whom it is known who they
  // are the eldest gives way to one more.
  explicit StrangerGate(size_t most, size_t most_of_one = kMostOfOne);

  size_t most() const { return most_; }
  // Connections that are let in however many strangers there are.
  size_t room() const { return ceiling_ - most_; }

  // A socket, not blocking, on which others are accepted.
  void Watch(int listener) ABSL_LOCKS_EXCLUDED(mu_);
  // A socket that was accepted.  False: it is one too many, or had ended before
  // it was accepted, which is not counted; it has been shut down.
  bool Admit(int socket) ABSL_LOCKS_EXCLUDED(mu_);
  // The connection from `address`, as gRPC says it ("ipv4:10.0.0.2:4711"), is a
  // peer's: of `who`, if that is known.
  void Believe(absl::string_view address, absl::string_view who = "")
      ABSL_LOCKS_EXCLUDED(mu_);

  size_t strangers() ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t refused() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Stranger {
    std::string host;
    std::string address;  // not empty: who has none is not connected
  };
  struct Known {
    std::string who;
    std::string address;
    uint64_t number = 0;  // the eldest has the least
  };
  // Whether one more stranger of this host is too many.
  bool Full(const std::string& host) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void HangUpOnWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Keep(int socket, Known known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t ceiling_;  // no socket from this number on
  const size_t most_;
  const size_t most_of_one_;
  Mutex mu_;
  std::map<int, Stranger> strangers_ ABSL_GUARDED_BY(mu_);  // by socket
  std::map<int, Known> known_ ABSL_GUARDED_BY(mu_);         // by socket
  std::map<int, uint64_t> listeners_ ABSL_GUARDED_BY(mu_);  // and their files
  uint64_t believed_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_STRANGER_GATE_H_
