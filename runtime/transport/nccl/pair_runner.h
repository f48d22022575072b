// Launches the operations of a queue one at a time, each on the communicator of
// its group, and watches the one under way.
//
// An operation that fails ends its communicator, and so does a pair that takes
// longer than the deadline; a meeting has the time in which communicators are
// made. This header knows nothing of offers or of frames.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_PAIR_RUNNER_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_PAIR_RUNNER_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "algorithms/base/shared_bytes.h"
#include "runtime/base/event_loop.h"
#include "runtime/transport/nccl/launch_queue.h"
#include "runtime/transport/nccl/nccl_groups.h"

namespace gossamer {

class PairRunner {
 public:
  // A pair that has taken place, and the body that it has brought.
  struct Completed {
    NcclPair pair;
    SharedBytes body;
  };

  // All pointers outlive it.
  PairRunner(const EventLoop* loop, LaunchQueue* queue, NcclGroups* groups,
             absl::Duration deadline)
      : loop_(loop), queue_(queue), groups_(groups), deadline_(deadline) {}

  // The queue has changed: launches what is next.
  void Launch();
  // Polls the pair under way; its owner then calls Launch().
  std::optional<Completed> Poll(absl::Time now);

 private:
  void PollMeeting(uint64_t key);

  const EventLoop* const loop_;
  LaunchQueue* const queue_;
  NcclGroups* const groups_;
  const absl::Duration deadline_;
  absl::Time since_;  // the pair under way was launched
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_PAIR_RUNNER_H_
