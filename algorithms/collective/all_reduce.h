// The mean of one vector over all ranks, as a state machine: messages in,
// messages out (the centralized baseline's gradients).
//
// One object serves one operation.  Which order messages arrive in, or how
// often, cannot change a bit of the result, and all ranks end with the same
// bits.  This header knows nothing of gradients, transports, rounds, headers or
// time: the caller carries messages between ranks, resends what a broken
// connection may have lost, and gives up when a rank stays silent.

#ifndef GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_H_
#define GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/collective/all_reduce_form.h"
#include "algorithms/collective/all_reduce_schedule.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// One rank's part in one operation.  It holds the messages that came early and
// those that it has sent, so that a new connection gets again what the old one
// lost.
class AllReduce {
 public:
  // Some floats of the vector, little-endian, or a payload, or the leader's
  // own message, for or from `rank` in `step`.
  struct Message {
    int rank = 0;
    uint32_t step = 0;
    SharedBytes bytes;
  };
  // The message without which the operation cannot continue.
  struct Awaited {
    int rank = 0;
    uint32_t step = 0;
    friend bool operator==(const Awaited&, const Awaited&) = default;
  };

  // The names of all_reduce_schedule.h.
  static std::vector<std::string_view> Names();

  // The operation of `rank` in [0, size), of at most kMaxFloats; the same name,
  // size and form at all ranks.  Payloads need a schedule that sends no sums
  // on.  kInvalidArgument says which of these cannot be.
  static absl::StatusOr<AllReduce> Create(
      std::string_view name, int rank, int size, AllReduceForm form,
      const Kernels& kernels = HostKernels());
  static constexpr size_t kMaxFloats = size_t{1} << 30;

  // The message of this rank, which leads.  Once; may come before all else.
  void SetLeaderMessage(SharedBytes message);
  // The leader's message; empty until it is here.
  const SharedBytes& leader_message() const { return leader_message_; }
  // There is no leader, or its message is here: Start may be called.
  bool can_start() const {
    return form_.leader < 0 || !leader_message_.empty();
  }

  // Contributes `vector` (form.floats), which becomes the mean over all ranks
  // once done(); untouched by the caller until then.  Once, and only if
  // can_start().  Messages may come before.  Values are not inspected: one that
  // is not finite makes the mean so at every rank, and all can skip the same
  // step.  With payloads `own` is what counts, and what `vector` held is
  // overwritten.
  void Start(std::span<float> vector, SharedBytes own = {});

  // A message of `rank`.  Steps may come early; each is kept (by reference)
  // until its turn, so at most what the schedule has this rank receive, ever.
  // Repeated ones are ignored.  kDataLoss, and nothing changes, if the schedule
  // has no such message, it has another size or is none of this form.
  absl::Status OnMessage(int rank, uint32_t step, SharedBytes bytes);

  // Messages to send that have not been taken, in order.
  std::vector<Message> TakeOutgoing();
  // All messages for `rank` so far, to be sent again on a new connection.  Once
  // this rank has completed an operation that every rank started after this
  // one, no rank needs them any more (README.md).
  std::vector<Message> SentTo(int rank) const;

  bool started() const { return started_; }
  // The vector holds the mean.
  bool done() const { return started_ && next_ == steps_.size(); }
  // The message that keeps the operation from going on; nullopt if it is done,
  // or waits for Start or SetLeaderMessage here.
  std::optional<Awaited> awaited() const;

 private:
  AllReduce(std::vector<AllReduceStep> steps, int rank, int size,
            AllReduceForm form, const Kernels& kernels)
      : steps_(std::move(steps)),
        early_(steps_.size()),
        rank_(rank),
        size_(size),
        form_(std::move(form)),
        kernels_(&kernels) {}

  // The number on the wire of the first step of the schedule.
  uint32_t first_step() const { return form_.leader >= 0 ? 1 : 0; }
  absl::Status OnLeaderMessage(int rank, SharedBytes bytes);
  void Advance();
  void Send(uint32_t step);
  void Combine(uint32_t step);
  void Replace(std::span<const std::byte> bytes, std::span<float> part);

  std::vector<AllReduceStep> steps_;
  std::vector<SharedBytes> early_;  // by step; empty: not here, or used
  int rank_;
  int size_;
  AllReduceForm form_;
  SharedBytes leader_message_;
  SharedBytes own_payload_;   // as it travels
  SharedBytes own_accepted_;  // as it is added
  const Kernels* kernels_;
  std::span<float> vector_;
  std::vector<float> own_;  // what kReplaceKeepingOwn has put aside
  bool started_ = false;
  uint32_t next_ = 0;  // first step that is not complete
  uint32_t sent_steps_ = 0;
  std::vector<Message> sent_;
  size_t taken_ = 0;  // of sent_
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_H_
