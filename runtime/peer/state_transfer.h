// How a peer that joins gets its first parameters from members.
//
// It asks; a member freezes its state between two steps and offers it;
// the joiner gets it chunk by chunk, a few at a time, each with a checksum, the
// whole with a SHA-256.  Lost connections lose nothing but chunks under way,
// which are asked for again.  It averages over the members that gave all of
// theirs, one after the other, so that it begins near the fleet's mean and
// holds one state and one sum at most.  A member holds one snapshot, for as
// long as somebody reads it.  Pure: frames in, frames out; knows nothing of
// what a state is made of.

#ifndef GOSSAMER_RUNTIME_PEER_STATE_TRANSFER_H_
#define GOSSAMER_RUNTIME_PEER_STATE_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/ids.h"
#include "runtime/base/payload.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/snapshot.h"
#include "runtime/transport/transport.h"

namespace gossamer {

inline constexpr size_t kStateChunkBytes = size_t{256} << 10;

// False if there is no connection.
using SendState = std::function<bool(PeerId, Frame)>;

class StateDonor {
 public:
  explicit StateDonor(SendState send) : send_(std::move(send)) {}

  // Only these are answered.
  void Serve(std::set<PeerId> joiners);
  void OnFrame(PeerId peer, const Frame& frame, absl::Time now);
  // Somebody asks and there is no snapshot for them: take one as soon as no
  // step is under way.
  bool wanted() const { return !asking_.empty() && !snapshot_ && !preparing_; }
  // One is being made: none is wanted until it is offered.
  void Prepare() { preparing_ = true; }
  // None can be made: none is wanted until somebody asks again.
  void Refuse() { asking_.clear(); }
  // `bytes` as EncodeSnapshot makes them; `hash` of them.
  void Offer(std::vector<std::byte> bytes, std::string hash, absl::Time now);
  // Forgets a snapshot that nobody has read from for a while.
  void Tick(absl::Time now);
  // Bytes of the snapshot.
  size_t held() const { return snapshot_ ? snapshot_->bytes.size() : 0; }

 private:
  struct Snapshot {
    uint64_t number = 0;
    Payload bytes;
    std::string hash;
    absl::Time used;
  };
  void Tell(PeerId peer);

  const SendState send_;
  std::set<PeerId> joiners_;
  std::set<PeerId> asking_;
  uint64_t taken_ = 0;
  std::optional<Snapshot> snapshot_;
  bool preparing_ = false;
};

class StateCollector {
 public:
  // An error for a state that cannot be one of this run.
  using Check = std::function<absl::Status(const Checkpoint&)>;

  // `most`: bytes that a state may have.  `limit`: for all of it; one member
  // has a third at most, and once half is over what has been given will do.
  StateCollector(SendState send, size_t most, absl::Duration limit, Check check)
      : send_(std::move(send)),
        most_(most),
        limit_(limit),
        check_(std::move(check)) {}

  // Whom to get states from; who has given or failed stays so.
  void SetDonors(const std::vector<PeerId>& donors, absl::Time now);
  void OnFrame(PeerId peer, const Frame& frame, absl::Time now);
  // To be called a few times a second: asks again, and gives up a member that
  // has not got on for a while, or takes too long.
  void Tick(absl::Time now);

  // Three donors have given their states, or every one has given or failed, or
  // half the limit is over; and one at least has given it.
  bool done() const;
  int given() const { return middle_.given(); }
  // Bytes of the state that it gets and of the middle.
  size_t held() const;
  // The middle of those given; once, when done().
  Checkpoint Take();
  // Why members were given up, for people.
  std::vector<std::string> TakeFailures() { return std::move(failures_); }

 private:
  // From one member.
  struct Download {
    PeerId from;
    uint64_t snapshot = 0;  // 0: nothing offered yet
    int offers = 0;
    std::string hash;
    std::vector<std::byte> bytes;
    std::vector<bool> have;
    size_t missing = 0;
    absl::Time begun;  // or offered
    absl::Time progress;
    absl::Time asked;
  };
  void Begin(absl::Time now);
  void Ask(absl::Time now);
  absl::Status OnOffer(std::span<const std::byte> head, absl::Time now);
  absl::Status OnChunk(const Frame& frame, absl::Time now);
  absl::Status Complete();
  void Fail(const absl::Status& why, absl::Time now);
  absl::Duration LimitOf(const Download& download) const;

  const SendState send_;
  const size_t most_;
  const absl::Duration limit_;
  const Check check_;
  std::vector<PeerId> donors_;
  std::set<PeerId> over_;  // given or failed
  absl::Time begun_ = absl::InfiniteFuture();
  bool enough_ = false;  // what has been given will do
  std::optional<Download> download_;
  StateMiddle middle_;
  std::vector<std::string> failures_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_STATE_TRANSFER_H_
