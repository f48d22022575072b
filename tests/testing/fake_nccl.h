// NCCL and its devices in virtual time, with faults from a seed.
//
// Streams run their operations in order, and a pair takes place once it is
// first on both streams, as on real devices: pairs that are launched in orders
// that do not agree wait for each other for ever, and FakeNccl says so.  The
// first pair of two members also connects them.  This header knows nothing of
// transports.

#ifndef GOSSAMER_TESTS_TESTING_FAKE_NCCL_H_
#define GOSSAMER_TESTS_TESTING_FAKE_NCCL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/rng.h"
#include "runtime/base/event_loop.h"
#include "runtime/transport/nccl/nccl_api.h"

namespace gossamer {

struct FakeNcclOptions {
  uint64_t seed = 1;
  absl::Duration latency = absl::Microseconds(20);  // of an operation
  double bytes_per_second = 1e11;
  absl::Duration making = absl::Milliseconds(200);  // of a communicator
  absl::Duration connecting = absl::Milliseconds(100);
  // Probabilities per operation; that of a pair which connects has none of
  // these faults.  An operation that hangs holds up its streams until it is
  // aborted; a slow one takes `slow_factor` times as long.
  double hang = 0;
  double error = 0;
  double slow = 0;
  double slow_factor = 1000;
  // A sum that comes to some ranks, and is an error at the others.
  double partial = 0;
  // A pair that one end aborts, and that ends at the other as if all had come:
  // its last bytes have, the others are none of the body.
  double torn = 0;
  // Per communicator: it is never complete, its members never connected, or it
  // fails.
  double making_hang = 0;
  double connecting_hang = 0;
  double making_error = 0;
};

class FakeNccl {
 public:
  // One process: its NCCL, and the device that it runs on.  Destroying it is
  // the death of the process: operations with it hang.
  class Rank;

  // A process whose first operation waits for another process, with the name
  // that the operation carries.
  struct Wait {
    const Rank* who = nullptr;
    const Rank* on = nullptr;
    uint64_t name = 0;
  };
  using Circle = std::vector<Wait>;

  // `loop` outlives it.  `on_deadlock` is called if operations wait for each
  // other in a circle.
  FakeNccl(EventLoop* loop, FakeNcclOptions options,
           std::function<void(const Circle&)> on_deadlock = {});
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  // Two processes on one `device` cannot be in one communicator.
  std::unique_ptr<Rank> NewRank(const std::string& device, int version = 22809);

  // No operation begins to fail from now on.
  void Calm();
  // How often each fault has happened: "nccl_hangs", "nccl_errors",
  // "nccl_slow", "nccl_partial", "nccl_torn".
  const std::map<std::string, uint64_t, std::less<>>& faults() const {
    return faults_;
  }
  uint64_t operations() const { return operations_; }

 private:
  struct Comm;
  struct Member;
  struct Part;
  struct Step;

  void Join(uint64_t number, Rank* rank, int of, int place);
  void Progress(Rank* rank);
  void BeginPair(Rank* a, size_t a_part, Rank* b, size_t b_part);
  void BeginSum(Comm& comm);
  bool Ready(const Rank* rank, uint64_t comm) const;
  absl::Duration Fate(uint64_t comm, size_t bytes, bool* hangs, bool* fails);
  absl::Duration FateOfPair(const Step& step, const Part& part, size_t bytes,
                            bool* hangs, bool* fails);
  void Fail(uint64_t comm, NcclResult why);
  // Whether operations wait in a circle from the last one of `way` to the
  // first.
  bool FindCircle(const Rank* at, std::set<const Rank*>& seen, Circle& way);
  void LookForCircle(const Rank* from);
  void Forget(Rank* rank);

  EventLoop* const loop_;
  FakeNcclOptions options_;
  const std::function<void(const Circle&)> on_deadlock_;
  const RngKey key_;
  uint64_t ids_ = 0;
  uint64_t operations_ = 0;
  std::map<uint64_t, std::unique_ptr<Comm>> comms_;
  std::set<Rank*> ranks_;
  std::map<std::string, uint64_t, std::less<>> faults_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>();
};

class FakeNccl::Rank final : public NcclApi, public NcclDevice {
 public:
  Rank(FakeNccl* world, std::string device, int version);
  ~Rank() override;

  int version() const override { return version_; }
  std::string TextOf(NcclResult result) const override;
  NcclResult GetUniqueId(NcclUniqueId* id) override;
  NcclResult CommInitRank(NcclComm* comm, int ranks, const NcclUniqueId& id,
                          int rank) override;
  NcclResult CommGetAsyncError(NcclComm comm, NcclResult* error) override;
  NcclResult GroupStart() override;
  NcclResult GroupEnd() override;
  NcclResult Send(const void* from, size_t bytes, int rank, NcclComm comm,
                  void* stream) override;
  NcclResult Recv(void* to, size_t bytes, int rank, NcclComm comm,
                  void* stream) override;
  NcclResult AllReduce(const float* from, float* to, size_t count,
                       NcclComm comm, void* stream) override;
  // No thread is held up in virtual time, so nothing is aborted by itself.
  NcclResult Watch(NcclComm comm, absl::Duration patience) override;
  // As if this process had been held up, and its operation aborted meanwhile.
  void AbortUnwatched();
  // That of the last call; infinite without one.
  absl::Duration patience() const { return patience_; }
  void CommAbort(NcclComm comm, std::shared_ptr<void> buffers) override;

  void* stream() override { return this; }
  absl::Status Use() override { return absl::OkStatus(); }
  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) override;
  absl::StatusOr<std::shared_ptr<std::byte[]>> AllocateHost(
      size_t bytes) override;
  absl::Status CopyIn(void* to, std::span<const std::byte> from) override;
  absl::Status CopyOut(std::span<std::byte> to, const void* from) override;
  absl::StatusOr<bool> Idle() override;

 private:
  friend class FakeNccl;
  Part& Grouped(NcclComm comm, int rank);

  FakeNccl* const world_;
  const std::string device_;
  const int version_;
  void Tear(const Step& aborted);

  absl::Duration patience_ = absl::InfiniteDuration();
  bool unwatched_ = false;
  bool in_group_ = false;
  std::deque<std::shared_ptr<Step>> group_;  // a step for each communicator
  std::deque<std::shared_ptr<Step>> stream_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_FAKE_NCCL_H_
