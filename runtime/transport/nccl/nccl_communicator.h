// One communicator at one member: made without blocking, used for one operation
// at a time, given up for good once anything is wrong with it.
//
// An operation is a symmetric pair, a send to one member and a receive from it
// in one group, or a sum over all members.  This header knows nothing of
// frames, rounds or deadlines: its owner keeps the time.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_COMMUNICATOR_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/kernels/device_queue.h"
#include "runtime/transport/nccl/nccl_api.h"
#include "runtime/transport/nccl/nccl_state.h"

namespace gossamer {

class NcclCommunicator {
 public:
  // Both outlive it.
  NcclCommunicator(NcclApi* api, NcclDevice* device, int ranks, int rank);
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

  // Begins an operation of a ready communicator that has none under way.
  //
  // Sends `body` to the member `rank`, and receives `bytes` from it.  NCCL
  // joins a send with whichever receive comes next, so the name of the
  // operation goes with it: an end that brings another name is an error at
  // both.
  absl::Status Exchange(int rank, SharedBytes body, size_t bytes,
                        uint64_t name);
  // The values become their sums, as many at all members.  Nobody else touches
  // them until the operation has ended; after End() they are left alone for
  // good.
  absl::Status Sum(std::shared_ptr<DeviceVector<float>> values);
  bool busy() const { return operation_ != nullptr; }
  // Returns the bytes that the operation has brought, none of a sum; nullopt
  // while it is under way.
  absl::StatusOr<std::optional<SharedBytes>> PollOperation();

  // Takes the event, and aborts what it ends.
  void End(NcclEvent why);

 private:
  struct Operation;
  absl::Status Check(NcclResult result, const char* call) const;

  NcclApi* const api_;
  NcclDevice* const device_;
  const int ranks_;
  const int rank_;
  NcclState state_ = NcclState::kWaiting;
  NcclComm comm_ = nullptr;
  std::shared_ptr<Operation> operation_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_COMMUNICATOR_H_
