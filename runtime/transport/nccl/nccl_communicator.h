// One communicator at one member: made without blocking, used for one operation
// at a time, given up for good once anything is wrong with it.
//
// An operation is a symmetric pair, a send to one member and a receive from it
// in one group, or a sum over all members.  NCCL connects two members in their
// first operation, which may take long, so all meet before the first pair.
// This header knows nothing of frames, rounds or deadlines: its owner keeps the
// time.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_COMMUNICATOR_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/kernels/device_queue.h"
#include "runtime/transport/nccl/nccl_api.h"
#include "runtime/transport/nccl/nccl_state.h"

namespace gossamer {

class NcclCommunicator {
 public:
  // An operation is aborted if nobody has polled it for so long.  A sum is not:
  // its abort may end it elsewhere as if it had summed.
  struct Patience {
    absl::Duration exchange = absl::InfiniteDuration();
    absl::Duration meeting = absl::InfiniteDuration();
  };

  // Both pointers outlive it.  It exchanges with the members `partners`, which
  // may be none.
  NcclCommunicator(NcclApi* api, NcclDevice* device, int ranks, int rank,
                   std::vector<int> partners, Patience patience);
  ~NcclCommunicator() { End(NcclEvent::kReplaced); }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  NcclState state() const { return state_; }
  bool ready() const { return state_ == NcclState::kReady; }

  // Begins to be made with the group's unique id.  This and the calls below
  // return an error of NCCL or of the device: the owner then calls End().
  absl::Status Make(const NcclUniqueId& id);
  // Polls whether it is made.
  absl::Status PollMaking();

  // Begins the operation of a communicator that is made in which its members
  // meet their partners; it is ready once that has ended.  All of them begin
  // it, and the order of operations says when.  The name goes with it.
  absl::Status Meet(uint64_t name);
  // Begins an operation of a ready communicator that has none under way.
  //
  // Sends `body` to the member `rank`, and receives `bytes` from it.  NCCL
  // joins a send with whichever receive comes next, and an abort at one end may
  // end the operation at the other as if all had come.  So the name of the
  // operation and the body's CRC-32C go with it, and what does not fit them is
  // an error.
  absl::Status Exchange(int rank, SharedBytes body, size_t bytes,
                        uint64_t name);
  // The values become their sums, as many at all members.  Nobody else touches
  // them until the operation has ended; after End() they are left alone for
  // good.
  absl::Status Sum(std::shared_ptr<DeviceVector<float>> values);
  bool busy() const { return operation_ != nullptr; }
  // Returns the bytes that the operation has brought, none but of an exchange;
  // nullopt while it is under way.
  absl::StatusOr<std::optional<SharedBytes>> PollOperation();

  // Takes the event, and aborts what it ends.
  void End(NcclEvent why);

 private:
  struct Operation;
  // A group of NCCL has begun, and `calls` say what its calls have returned.
  absl::Status EndGroup(std::vector<absl::Status> calls);
  absl::Status Check(NcclResult result, const char* call) const;

  NcclApi* const api_;
  NcclDevice* const device_;
  const int ranks_;
  const int rank_;
  const std::vector<int> partners_;
  const Patience patience_;
  NcclState state_ = NcclState::kWaiting;
  NcclComm comm_ = nullptr;
  std::shared_ptr<Operation> operation_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_COMMUNICATOR_H_
