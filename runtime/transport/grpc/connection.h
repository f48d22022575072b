// What a listener knows as one connection: its first stream, and further lanes
// if the dialling end wants them.
//
// Internal to transport/grpc; loop only.  Knows nothing of peers, or of who
// dials what when.

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
  // The other end knows that channel.
  bool Knows(Channel channel) const {
    return channel != Channel::kNotice || version_ >= kNoticeVersion;
  }
  const GrpcStream& first() const { return *lanes_[0].stream; }
  const GrpcStream& lane(size_t lane) const { return *lanes_[lane].stream; }

  // A further lane, 0 < lane < kMaxLanes: under way, until it is open or gone.
  bool Has(size_t lane) const;
  bool IsOpen(size_t lane) const { return Has(lane) && lanes_[lane].open; }
  void Add(size_t lane, GrpcStreamPtr stream);
  void Open(size_t lane) { lanes_[lane].open = true; }
  void Remove(size_t lane) { lanes_[lane] = {}; }

  // What Send() adds to queued().
  size_t CostOf(const Frame& frame) const;
  // Spreads a large body over the lanes that are open.  False if all streams
  // would hold more than they may: then the connection is of no further use.
  bool Send(Channel channel, const Frame& frame);
  // As LaneJoiner::Add.
  absl::Status Receive(size_t lane, ReceivedFrame frame,
                       std::vector<ReceivedFrame>* complete);
  // When what has begun to come, on any lane, must have ended: so long after
  // its beginning, and its size over the least rate.  InfiniteFuture if nothing
  // has begun.
  absl::Time Deadline(absl::Duration slack) const;
  // Bytes that wait to be handed to the network, over all lanes.
  size_t queued() const;
  // And with them all that has come in and cannot be passed on yet.
  size_t held() const;
  // All of its streams, those under way too.
  std::vector<GrpcStreamPtr> streams() const;

 private:
  struct Lane {
    GrpcStreamPtr stream;
    bool open = false;
  };

  // Over how many lanes a frame of this size goes.
  size_t Parts(const Frame& frame) const;

  const uint64_t attempt_;
  const uint32_t version_;
  std::vector<Lane> lanes_;
  LaneJoiner joiner_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_CONNECTION_H_
