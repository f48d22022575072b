// The mean of one vector over all ranks, as a state machine: messages in,
// messages out (the centralized baseline's gradients).
//
// One object serves one operation.  Which order messages arrive in, or how
// often, cannot change a bit of the result, and all ranks end with the same
// bits.  With a codec each rank contributes what the others decode of its
// vector (QSGD: Alistarh et al., NIPS 2017).  Knows nothing of transports,
// rounds, headers or time: the caller carries messages between ranks, resends
// what a broken connection may have lost, and gives up when a rank stays
// silent.

#ifndef GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_H_
#define GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/codec/codec.h"
#include "algorithms/codec/packer.h"
#include "algorithms/collective/all_reduce_schedule.h"
#include "algorithms/kernels/kernels.h"
#include "runtime/base/payload.h"

namespace gossamer {

class AllReduce {
 public:
  // Some floats of the vector, little-endian, or with a codec its payload, for
  // or from `rank` in `step`.
  struct Message {
    int rank = 0;
    uint32_t step = 0;
    Payload bytes;
  };
  // What the operation cannot go on without.
  struct Awaited {
    int rank = 0;
    uint32_t step = 0;
    friend bool operator==(const Awaited&, const Awaited&) = default;
  };

  // The names of all_reduce_schedule.h.
  static std::vector<std::string_view> Names();

  // The operation of `rank` in [0, size) over vectors of `n` floats, at most
  // kMaxFloats; the same name, size, n and codec at all ranks.  `codec`, of n
  // parameters and without replicas, needs a schedule that sends no sums on;
  // null: floats.  kInvalidArgument says which of these cannot be.
  static absl::StatusOr<AllReduce> Create(
      std::string_view name, int rank, int size, size_t n,
      std::shared_ptr<const Codec> codec = nullptr,
      const Kernels& kernels = HostKernels());
  static constexpr size_t kMaxFloats = size_t{1} << 30;

  // Contributes `vector` (n floats), which becomes the mean over all ranks once
  // done(); untouched by the caller until then.  Once.  Messages may come
  // before.  Values are not inspected: one that is not finite makes the mean so
  // at every rank, and all can skip the same step.  With a codec they are
  // finite and `key` chooses how they are rounded: errors of ranks with keys of
  // their own do not add up.
  void Start(std::span<float> vector, uint64_t key = 0);

  // A message of `rank`.  Steps may come early; each is kept (by reference)
  // until its turn, so at most what the schedule has this rank receive, ever.
  // Repeated ones are ignored.  kDataLoss, and nothing changes, if the schedule
  // has no such message, it has another size or it is no payload of the codec.
  absl::Status OnMessage(int rank, uint32_t step, Payload bytes);

  // Messages to send that have not been taken, in order.
  std::vector<Message> TakeOutgoing();
  // All messages for `rank` so far, to be sent again on a new connection.  Once
  // this rank has completed an operation that every rank started after this
  // one, nobody needs them any more (README.md).
  std::vector<Message> SentTo(int rank) const;

  // The vector holds the mean.
  bool done() const { return started_ && next_ == steps_.size(); }
  // The message that keeps a started operation from going on; nullopt if it is
  // done or not started.
  std::optional<Awaited> awaited() const;

 private:
  AllReduce(std::vector<AllReduceStep> steps, int size, size_t n,
            std::shared_ptr<const Codec> codec, const Kernels& kernels)
      : steps_(std::move(steps)),
        early_(steps_.size()),
        size_(size),
        n_(n),
        codec_(std::move(codec)),
        packer_(codec_ ? codec_->MakePacker() : nullptr),
        kernels_(&kernels) {}

  void Advance();
  void Send(uint32_t step);
  void Combine(uint32_t step);
  // With a codec: the own vector becomes what the others decode of it.
  void EncodeOwn(uint64_t key);
  // The payload that came as `bytes`.
  absl::StatusOr<Payload> Decodable(int rank, Payload bytes) const;

  std::vector<AllReduceStep> steps_;
  std::vector<Payload> early_;  // by step; empty: not here, or used
  int size_;
  size_t n_;
  std::shared_ptr<const Codec> codec_;  // null: floats
  std::unique_ptr<Packer> packer_;
  Payload own_payload_;  // with a codec: what travels
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
