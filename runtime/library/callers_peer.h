// A program's own training loop as a peer of a fleet: the runtime on threads
// of its own beside it, from options to the end.
//
// The options are those of gossamer-peer.  This header knows nothing of what
// the program computes, nor of its language.

#ifndef GOSSAMER_RUNTIME_LIBRARY_CALLERS_PEER_H_
#define GOSSAMER_RUNTIME_LIBRARY_CALLERS_PEER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/mutex.h"
#include "algorithms/base/parameter_layout.h"
#include "runtime/daemon/peer_process.h"
#include "runtime/library/caller.h"

namespace gossamer {

class CallersPeer {
 public:
  // Reads options and configuration, whose game must be caller.  Nothing is
  // sent yet: the caller's first parameters are set next.  kInvalidArgument
  // says what is wrong.
  static absl::StatusOr<std::unique_ptr<CallersPeer>> Open(
      const std::vector<std::string>& options, ParameterLayout layout);
  // Leaves as it is, if the end has not come.
  ~CallersPeer();

  Caller& caller() { return *caller_; }
  uint64_t rounds() const { return rounds_; }
  uint64_t seed() const { return seed_; }
  // Of the run's founders.
  int peers() const { return peers_; }

  // Before Start().  The parameters lie at `parameters` instead, memory of the
  // program that outlives this peer: of the host, or of GPU `index`, on which
  // this peer then computes what is not the program's step.  kInvalidArgument
  // says why they cannot lie on that GPU; they stay where they were.
  void UseMemory(float* parameters);
  absl::Status UseCudaMemory(float* parameters, int index);
  // Begins to register, with the parameters that the caller has now.  Once.
  // kUnavailable if they cannot be read: the device's reason.
  absl::Status Start();
  // Any thread: the fleet is asked to stop at a round that all agree on; this
  // peer leaves in good order, and the caller's turns end.
  void Stop();
  void Leave();

 private:
  CallersPeer(PeerProcessOptions options, ParameterLayout layout);
  absl::StatusOr<uint64_t> HashOfParameters() const;

  const uint64_t rounds_, seed_;
  const int peers_;
  std::unique_ptr<Caller> caller_;
  PeerProcessOptions options_;         // until Start()
  const CudaLibrary* cuda_ = nullptr;  // of parameters on a GPU
  Mutex mu_;
  // Asked for before there was a process.
  bool stops_ ABSL_GUARDED_BY(mu_) = false;
  bool leaves_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<PeerProcess> process_;
  std::thread thread_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LIBRARY_CALLERS_PEER_H_
