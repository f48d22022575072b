// Moves frames between the two ends of an edge, and nothing else.
//
// A transport keeps connections to peers alive and reports them to its listener
// on the event loop, never inline.  It never reorders frames within one
// connection.  When a connection breaks it may lose a suffix of the frames that
// were sent; it never retries.  This header knows nothing of what the frames
// say.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_H_
#define GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"

namespace gossamer {

// Independent streams of frames between two peers.
enum class Channel : uint8_t {
  kEdge = 0,
  kCollective = 1,
  kState = 2,
  kProbe = 3,
  // This end's verdicts on the other.  An older peer does not know this
  // channel, and Send() to it returns false.
  kNotice = 4,
  // Between two NCCL transports (nccl/body_frame.h).  It goes to peers alone
  // whose view states a device, so no version of the transport stands for it.
  kBody = 5
};

// The bytes of a body after its first chunk and the time that they took, which
// is the rate of the link while it is busy.  Empty if the body was one chunk.
struct Transit {
  size_t bytes = 0;
  absl::Duration took;
};

// A small head and a bulk body; either may be empty; they arrive together.
struct Frame {
  SharedBytes head;      // at most kMaxHeadBytes
  SharedBytes body;      // at most the transport's limit
  Transit transit = {};  // set in a received frame
  // Set in a sent frame whose body may travel beside its head.  With a body it
  // names the exchange that the body belongs to; the other end's body of the
  // same exchange may travel with it.  Without one, no body of a lower exchange
  // follows for the first time.  0 says nothing.
  uint64_t exchange = 0;
};
inline constexpr size_t kMaxHeadBytes = 4096;

// The number of one connection to one peer at this end.  A later connection has
// a larger number.
using ConnectionId = uint64_t;

// The events of a transport, all on the loop.  Between OnUp and OnDown of a
// connection its frames arrive in the order in which the other end sent them.
// Every OnUp is followed by one OnDown, also after Close() and Disconnect(),
// unless the transport is destroyed first.  No frame arrives after OnDown.
class TransportListener {
 public:
  virtual ~TransportListener() = default;
  // A connection to `peer` is open.  It is now the newest: sends go there.
  virtual void OnUp(PeerId peer, ConnectionId connection) = 0;
  virtual void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
                       Frame frame) = 0;
  // A part of a frame has come, whose rest is under way.
  virtual void OnProgress(PeerId /*peer*/) {}
  // The connection is gone.  Frames sent on it may not have arrived.
  virtual void OnDown(PeerId peer, ConnectionId connection,
                      const absl::Status& why) = 0;
};

// Totals since the transport began.
struct TransportCounters {
  uint64_t bytes_sent = 0;  // frame bytes handed to the network
  uint64_t bytes_received = 0;
  // Connections that were shut down before a byte was read, because too many
  // unauthenticated ones were open.
  uint64_t unauthenticated_refused = 0;
  // Times that a connection was given BBR for its pauses, losses or window.
  uint64_t chose_bbr = 0;
  // Connections that were spread over several of TCP for losses or windows,
  // since they could not have BBR.
  uint64_t outgrew_cubic = 0;
};

// All calls are made on the loop.
class Transport {
 public:
  virtual ~Transport() = default;
  // Called before anything else.  The listener outlives the transport.
  virtual void SetListener(TransportListener* listener) = 0;
  // Keeps a connection to `peer` alive from now on.  If this end is the one to
  // dial, it dials `address`, again with backoff whenever the connection is
  // lost.  Idempotent; a new address replaces the old one.
  virtual void Connect(PeerId peer, const std::string& address) = 0;
  // Ends the connections to the peer, and neither dials nor accepts it again.
  virtual void Disconnect(PeerId peer) = 0;
  // Queues a frame on the newest connection.  Returns false, and keeps nothing,
  // if there is none or the frame is over the limits.  The frames that the
  // edges retain bound the queue (PROTOCOL.md 3).
  virtual bool Send(PeerId peer, Channel channel, Frame frame) = 0;
  // Ends one connection because of the frames that came over it.  Dials again
  // with backoff.
  virtual void Close(PeerId peer, ConnectionId connection,
                     const absl::Status& why) = 0;
  // Returns true if little or nothing of what was sent to `peer` still waits to
  // go out, also without a connection.  Frames that can wait, such as
  // acknowledgements, are sent only then: a peer that reads nothing would
  // otherwise be sent one a round for ever.
  virtual bool IsWritable(PeerId peer) const = 0;
  virtual TransportCounters counters() const = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_H_
