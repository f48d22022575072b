// The exact mean of one vector of every member by NCCL's all-reduce, where all
// members of a run are on GPUs that NCCL can join.
//
// Operations follow one another and are never given up by one member alone:
// whatever NCCL does, every member has the mean of an operation, the same bits,
// or all of them learn that none has it and take another way (sum_agreement.h).
// This header knows nothing of what the vectors are.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_SUM_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_SUM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/collective/sum_agreement.h"
#include "algorithms/kernels/device_queue.h"
#include "runtime/base/event_loop.h"
#include "runtime/transport/nccl/nccl_api.h"
#include "runtime/transport/nccl/nccl_communicator.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/event_kind.h"
#include "topology/view.h"

namespace gossamer {

struct NcclSumOptions {
  PeerId self;
  // The watchdog: no operation that all members have begun takes longer.
  absl::Duration deadline = absl::Seconds(1);
  // All members make the communicator within this time, or give it up.  NCCL
  // connects in the first operation, which has as long.
  absl::Duration making = absl::Seconds(30);
  // Between two polls of what is under way.
  absl::Duration poll = absl::Microseconds(50);
  std::function<void(EventKind kind, const std::string& detail)> report = {};
};

// All calls are made on the loop, but for Contribute.
class NcclSum {
 public:
  // The pointers outlive it.  The vectors lie on the device of `queue`.
  NcclSum(EventLoop* loop, Transport* transport, NcclApi* api,
          NcclDevice* device, const DeviceQueue& queue, NcclSumOptions options);
  NcclSum(const NcclSum&) = delete;
  NcclSum& operator=(const NcclSum&) = delete;
  ~NcclSum();

  // Called whenever an answer below may have changed.
  void SetOnChange(std::function<void()> changed) {
    changed_ = std::move(changed);
  }
  // Begins to make the communicator of the view's members, whose first
  // operation is `first`; does nothing unless NCCL can join all of them.  Once.
  void SetView(const View& view, uint64_t first);

  // Some member may have the mean of `operation` from NCCL.
  bool Possible(uint64_t operation) const {
    return agreement_.has_value() && agreement_->Possible(operation);
  }
  // One operation: Contribute, and once that has returned Start.
  //
  // This member's part, which is copied; as many values at all members.  Empty:
  // `size` zeros.  Blocks until the copy is made; may run on another thread,
  // while frames come.
  void Contribute(DeviceSpan<const float> vector, size_t size);
  void Start(uint64_t operation);
  bool done() const { return agreement_.has_value() && agreement_->done(); }
  // The mean of an operation that is done; valid until the next Start.
  DeviceSpan<const float> Mean() const { return current_->span(); }
  // The queue is one thread's at a time.  An operation has begun, by whichever
  // way, or the last one is over: it is the loop's, and members get the means
  // that they lack.
  void TakeQueue();
  // An operation is done: it is the compute engine's again.
  void ReleaseQueue() { queue_taken_ = false; }
  // The members that an operation under way waits for, as "peer 1, peer 4"; or
  // "NCCL".
  std::string Awaited() const;

  // A frame for whose step IsNcclMessage holds.  kDataLoss if it is none of
  // this operation's; nothing has changed then.
  absl::Status OnFrame(PeerId peer, uint64_t operation, uint32_t step,
                       const SharedBytes& body);
  // A new connection: what the other may have missed goes out again.
  void OnUp(PeerId peer);

 private:
  using Vector = std::shared_ptr<DeviceVector<float>>;

  PeerId member(int rank) const { return members_[static_cast<size_t>(rank)]; }
  void Tell(PeerId to, uint64_t operation, uint32_t step,
            SharedBytes body = {});
  void TellAll(uint64_t operation, uint32_t step);
  void TakeId(const NcclUniqueId& id);
  // Sends a rank the mean that it lacks, if this member has it: now, or once
  // the queue is not the compute engine's.
  void GiveTo(int rank);
  void Launch();
  void Poll();
  void Arm();
  // This member gives NCCL up.
  void Fail(NcclEvent event, const std::string& why);
  // NCCL has failed here or at another member.
  void OnFailure();
  void Report(EventKind kind, const std::string& detail) const;

  EventLoop* const loop_;
  Transport* const transport_;
  NcclApi* const api_;
  NcclDevice* const device_;
  const DeviceQueue queue_;
  const NcclSumOptions options_;
  std::function<void()> changed_;
  // By rank; empty: NCCL cannot join them.
  std::vector<PeerId> members_;
  int rank_ = 0;
  std::optional<SumAgreement> agreement_;
  std::unique_ptr<NcclCommunicator> comm_;
  std::optional<NcclUniqueId> id_;
  absl::Time since_;  // the communicator began to be made
  uint64_t first_ = 0, operation_ = 0;
  NcclEvent why_ended_ = NcclEvent::kFailed;
  bool pending_ = false;  // started, and not launched yet
  // The time from which the operation under way has been held up by no member.
  absl::Time begun_ = absl::InfiniteFuture();
  // Of the operation before, whose mean a member may lack; of the one under
  // way; of the next one.
  Vector previous_, current_, next_;
  bool queue_taken_ = false;  // by the loop
  std::set<int> owed_;        // ranks that wait for a mean until it is
  bool armed_ = false;
  // Callbacks on the loop hold it weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_SUM_H_
