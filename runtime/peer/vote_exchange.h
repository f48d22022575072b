// The messages of one peer of a run that learns from votes: the student's
// questions to all groups of teachers and the exact sum of their answers, or a
// group's answer to each question.
//
// A message that a lost connection may have lost is sent again on a new one; a
// repeated one changes nothing.  This header knows nothing of noise, budgets or
// networks.

#ifndef GOSSAMER_RUNTIME_PEER_VOTE_EXCHANGE_H_
#define GOSSAMER_RUNTIME_PEER_VOTE_EXCHANGE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/game/game.h"
#include "algorithms/privacy/settings.h"
#include "algorithms/privacy/vote_message.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class VoteExchange {
 public:
  // Operations are numbered by the steps before them.  All outlive it.
  VoteExchange(const DataLensSettings& settings, const VotingRole& role,
               Transport* transport)
      : settings_(settings), role_(role), transport_(transport) {}

  // `members` by rank, the first of them the student; `first` is the operation
  // that comes.  Members stay the same: further calls change nothing.
  void SetMembers(const std::vector<PeerId>& members, uint64_t first);

  // The student: sends the question of the operation that comes; once all
  // groups have answered, `sums` are [labels, dimensions] until the next.
  void Ask(const ImageBatch& batch);
  bool answered() const { return asked_ && awaited_.empty(); }
  std::span<const int32_t> sums() const { return sums_; }

  // A group: the question of the operation that comes, once it is here, and the
  // answer to it.
  const std::optional<ImageBatch>& question() const { return question_; }
  void Answer(std::span<const int16_t> votes);

  // The other side has announced its end before the operation that comes.
  bool Abandoned() const { return ended_at_ <= Upcoming(); }
  // The peers whose message is awaited, as "peer 2, 3".
  std::string Awaited() const;
  // Tells all, on every new connection again, that this peer takes part in
  // nothing that comes.
  void AnnounceEnd();
  // The others that have not announced their end.
  std::vector<PeerId> NotEnded() const;

  // kDataLoss if the frame is not of this exchange; it is dropped.
  absl::Status OnFrame(PeerId peer, const Frame& frame);
  void OnUp(PeerId peer);

 private:
  absl::Status TakeQuestion(uint64_t operation, const Frame& frame);
  absl::Status TakeVotes(PeerId peer, uint64_t operation, const Frame& frame);
  void Send(PeerId peer, uint64_t operation, uint32_t step, SharedBytes body);
  void SendFin(PeerId peer);
  bool student() const { return role_.student != nullptr; }
  // The operation that comes, or that still waits for answers.
  uint64_t Upcoming() const { return operation_ + (answered() ? 1 : 0); }

  const DataLensSettings& settings_;
  const VotingRole& role_;
  Transport* const transport_;
  // The peers that this one exchanges with, and how many teachers each has.
  std::map<PeerId, int> others_;
  uint64_t operation_ = 0;  // under way at the student, to come at a group
  bool asked_ = false;
  SharedBytes last_;          // the question under way, or the last answer
  std::set<PeerId> awaited_;  // the groups that owe their votes
  std::vector<int32_t> sums_;
  std::optional<ImageBatch> question_;
  bool announced_end_ = false;
  std::set<PeerId> ended_;
  uint64_t ended_at_ = ~uint64_t{0};  // the first that another has no part in
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_VOTE_EXCHANGE_H_
