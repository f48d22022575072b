// The neighbours of a peer as its InputsLog has them: a transport whose other
// ends say again what they said, so that one peer of a run runs by itself.
//
// At each other end is the edge protocol itself (edge_end.h) without a vector:
// it sends the recorded payload of an exchange as soon as there is room for it,
// skips the others, and goes on from whatever the peer resumes from.  What the
// peer sends is held against what it sent then.  Knows nothing of games, clocks
// or files.

#ifndef GOSSAMER_RUNTIME_REPLAY_RECORDED_NEIGHBORS_H_
#define GOSSAMER_RUNTIME_REPLAY_RECORDED_NEIGHBORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "algorithms/base/ids.h"
#include "runtime/base/event_loop.h"
#include "runtime/replay/inputs_log.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class RecordedNeighbors final : public Transport {
 public:
  // Both outlive it.
  RecordedNeighbors(EventLoop* loop, const InputsLog* log);
  ~RecordedNeighbors() override;

  // OK while all that the peer has sent is what it sent then; else where it
  // first differed, or what could not be read.
  const absl::Status& status() const { return status_; }
  // Payloads of the peer that were as then.
  uint64_t equal() const { return equal_; }

  void SetListener(TransportListener* listener) override {
    listener_ = listener;
  }
  void Connect(PeerId peer, const std::string& address) override;
  void Disconnect(PeerId peer) override;
  bool Send(PeerId peer, Channel channel, Frame frame) override;
  void Close(PeerId peer, ConnectionId connection,
             const absl::Status& why) override;
  bool Idle(PeerId) const override { return true; }
  TransportCounters counters() const override { return counters_; }

 private:
  class Neighbor;
  void Answer(PeerId peer, Frame frame);
  void Check(PeerId peer, ExchangeId id, std::span<const std::byte> sent);
  void Fail(absl::Status why);

  EventLoop* const loop_;
  const InputsLog* const log_;
  // What was posted on the loop may come after this has gone.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  TransportListener* listener_ = nullptr;
  std::map<PeerId, std::unique_ptr<Neighbor>> neighbors_;
  absl::Status status_;
  uint64_t equal_ = 0;
  TransportCounters counters_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_REPLAY_RECORDED_NEIGHBORS_H_
