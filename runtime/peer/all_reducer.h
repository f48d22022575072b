// The mean gradients of one peer, one after the other, over its transport: what
// the compressor makes of its own, carried by an all-reduce; of the known
// schedules the one that is fastest here, if it may choose.  Dense gradients of
// GPUs that NCCL can join are NCCL's to sum, until it fails.
//
// Keeps what was sent until nobody can need it and sends it again on a new
// connection, so a lost connection costs time and nothing else.  This header
// knows nothing of steps or parameters.

#ifndef GOSSAMER_RUNTIME_PEER_ALL_REDUCER_H_
#define GOSSAMER_RUNTIME_PEER_ALL_REDUCER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/ids.h"
#include "algorithms/collective/all_reduce.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/kernels/device_queue.h"
#include "runtime/transport/nccl/nccl_sum.h"
#include "runtime/transport/transport.h"
#include "topology/view.h"

namespace gossamer {

class AllReducer {
 public:
  // All outlive it; `nccl_sum` may be null.  Gradients lie on the queue's
  // device.
  AllReducer(Transport* transport, NcclSum* nccl_sum, const DeviceQueue& queue)
      : transport_(transport), nccl_sum_(nccl_sum), queue_(queue) {}

  // Instead of a schedule's name: the first operations try each of them, and
  // all members go on with the one that took the least time on average.
  static constexpr std::string_view kAuto = "auto";
  // The one schedule that carries payloads.
  static constexpr std::string_view kOfPayloads = "all-gather";
  // The one to go on with, by its place in AllReduce::Names(), whatever the
  // others take: at a replay.
  void Prefer(size_t index) { preferred_ = index; }
  // NCCL sums no operation from this one on: the same.
  void EndNccl(uint64_t operation) { nccl_end_ = operation; }

  // The members of the view, this one at `rank`; `first` is the first
  // operation.  `compressor` outlives it; alone a peer compresses nothing.
  // kInvalidArgument as of AllReduce::Create, or if a compressor that does not
  // sum is to choose a schedule.
  absl::Status SetMembers(const std::string& name, int rank, const View& view,
                          uint64_t first, const ParameterLayout& layout,
                          GradientCompressor* compressor);

  // One operation: Begin, Start, and once it is done Mean and
  // SendNextLeaderMessage; they count up by one, at every member alike.  Begin,
  // Encode and Mean may run on another thread, while frames come, and may wait
  // for the device.
  //
  // NCCL may sum this operation.
  bool ByNccl(uint64_t operation) const;
  // This peer's gradient, as it is until Mean; empty: it contributes nothing.
  // The same if the compressor does not accept it: false.  `by_nccl` is what
  // ByNccl() has said.
  bool Begin(uint64_t operation, DeviceSpan<const float> gradient,
             bool by_nccl);
  void Start(uint64_t operation);
  bool done() const {
    return by_nccl_ ? nccl_sum_->done() : current_ && current_->done();
  }
  // The operation that is under way was NCCL's, and no member has its mean:
  // Encode, and then Restart, which sends.
  bool nccl_failed() const { return by_nccl_ && !ByNccl(operation_); }
  bool Encode();
  void Restart();
  // The mean of an operation that is done; valid until the next Begin.
  DeviceSpan<const float> Mean();
  // A member has announced its end before this operation: it will not be done.
  bool Abandoned(uint64_t operation) const { return operation >= ended_at_; }
  // After Mean: sends the next operation's leader message, if this peer leads
  // it and can say it already.
  void SendNextLeaderMessage();
  // The peer whose message a started operation waits for, as "peer 3".
  std::string Awaited() const;
  // An operation that will not be done has changed what the compressor keeps.
  bool residual_lost() const {
    return current_ && !done() && compressor_->has_residual();
  }
  // The operation is done and took so long here.
  void Finish(double seconds);

  // The last operation is done here: tells all members, on every new connection
  // again.
  void AnnounceEnd();
  // Members that have not announced their end: they may still need what this
  // one has sent.
  std::vector<PeerId> NotEnded() const;

  // The schedule of all operations from some one on; empty until it is known.
  const std::string& chosen() const { return chosen_; }
  // Mean seconds over the members, by schedule tried, once one is chosen.
  const std::map<std::string, double>& tried() const { return tried_; }

  // kDataLoss if the frame is not of this run's collectives; it is dropped.
  absl::Status OnFrame(PeerId peer, const Frame& frame);
  // A new connection: whatever the other may have missed goes out again.
  void OnUp(PeerId peer);

 private:
  // Every operation but the first of each schedule counts: that one also
  // connects.
  static constexpr uint64_t kTrials = 3;
  uint64_t trial_operations() const;
  std::string ScheduleOf(uint64_t operation) const;
  AllReduce Make(uint64_t operation) const;
  ReduceContext ContextOf(uint64_t operation) const;
  void Contribute();
  void Send();
  void Choose();
  void SendTo(int rank, uint64_t operation, const AllReduce::Message& m);
  void SendFin(PeerId peer);
  void SendOutgoing(AllReduce& op, uint64_t operation);

  Transport* const transport_;
  NcclSum* const nccl_sum_;
  const DeviceQueue queue_;
  std::string name_;
  int rank_ = 0;
  std::vector<PeerId> members_;
  std::unique_ptr<GradientCompressor> dense_;
  GradientCompressor* compressor_ = nullptr;
  uint64_t first_ = 0;
  std::string chosen_;
  std::optional<size_t> preferred_;
  // The least time of this peer by schedule, in the order of
  // AllReduce::Names(); every operation of the trial carries them.
  std::vector<float> seconds_;
  std::map<std::string, double> tried_;
  uint64_t nccl_end_ = ~uint64_t{0};
  bool by_nccl_ = false;  // the operation under way
  // What Begin has been given.
  uint64_t begun_ = 0;
  bool begun_by_nccl_ = false;
  DeviceSpan<const float> gradient_;
  std::vector<float> host_gradient_;  // of a device
  std::vector<float> vector_;         // what is contributed, then seconds_
  SharedBytes payload_;               // or this
  DeviceVector<float> mean_;          // of a device
  bool contributed_ = false;
  SharedBytes leader_message_;  // of this peer, to be sent
  bool announced_end_ = false;
  std::set<PeerId> ended_;            // members that have announced their end
  uint64_t ended_at_ = ~uint64_t{0};  // the first that a member has no part in
  // The last operation whose leader message was sent before its Begin.
  uint64_t sent_ahead_ = ~uint64_t{0};
  uint64_t operation_ = 0;
  std::optional<AllReduce> current_;
  // The one before: a member may still be in it.  The one after: a member may
  // already be in it.  Nobody is further away, since every operation needs
  // every member.
  std::optional<AllReduce> previous_;
  std::optional<AllReduce> next_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_ALL_REDUCER_H_
