// Frames of one peer that have come and wait: for a body of their own, or
// behind a frame that does.
//
// Frames of a connection leave in the order in which they came, each whole, and
// go with their connection.  This header is pure and knows nothing of how
// bodies come.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_HELD_FRAMES_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_HELD_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/shared_bytes.h"
#include "runtime/transport/nccl/body_frame.h"
#include "runtime/transport/transport.h"

namespace gossamer {

struct HeldFrame {
  Channel channel = Channel::kEdge;
  Frame frame = {};
  bool whole = true;
  // The rest is of a frame whose body was offered.
  ConnectionId connection = 0;
  uint64_t exchange = 0;
  uint64_t key = 0;   // NcclPlan::key
  uint32_t size = 0;  // of the body, bytes
  absl::Time since = {};
  bool declined = false;  // the body comes by the carrier
  bool agreed = false;    // the body comes by NCCL
};

class HeldFrames {
 public:
  // The most frames that wait on one connection.  An honest edge has at most
  // sixteen payloads under way, and some frames of other channels behind them.
  static constexpr size_t kMax = 1024;

  // `max_bytes`: the most bytes of frames that wait on one connection, with
  // those that its offers announce.
  explicit HeldFrames(size_t max_bytes) : max_bytes_(max_bytes) {}

  void Open(ConnectionId connection);
  void Drop(ConnectionId connection);
  void DropAll();
  bool IsOpen(ConnectionId connection) const {
    return open_.contains(connection);
  }
  bool any_open() const { return !open_.empty(); }
  // Of those that are open, at least one.
  ConnectionId newest() const { return open_.rbegin()->first; }

  // Whether frames wait on the connection, so that the next one has to.
  bool Waits(ConnectionId connection) const;
  // Whether `bytes` more, or one frame more, are too many behind those that
  // wait.
  bool Full(ConnectionId connection, size_t bytes) const;
  // A frame waits behind others.
  void Add(ConnectionId connection, Channel channel, Frame frame);
  // A head waits for its body.  Returns false, and keeps nothing, if its
  // exchange has been offered over this connection, or a later one has.
  bool AddOffer(ConnectionId connection, BodyFrame offer, absl::Time now);

  // The head of that exchange that waits for its body; null if there is none.
  HeldFrame* Find(uint64_t exchange);
  // Calls `visit` with each head that waits for its body.
  void ForEachWaiting(absl::FunctionRef<void(const HeldFrame&)> visit) const;
  // The head of that exchange has the body, which came by the carrier.  Returns
  // its connection, nullopt if no head waits for it; kDataLoss if another size
  // was offered.
  absl::StatusOr<std::optional<ConnectionId>> Complete(uint64_t exchange,
                                                       SharedBytes body);
  // The same of a body by NCCL, which belongs to the head over that connection
  // alone, and is dropped if that has gone.
  void CompleteAgreed(ConnectionId connection, uint64_t exchange,
                      SharedBytes body);

  // The next frame of the connection that is whole.
  std::optional<HeldFrame> Take(ConnectionId connection);
  // BodyFrame::ack: all offers up to this exchange have left, over the newest
  // connection.
  uint64_t ack() const { return ack_; }

 private:
  struct Connection {
    std::deque<HeldFrame> frames;
    size_t bytes = 0;         // of `frames`, with the bodies that are to come
    uint64_t last_offer = 0;  // the last exchange that was offered over it
  };
  const size_t max_bytes_;
  std::map<ConnectionId, Connection> open_;
  uint64_t ack_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_HELD_FRAMES_H_
