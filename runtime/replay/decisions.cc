#include "runtime/replay/decisions.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "algorithms/collective/all_reduce.h"
#include "topology/view.h"

namespace gossamer {
namespace {

// A line is a word and whole numbers.
template <typename... Numbers>
std::string Line(std::string_view word, Numbers... numbers) {
  std::string line(word);
  ((absl::StrAppend(&line, " ", numbers)), ...);
  return line;
}

}  // namespace

absl::StatusOr<Decisions> Decisions::Replay(std::string_view lines) {
  Decisions decisions;
  decisions.replays_ = true;
  size_t number = 0;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(lines.data(), lines.size()), '\n')) {
    ++number;
    if (line.empty()) continue;
    const absl::Status read =
        decisions.Read(std::string_view(line.data(), line.size()));
    if (read.ok()) continue;
    // The line is a decision, but no run can follow it.
    if (absl::IsFailedPrecondition(read)) return read;
    return absl::DataLossError(absl::StrCat(
        "line ", number, " \"", line, "\" is no decision: ", read.message()));
  }
  return decisions;
}

// Reads one line of another process, possibly of another machine or release.
// An unknown word is refused rather than passed over: a decision that is left
// out replays another run.
absl::Status Decisions::Read(std::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(std::string(line), ' ');
  std::vector<uint64_t> n;
  for (size_t i = 1; i < words.size(); ++i) {
    if (!absl::SimpleAtoi(words[i], &n.emplace_back())) {
      return absl::DataLossError("a number is not one");
    }
  }
  const std::string& word = words[0];
  if (word == "members" && n.size() == 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "members came or went in round ", n[0],
        " of that run, which cannot be repeated: replay a run whose members "
        "stayed"));
  }
  if (word == "full" && n.size() == 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "that run's log was full at ", n[0],
        " bytes and ends there: replay a run with a larger --log-limit"));
  }
  // The numbers are counted before any is used.
  const bool two = word == "jump" || word == "overlap" || word == "skip";
  const bool three = word == "format" || word == "done";
  if (!(two && n.size() == 2) && !(three && n.size() == 3) &&
      !((word == "stop" || word == "all-reduce" || word == "nccl-end") &&
        n.size() == 1)) {
    return absl::DataLossError("another word, or not its numbers");
  }
  if (word == "jump") jumps_[n[0]] = n[1];
  if (word == "overlap") {
    // Values are checked against their bounds: the file may be anybody's, and
    // they become indices and windows.
    if (n[1] > static_cast<uint64_t>(kMaxOverlap)) {
      return absl::DataLossError("an overlap that is none");
    }
    overlaps_[n[0]] = static_cast<int>(n[1]);
  }
  if (word == "skip") skips_[{PeerId{n[0]}, n[1]}] = true;
  if (word == "format") {
    if (!IsValueFormat(n[2])) {
      return absl::DataLossError("a format that is none");
    }
    formats_[{PeerId{n[0]}, n[1]}] = static_cast<WireFormat>(n[2]);
  }
  if (word == "done") done_[{PeerId{n[0]}, n[1]}] = n[2];
  if (word == "all-reduce") {
    if (n[0] >= AllReduce::Names().size()) {
      return absl::DataLossError("an all-reduce that is none");
    }
    all_reduce_ = n[0];
  }
  if (word == "nccl-end") nccl_end_ = n[0];
  if (word == "stop") stop_ = n[0];
  return absl::OkStatus();
}

void Decisions::NoteJump(uint64_t round, uint64_t next) {
  Note(Line("jump", round, next));
}
uint64_t Decisions::Next(uint64_t round) const {
  const auto it = jumps_.find(round);
  // Only jumps are written, so a round without a line is followed by the next
  // one.
  return it == jumps_.end() ? round + 1 : it->second;
}

void Decisions::NoteOverlap(uint64_t round, int h) {
  Note(Line("overlap", round, h));
}
std::optional<int> Decisions::Overlap(uint64_t round) const {
  const auto it = overlaps_.find(round);
  if (it == overlaps_.end()) return std::nullopt;
  return it->second;
}

void Decisions::NoteSkip(PeerId peer, ExchangeId id) {
  Note(Line("skip", peer.value, id));
}
bool Decisions::Skips(PeerId peer, ExchangeId id) const {
  return skips_.contains({peer, id});
}

void Decisions::NoteFormat(PeerId peer, ExchangeId id, WireFormat format) {
  Note(Line("format", peer.value, id, static_cast<int>(format)));
}
std::optional<WireFormat> Decisions::Format(PeerId peer, ExchangeId id) const {
  // The last line of this peer counts, up to this exchange.
  auto it = formats_.upper_bound({peer, id});
  if (it == formats_.begin()) return std::nullopt;
  --it;
  if (it->first.first != peer) return std::nullopt;
  return it->second;
}

void Decisions::NoteDone(PeerId peer, uint64_t boundary, ExchangeId done) {
  Note(Line("done", peer.value, boundary, done));
}
// Without a line all exchanges that were due were complete, and a replay waits
// for them.
std::optional<ExchangeId> Decisions::Done(PeerId peer,
                                          uint64_t boundary) const {
  const auto it = done_.find({peer, boundary});
  if (it == done_.end()) return std::nullopt;
  return it->second;
}

void Decisions::NoteAllReduce(size_t index) { Note(Line("all-reduce", index)); }
void Decisions::NoteNcclEnd(uint64_t operation) {
  Note(Line("nccl-end", operation));
}
void Decisions::NoteMembers(uint64_t round) {
  Note(Line("members", round));
  // No line follows this one, so the log says by its end why it cannot be
  // replayed.
  members_ = true;
}
void Decisions::NoteStop(uint64_t round) { Note(Line("stop", round)); }

}  // namespace gossamer
