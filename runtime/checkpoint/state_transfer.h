// The transfer of first parameters from members to a peer that joins.
//
// The joiner asks; a member freezes its state between two steps and offers it;
// the joiner gets it chunk by chunk, as many at a time as the link to it holds,
// each with a checksum, the whole with a SHA-256.  A connection that is lost
// for less than half a minute loses nothing but chunks under way, which are
// asked for again.  It takes the median of three members' states, or the
// average of two, one member after the other, so that it begins near the
// fleet's mean and holds one download and two states at most (peer_state.h).  A
// member holds one frozen state, for as long as a joiner reads it.  Pure:
// frames in, frames out, and what takes long handed out; knows nothing of what
// a state is made of.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_STATE_TRANSFER_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_STATE_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/peer_state.h"
#include "runtime/transport/transport.h"

namespace gossamer {

inline constexpr size_t kStateChunkBytes = size_t{256} << 10;

// False if there is no connection.
using SendState = std::function<bool(PeerId, Frame)>;

class StateDonor {
 public:
  explicit StateDonor(SendState send) : send_(std::move(send)) {}

  // Sets the joiners; no other peer is answered.
  void Serve(std::set<PeerId> joiners);
  void OnFrame(PeerId peer, const Frame& frame, absl::Time now);
  // A joiner asks and there is no frozen state for it: freeze one as soon as no
  // step is under way.
  bool wanted() const { return !asking_.empty() && !frozen_ && !preparing_; }
  // One is being made: none is wanted until it is offered.
  void Prepare() { preparing_ = true; }
  // None can be made: none is wanted until a joiner asks again.
  void Refuse() { asking_.clear(); }
  // `bytes` as EncodeState makes them; `hash` of them.
  void Offer(std::vector<std::byte> bytes, std::string hash, absl::Time now);
  // Forgets a frozen state that nobody has read from for a while, or that is
  // old: the fleet is elsewhere by now.
  void Tick(absl::Time now);
  // Bytes of the frozen state.
  size_t held() const { return frozen_ ? frozen_->bytes.size() : 0; }

 private:
  struct FrozenState {
    uint64_t number = 0;
    SharedBytes bytes;
    std::string hash;
    absl::Time taken;
    absl::Time used;
  };
  void Report(PeerId peer);

  const SendState send_;
  std::set<PeerId> joiners_;
  std::set<PeerId> asking_;
  uint64_t taken_ = 0;
  std::optional<FrozenState> frozen_;
  bool preparing_ = false;
};

class StateCollector {
 public:
  // An error for a state that cannot be one of this run.  Part of the work.
  using Check = std::function<absl::Status(const Checkpoint&)>;
  // Does `work`, wherever, and `done` afterwards on the loop.
  using Compute = std::function<void(std::function<void()> work,
                                     std::function<void()> done)>;

  // `max_bytes`: of one state.  `limit`: for all downloads.  One donor gets a
  // third of it, or more if it will finish well within the whole.  After half
  // of it the states received so far suffice.
  StateCollector(SendState send, Compute compute, size_t max_bytes,
                 absl::Duration limit, Check check)
      : send_(std::move(send)),
        compute_(std::move(compute)),
        max_bytes_(max_bytes),
        limit_(limit),
        check_(std::move(check)) {}

  // Members to get states from; one that has given or failed stays so.
  void SetDonors(const std::vector<PeerId>& donors, absl::Time now);
  void OnFrame(PeerId peer, const Frame& frame, absl::Time now);
  // To be called a few times a second: asks again, and gives up a member that
  // has not got on for a while, or takes too long.
  void Tick(absl::Time now);

  // Three donors have given their states, or every one that is known has given
  // or failed, or half the limit is over; and one at least has given it.
  bool done() const;
  int given() const { return given_; }
  // Bytes of the state that it gets and of the median.
  size_t held() const;
  // Returns the median of the states that were given; called once, when done().
  Checkpoint Take();
  // Returns the reasons for which members were given up, for people.
  std::vector<std::string> TakeFailures() { return std::move(failures_); }

 private:
  // The state that comes from one member.
  struct Download {
    PeerId from;
    uint64_t number = 0;  // 0: nothing offered yet
    int offers = 0;
    std::string hash;
    size_t size = 0;
    std::vector<std::byte> bytes;
    std::vector<bool> have;
    size_t missing = 0;
    size_t next = 0;  // the first chunk not asked for
    std::map<size_t, absl::Time> under_way;
    size_t window = 0;                                  // as many at most
    absl::Duration fastest = absl::InfiniteDuration();  // chunk
    absl::Time begun;                                   // or offered
    absl::Time progress;
    absl::Time asked;
  };
  // A whole state, to be checked apart from the loop.
  struct Whole {
    std::vector<std::byte> bytes;
    std::string hash;
    Check check;
    StateMedian median;
    absl::Status status;
    void Verify();
  };
  void Begin(absl::Time now);
  void Ask(absl::Time now);
  void AskForChunks(absl::Time now);
  absl::Status OnOffer(std::span<const std::byte> head, absl::Time now);
  void OnChunk(const Frame& frame, absl::Time now);
  void Complete();
  void OnVerified(Whole& whole);
  void Fail(const absl::Status& why, absl::Time now);
  absl::Duration LimitOf(const Download& download, absl::Time now) const;

  const SendState send_;
  const Compute compute_;
  const size_t max_bytes_;
  const absl::Duration limit_;
  const Check check_;
  std::vector<PeerId> donors_;
  std::set<PeerId> over_;  // given or failed
  absl::Time begun_ = absl::InfiniteFuture();
  bool enough_ = false;  // the states received so far suffice
  std::optional<Download> download_;
  // A whole state is being verified, and the median is with it.
  bool verifying_ = false;
  size_t verified_ = 0;  // bytes of both
  absl::Time now_;       // of the last call
  int given_ = 0;
  StateMedian median_;
  std::vector<std::string> failures_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_STATE_TRANSFER_H_
