// One connection as a listener knows it: its first stream, and further lanes if
// the dialling end wants them.
//
// Internal to transport/grpc; loop only.  This header knows nothing of peers,
// or of who dials when.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTION_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/transport/grpc/grpc_stream.h"
#include "runtime/transport/grpc/lanes.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class Connection {
 public:
  // `first` is open; `attempt` and `version` are those of its hellos.
  Connection(GrpcStreamPtr first, uint64_t attempt, uint32_t version,
             const GrpcStreamLimits& limits);

  uint64_t attempt() const { return attempt_; }
  // Returns whether the other end's version knows that channel.
  bool Knows(Channel channel) const {
    return channel != Channel::kNotice || version_ >= kNoticeVersion;
  }
  const GrpcStream& first() const { return *lanes_[0].stream; }
  // A body was sent that lanes share.
  bool had_large_body() const { return had_large_body_; }
  const GrpcStream& lane(size_t lane) const { return *lanes_[lane].stream; }

  // Further lanes, 0 < lane < kMaxLanes.  A lane that was added is under way
  // until Open() or Remove().
  bool Has(size_t lane) const;
  bool IsOpen(size_t lane) const { return Has(lane) && lanes_[lane].open; }
  void Add(size_t lane, GrpcStreamPtr stream);
  void Open(size_t lane) { lanes_[lane].open = true; }
  void Remove(size_t lane) { lanes_[lane] = {}; }

  // Returns the bytes that Send() adds to queued().
  size_t CostOf(const Frame& frame) const;
  // Spreads a large body over the lanes that are open.  Returns false if all
  // streams together would hold more than they may; the connection is then of
  // no further use.
  bool Send(Channel channel, const Frame& frame);
  // See LaneJoiner::Add.
  absl::Status Receive(size_t lane, ReceivedFrame frame,
                       std::vector<ReceivedFrame>* complete);
  // Returns when the bytes that have begun to come, on any lane, must have
  // ended: `slack` after their beginning, and their size over the least rate.
  // InfiniteFuture if nothing has begun.
  absl::Time Deadline(absl::Duration slack) const;
  // Bytes that wait to be handed to the network, over all lanes.
  size_t queued() const;
  // Bytes that wait to be handed to the network, and those that have come in
  // and cannot be passed on yet.
  size_t held() const;
  // All streams of the connection, those under way too.
  std::vector<GrpcStreamPtr> streams() const;

 private:
  struct Lane {
    GrpcStreamPtr stream;
    bool open = false;
  };

  // Returns the number of lanes that a frame of this size is spread over.
  size_t Parts(const Frame& frame) const;

  const uint64_t attempt_;
  const uint32_t version_;
  bool had_large_body_ = false;
  std::vector<Lane> lanes_;
  LaneJoiner joiner_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTION_H_
