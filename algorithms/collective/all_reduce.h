// The mean of one vector over all ranks, as a state machine: messages in,
// messages out (the centralized baseline's gradients).
//
// One object serves one operation.  Which order messages arrive in, or how
// often, cannot change a bit of the result, and all ranks end with the same
// bits.  Knows nothing of transports, rounds, headers or time: the caller
// carries messages between ranks, resends what a broken connection may have
// lost, and gives up when a rank stays silent.

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
#include "algorithms/kernels/kernels.h"
#include "runtime/base/payload.h"

namespace gossamer {

class AllReduce {
 public:
  // Some floats of the vector, little-endian, for or from `rank` in `step`.
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

  // ring: reduce-scatter, then all-gather; 2(M−1) steps, each rank sends
  // 2n(M−1)/M floats, whatever M (Patarasuk, Yuan, JPDC 2009).
  // recursive-doubling: ⌊log₂ M⌋ steps of n floats, two more if M is no power
  // of two (Thakur, Rabenseifner, Gropp, IJHPCA 2005, sections 2 and 4).
  static std::vector<std::string_view> Names();

  // The operation of `rank` in [0, size) over vectors of `n` floats, at most
  // kMaxFloats; the same name, size and n at all ranks.  kInvalidArgument says
  // which of these cannot be.
  static absl::StatusOr<AllReduce> Create(
      std::string_view name, int rank, int size, size_t n,
      const Kernels& kernels = HostKernels());
  static constexpr size_t kMaxFloats = size_t{1} << 30;

  // Contributes `vector` (n floats), which becomes the mean over all ranks once
  // done(); untouched by the caller until then.  Once.  Messages may come
  // before.  Values are not inspected: one that is not finite makes the mean so
  // at every rank, and all can skip the same step.
  void Start(std::span<float> vector);

  // A message of `rank`.  Steps may come early; each is kept (by reference)
  // until its turn, so at most what the schedule has this rank receive, ever.
  // Repeated ones are ignored.  kDataLoss, and nothing changes, if the schedule
  // has no such message or it has another size.
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
  struct Transfer {
    int rank = 0;
    size_t offset = 0;  // in floats
    size_t size = 0;    // 0: nothing is sent
  };
  enum class Combine : uint8_t {
    kAdd,
    kAddLast,  // the sum is complete: divide it, too
    kReplace,
  };
  // First the sending, then the receiving.
  struct Step {
    Transfer send;
    Transfer receive;
    Combine combine = Combine::kAdd;
  };

  AllReduce(std::vector<Step> steps, int size, size_t n, const Kernels& kernels)
      : steps_(std::move(steps)),
        early_(steps_.size()),
        size_(size),
        n_(n),
        kernels_(&kernels) {}

  static std::vector<Step> RingSteps(int rank, int size, size_t n);
  static std::vector<Step> RecursiveDoublingSteps(int rank, int size, size_t n);

  void Advance();
  void Send(uint32_t step);
  void Receive(uint32_t step);

  std::vector<Step> steps_;
  std::vector<Payload> early_;  // by step; empty: not here, or used
  int size_;
  size_t n_;
  const Kernels* kernels_;
  std::span<float> vector_;
  bool started_ = false;
  uint32_t next_ = 0;  // first step that is not complete
  uint32_t sent_steps_ = 0;
  std::vector<Message> sent_;
  size_t taken_ = 0;  // of sent_
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COLLECTIVE_ALL_REDUCE_H_
