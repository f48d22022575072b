// Moves frames between the two ends of an edge, and nothing else.
//
// A transport keeps connections to peers alive, tells its listener of them on
// the event loop (never inline), and never reorders within one connection.
// When a connection breaks it may lose a suffix of what was sent; it never
// retries.  Knows nothing of what the frames say.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_H_
#define GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/payload.h"

namespace gossamer {

// Independent streams of frames between two peers.
enum class Channel : uint8_t {
  kEdge = 0,
  kCollective = 1,
  kState = 2,
  kProbe = 3,
  // What this end thinks of the other; one that is older does not know it, and
  // Send() to it is false.
  kNotice = 4
};

// How a body came in: the bytes after its first chunk and how long they took,
// which is what the link gives while it is busy; nothing if it was one chunk.
struct Transit {
  size_t bytes = 0;
  absl::Duration took;
};

// A small head and a bulk body, either may be empty; they arrive together.
struct Frame {
  Payload head;          // at most kMaxHeadBytes
  Payload body;          // at most the transport's limit
  Transit transit = {};  // of a received one
};
inline constexpr size_t kMaxHeadBytes = 4096;

// Names one connection to one peer at this end; a later one is larger.
using ConnectionId = uint64_t;

// Events, all on the loop.  Between OnUp and OnDown of a connection its frames
// arrive in the order in which the other end sent them.  Every OnUp is followed
// by one OnDown, also after Close() and Disconnect(), unless the transport is
// destroyed first; no frame arrives after those two.
class TransportListener {
 public:
  virtual ~TransportListener() = default;
  // A connection to `peer` is open.  It is now the newest: sends go there.
  virtual void OnUp(PeerId peer, ConnectionId connection) = 0;
  virtual void OnFrame(PeerId peer, ConnectionId connection, Channel channel,
                       Frame frame) = 0;
  // The connection is gone; frames sent on it may not have arrived.
  virtual void OnDown(PeerId peer, ConnectionId connection,
                      const absl::Status& why) = 0;
};

struct TransportCounters {
  uint64_t bytes_sent = 0;  // frame bytes handed to the network
  uint64_t bytes_received = 0;
  // Connections that were hung up on before a byte was read, because too many
  // were open of whom nobody knew who they are.
  uint64_t strangers_refused = 0;
};

// All calls on the loop.
class Transport {
 public:
  virtual ~Transport() = default;
  // Before anything else; the listener outlives the transport.
  virtual void SetListener(TransportListener* listener) = 0;
  // Keeps a connection to `peer` alive from now on: dials `address` if this
  // end is the one to dial, again with backoff whenever it is lost.
  // Idempotent; a new address replaces the old one.
  virtual void Connect(PeerId peer, const std::string& address) = 0;
  // Gives the peer up: closes, and no longer dials or accepts it.
  virtual void Disconnect(PeerId peer) = 0;
  // Queues a frame on the newest connection.  False, and nothing is kept, if
  // there is none or the frame is over the limits.  The queue is bounded by
  // what the edges retain (EDGE 3).
  virtual bool Send(PeerId peer, Channel channel, Frame frame) = 0;
  // Ends one connection because of what came over it; dials again with
  // backoff.
  virtual void Close(PeerId peer, ConnectionId connection,
                     const absl::Status& why) = 0;
  // True if little or nothing of what was sent to `peer` still waits to go out.
  // What can wait, such as an acknowledgement, is sent then only, so that a
  // frozen peer is not sent one a round for ever.
  virtual bool Idle(PeerId peer) const = 0;
  // The round's sends are all in.
  virtual void Flush() {}
  virtual TransportCounters counters() const = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_TRANSPORT_H_
