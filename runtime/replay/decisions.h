// A peer's decisions by the clock, as lines of a log, and the same decisions
// again: with them a run replays bit for bit whatever time does.
//
// Everything else follows from seed and configuration, so only what differs
// from a run without deadlines, jumps and choices is written.  This header
// knows nothing of files or of how decisions are made.

#ifndef GOSSAMER_RUNTIME_REPLAY_DECISIONS_H_
#define GOSSAMER_RUNTIME_REPLAY_DECISIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "algorithms/compress/codec.h"

namespace gossamer {

// A boundary is a call of Neighborhood::Complete, counted from 1 in a process.
class Decisions {
 public:
  using Write = std::function<void(const std::string& line)>;

  // Writes the decisions that it gets.
  explicit Decisions(Write write = nullptr) : write_(std::move(write)) {}
  // Repeats the decisions of `lines`. kDataLoss names the line that is none;
  // kFailedPrecondition: members came or went, or it was full before the end
  // (decision_log.h).
  static absl::StatusOr<Decisions> Replay(std::string_view lines);
  bool replays() const { return replays_; }

  // Notes that another round than the next one comes after `round`.
  void NoteJump(uint64_t round, uint64_t next);
  uint64_t Next(uint64_t round) const;
  // Notes h from this round on.
  void NoteOverlap(uint64_t round, int h);
  std::optional<int> Overlap(uint64_t round) const;
  // Notes an exchange of the row without a payload of this end.
  void NoteSkip(PeerId peer, ExchangeId id);
  bool Skips(PeerId peer, ExchangeId id) const;
  // Notes the format of payloads from exchange `id` on.
  void NoteFormat(PeerId peer, ExchangeId id, WireFormat format);
  std::optional<WireFormat> Format(PeerId peer, ExchangeId id) const;
  // Notes that only exchanges with `peer` below `done` were complete after this
  // boundary, though others were due.
  void NoteDone(PeerId peer, uint64_t boundary, ExchangeId done);
  std::optional<ExchangeId> Done(PeerId peer, uint64_t boundary) const;
  // Notes the all-reduce that was taken, by its place in AllReduce::Names().
  void NoteAllReduce(size_t index);
  std::optional<size_t> all_reduce() const { return all_reduce_; }
  // Notes the first mean that NCCL has brought to no member.
  void NoteNcclEnd(uint64_t operation);
  std::optional<uint64_t> nccl_end() const { return nccl_end_; }
  // Notes that members came or went in this round: the rounds after it depend
  // on the messages under way then.  A log with such a line is not replayed, so
  // it is the last one.
  void NoteMembers(uint64_t round);
  // Notes that the run was stopped before this round.
  void NoteStop(uint64_t round);
  uint64_t stop() const { return stop_; }

 private:
  using Place = std::pair<PeerId, uint64_t>;

  absl::Status Read(std::string_view line);
  void Note(const std::string& line) const {
    if (!members_ && write_) write_(line);
  }

  Write write_;
  bool members_ = false;  // came or went
  bool replays_ = false;
  std::map<uint64_t, uint64_t> jumps_;
  std::map<uint64_t, int> overlaps_;
  std::map<Place, ExchangeId> done_;
  std::map<Place, bool> skips_;
  std::map<Place, WireFormat> formats_;
  std::optional<size_t> all_reduce_;
  std::optional<uint64_t> nccl_end_;
  uint64_t stop_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_REPLAY_DECISIONS_H_
