// The frames of one connection over several streams, its lanes.  A large body
// is cut into one part per lane and put together again.
//
// One TCP connection gives a long link no more than its window per round trip,
// and little of that after a loss; several connections give several times as
// much.  The first lane carries all frames, whole or as part 0, and so their
// order.  The other lanes carry parts only, in the same order, and need no
// numbers.  This header knows nothing of streams or of gRPC.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_LANES_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_LANES_H_

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/buffer_pool.h"
#include "runtime/transport/grpc/byte_budget.h"
#include "runtime/transport/grpc/chunking.h"
#include "runtime/transport/transport.h"

namespace gossamer {

inline constexpr size_t kMaxLanes = kMaxParts;
// The smallest body that is split, in bytes.  Smaller ones fit into the windows
// that a connection begins with.
inline constexpr size_t kSmallestSplitBody = size_t{256} << 10;

// Cuts a frame into `lanes` >= 1 parts, by reference.  Part i is for lane i;
// the head goes with part 0.
std::vector<Frame> SplitFrame(const Frame& frame, size_t lanes);

// The receiving end of one connection.
class LaneJoiner {
 public:
  // A joined body has at most `max_body_bytes`.  The frames that wait for their
  // other parts come out of `budget`.
  LaneJoiner(size_t max_body_bytes, std::shared_ptr<ByteBudget> budget)
      : max_body_bytes_(max_body_bytes), share_(std::move(budget)) {}

  // Takes a frame that came over `lane` < kMaxLanes, and appends to `complete`
  // the frames that can be passed on now, in the order of their sending.
  // Returns kDataLoss if the frames are no parts of one frame,
  // kResourceExhausted if too many bytes wait; the joiner is then of no further
  // use.
  absl::Status Add(size_t lane, ReceivedFrame frame,
                   std::vector<ReceivedFrame>* complete);
  // Bytes that wait for parts of other lanes.
  size_t held() const { return share_.held(); }
  // The time at which the oldest waiting frame came; InfiniteFuture if none
  // waits.
  absl::Time waits_since() const;

 private:
  // Returns true if the frame at the front of the first lane has all its parts.
  bool Ready() const;
  absl::Status Join(std::vector<ReceivedFrame>* complete);

  const size_t max_body_bytes_;
  ByteBudget::Share share_;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  std::array<std::deque<ReceivedFrame>, kMaxLanes> waiting_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_LANES_H_
