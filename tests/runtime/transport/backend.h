// The environment of the conformance suite for a transport: peers that can be
// started, killed and called on their loops.

#ifndef GOSSAMER_TESTS_RUNTIME_TRANSPORT_BACKEND_H_
#define GOSSAMER_TESTS_RUNTIME_TRANSPORT_BACKEND_H_

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/mutex.h"
#include "runtime/base/event_loop.h"
#include "runtime/transport/transport.h"

namespace gossamer {

// A frame as it arrived.
struct Received {
  ConnectionId connection;
  Channel channel;
  Frame frame;
};

// Records the events of one peer.  Fails the test if an event comes inline, on
// a connection that is not up, or twice.
class Recorder : public TransportListener {
 public:
  void OnUp(PeerId peer, ConnectionId connection) override;
  void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
               Frame frame) override;
  void OnProgress(PeerId peer) override;
  void OnDown(PeerId peer, ConnectionId connection,
              const absl::Status& why) override;

  struct Seen {
    std::vector<ConnectionId> ups;
    std::vector<ConnectionId> downs;
    std::vector<absl::Status> reasons;  // the reasons of the downs
    std::set<ConnectionId> open;
    std::vector<Received> frames;
    int parts = 0;                 // OnProgress
    std::vector<std::string> log;  // "up", "frame", "down"
  };
  // Returns a consistent copy, from any thread.
  template <typename F>
  auto With(F fn) const {
    MutexLock lock(&mu_);
    return fn(seen_);
  }
  // Waits until `condition` holds.
  bool Await(absl::FunctionRef<bool(const Seen&)> condition,
             absl::Duration limit) const;

  // Used on the loop: a call of the transport is under way.
  bool in_call = false;

 private:
  mutable Mutex mu_;
  mutable CondVar changed_;
  Seen seen_;
};

class Backend {
 public:
  static constexpr absl::Duration kLimit = absl::Seconds(60);
  virtual ~Backend() = default;

  // Starts a new incarnation of `peer`, with a new recorder.
  virtual void Start(PeerId peer) = 0;
  virtual void Kill(PeerId peer) = 0;
  // Runs `fn` on the peer's loop and waits for it.
  virtual void On(PeerId peer, absl::FunctionRef<void(Transport&)> fn) = 0;
  virtual Recorder& recorder(PeerId peer) = 0;
  virtual std::string address(PeerId peer) = 0;
  // Waits until `condition` holds of the events of `peer`; returns false after
  // kLimit.
  virtual bool Await(
      PeerId peer,
      absl::FunctionRef<bool(const Recorder::Seen&)> condition) = 0;
};

std::unique_ptr<Backend> MakeSimBackend();
std::unique_ptr<Backend> MakeGrpcBackend();
std::unique_ptr<Backend> MakeGrpcBothDialBackend();
std::unique_ptr<Backend> MakeGrpcLanesBackend();
// NCCL over the simulated network; its operations hang, fail or are slow.
std::unique_ptr<Backend> MakeNcclBackend();
std::unique_ptr<Backend> MakeNcclHangsBackend();
std::unique_ptr<Backend> MakeNcclFailsBackend();
std::unique_ptr<Backend> MakeNcclSlowBackend();

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_TRANSPORT_BACKEND_H_
