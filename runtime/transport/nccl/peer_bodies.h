// Agrees with one peer, for each frame body, whether NCCL or the carrier brings
// it, so that each arrives once.
//
// Each end offers a body by its head and holds the other's; the end with the
// smaller id says of each exchange whether both launch its pair or neither
// does.  This header knows nothing of communicators, but for whether one is
// ready, or of launching.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_PEER_BODIES_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_PEER_BODIES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"
#include "runtime/transport/nccl/body_frame.h"
#include "runtime/transport/nccl/held_frames.h"
#include "runtime/transport/nccl/launch_queue.h"
#include "runtime/transport/transport.h"

namespace gossamer {

// The same for all peers of one end.
struct PeerBodiesOptions {
  PeerId self;
  absl::Duration deadline;
  // The time for which an offer waits for the other end's.
  absl::Duration offer_timeout;
  size_t max_body_bytes = 0;
  size_t max_held_bytes = 0;  // of frames that wait on one connection
  // Sends a frame of Channel::kBody over the newest connection; false without
  // one.
  std::function<bool(PeerId to, Frame frame)> send;
  // Whether the communicator of this key can be used.
  std::function<bool(uint64_t key)> ready;
  // A pair of the queue has its terms.
  std::function<void()> on_agreed;
  // This end has decided that an exchange goes by the carrier, and its pair has
  // left the queue.
  std::function<void()> on_declined;
};

class PeerBodies {
 public:
  // Both pointers outlive it.
  PeerBodies(PeerId peer, LaunchQueue* queue, const PeerBodiesOptions* options);

  // Offers and held frames go with their connection, as the contract of
  // transport.h has it.
  void Open(ConnectionId connection) { held_.Open(connection); }
  void Drop(ConnectionId connection);
  void DropAll();
  HeldFrames& held() { return held_; }

  // Whether this end may offer its body of the exchange.  A body is offered
  // once: one that is sent again goes with its head.
  bool MayOffer(uint64_t exchange) const {
    return exchange > offered_ && held_.any_open();
  }
  // Offers the body of an edge's frame for that pair.  Returns false, and keeps
  // nothing, if the head cannot be sent.
  bool Offer(NcclPair pair, Frame frame, absl::Time now);
  // No exchange below `undecided` will be offered.
  void Decide(uint64_t undecided);
  // Sends the frame with BodyFrame::ack.  Returns false without a connection.
  bool Send(BodyFrame frame, SharedBytes body = {});

  // Frames of the other end, and BodyFrame::ack of each.  An error is a reason
  // to close the connection.
  void OnAck(uint64_t ack);
  absl::Status OnOffer(ConnectionId connection, BodyFrame offer,
                       absl::Time now);
  void OnAgree(uint64_t exchange, uint32_t number);
  // The exchange goes by the carrier; its pair has left the queue.
  void OnDecline(uint64_t exchange);

  // NCCL has exchanged the bodies of the pair; `body` is the other end's.
  void Complete(const NcclPair& pair, SharedBytes body);
  // The communicator of this key has ended: all that was offered for it, and
  // has not come, goes by the carrier.  Returns the number of bodies.
  size_t SendAgain(uint64_t key);

  // At the leading end: exchanges that one end alone has offered, for
  // `offer_timeout`.
  std::vector<uint64_t> UnmatchedOffers(absl::Time now) const;
  // Both bodies of the exchange go by the carrier.
  void Decline(uint64_t exchange);
  // At the other end: keys of communicators for which the leading end has not
  // answered an offer within the deadline.
  std::vector<uint64_t> Unanswered(absl::Time now) const;
  // A head whose body has not come in the time in which the other end should
  // have sent it again.
  struct Missing {
    ConnectionId connection;  // of the head
    absl::Status why;         // the connection is to be closed
  };
  std::vector<Missing> MissingBodies(absl::Time now) const;
  // The first time at which one of these three may have an entry.
  absl::Time NextPoll() const;

 private:
  // A body of this end that the other end may lack.
  struct Offered {
    ConnectionId connection = 0;
    uint64_t key = 0;
    SharedBytes body = {};
    absl::Time since = {};
    bool agreed = false;
    bool done = false;  // the pair took place; the other end may not know yet
  };

  // The leading end is the one with the smaller id.
  bool leads() const { return options_->self < peer_; }
  void Resolve(uint64_t exchange);
  void Agree(uint64_t exchange, uint32_t number);
  void DeclineDecided();
  void SendBody(uint64_t exchange);

  const PeerId peer_;
  LaunchQueue* const queue_;
  const PeerBodiesOptions* const options_;
  HeldFrames held_;
  std::map<uint64_t, Offered> offers_;  // by exchange
  uint64_t offered_ = 0;                // only later exchanges may be offered
  uint64_t undecided_ = 0;              // no lower exchange will be offered
  uint32_t agreements_ = 0;             // with the other end, if this one leads
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_PEER_BODIES_H_
