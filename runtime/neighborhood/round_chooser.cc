#include "runtime/neighborhood/round_chooser.h"

#include <algorithm>

namespace gossamer {
namespace {

// A lead that stays equal for so many rounds is the other's pace, not a
// moment's delay.
constexpr size_t kSteadyRounds = 16;
constexpr uint64_t kJitter = 1;  // of a lead, over so many rounds
// No peer of a fleet is really this many times faster than another.
constexpr uint64_t kTimesFaster = 16;

// The distance in rounds, from this peer's next one, up to which neighbours are
// not far ahead: without missed deadlines they never are (PROTOCOL.md 11).
uint64_t MostApart(int overlap, const RoundsSeen& seen) {
  return static_cast<uint64_t>(overlap) + 2 + seen.idle;
}

}  // namespace

void RoundChooser::Answered(uint64_t round) {
  answered_ = {answered_[1], Answer{round, made_}};
}

// A round is believed if two peers have reached it, also by the service's word
// and with the rounds that they made since.  Rounds that this peer has passed
// over do not count as made: otherwise each jump that one peer brings about
// would vouch for the next.
uint64_t RoundChooser::Believed(uint64_t round, int overlap, uint64_t since,
                                const RoundsSeen& seen) {
  ++made_;
  if (seen.pair) return UINT64_MAX;
  uint64_t sure = round;
  if (seen.heard.size() >= 2) {
    sure = std::max(sure, seen.heard[seen.heard.size() - 2]);
  }
  if (seen.second) {
    const uint64_t made = answered_[0] ? made_ - answered_[0]->made : 0;
    sure = std::max(sure, *seen.second + std::min(since, kTimesFaster * made));
  }
  sure += MostApart(overlap, seen) + 1;  // who follows goes one round beyond
  alone_ = seen.heard.back() >= sure ? alone_ + 1 : 0;
  return sure + kTimesFaster * alone_;
}

std::optional<uint64_t> RoundChooser::Steady(uint64_t next, int overlap,
                                             const RoundsSeen& seen) {
  const uint64_t in_step =
      next + static_cast<uint64_t>(std::max(1, overlap)) + seen.idle;
  uint64_t furthest = seen.heard.back();
  if (furthest <= next + MostApart(overlap, seen)) {
    furthest =
        seen.static_graph && !seen.missing.empty() ? seen.missing.back() : 0;
    if (furthest + 1 < in_step) {
      leads_.clear();
      return std::nullopt;
    }
  }
  leads_.push_back(furthest - next);
  if (leads_.size() <= kSteadyRounds) return std::nullopt;
  leads_.pop_front();
  // A neighbour that gains runs away; one that loses waits for this peer.
  const auto [less, more] = std::minmax(leads_.front(), leads_.back());
  if (more - less > kJitter) return std::nullopt;
  return furthest + 1;
}

// Returns the round, up to the target, for which most neighbours' payloads
// wait; of equal ones the latest.
uint64_t RoundChooser::ChooseAmongWaiting(uint64_t next, uint64_t target,
                                          const RoundsSeen& seen) {
  uint64_t best = target;
  size_t most = 0;
  for (auto at = std::ranges::lower_bound(seen.waiting, next);
       at != seen.waiting.end() && *at <= target;) {
    // Later rounds win a tie: they are nearer to the target.
    const auto end = std::upper_bound(at, seen.waiting.end(), *at);
    const auto count = static_cast<size_t>(end - at);
    if (count >= most) {
      most = count;
      best = *at;
    }
    at = end;
  }
  return best;
}

uint64_t RoundChooser::Next(uint64_t round, int overlap,
                            const RoundsSeen& seen) {
  const uint64_t next = round + 1;
  // Without neighbours that have been heard there is nowhere to go.
  if (seen.heard.empty()) return next;
  // The service's word is up to two heartbeats old: the others' reports and its
  // answer.  Meanwhile they went on, as this peer did.
  const uint64_t then = answered_[0] ? answered_[0]->round : round;
  const uint64_t since = round - std::min(round, then);
  const uint64_t believed = Believed(round, overlap, since, seen);
  // With fixed neighbours most of them have to be there.  With random
  // neighbours a peer has few at a time, and two that agree do.
  uint64_t target = seen.heard[seen.heard.size() / 2];
  if (!seen.static_graph && seen.heard.size() >= 2) {
    target = seen.heard[seen.heard.size() - 2];
  }
  const auto steady = Steady(next, overlap, seen);
  if (steady) target = std::max(target, *steady);
  // The service bounds a jump by the fleet's largest round and the rounds made
  // since its answer.
  if (seen.fleet) target = std::min(target, *seen.fleet + since);
  if (target > believed) {
    target = seen.heard.size() < 2 ? 0 : seen.heard[seen.heard.size() - 2];
  }
  // Two groups of a fleet that is not complete may be rounds apart though
  // nobody at their border has enough neighbours ahead.
  if (seen.second) {
    target = std::max(target, std::min(seen.heard.back(), *seen.second));
  }
  target = std::min(target, seen.last);
  if (target <= next) return next;
  const bool far = target > next + MostApart(overlap, seen);
  // A lead that is neither large nor steady goes away by itself.
  if (!far && !steady) return next;
  // After a jump the distances are others.
  leads_.clear();
  alone_ = 0;
  return far ? ChooseAmongWaiting(next, target, seen) : target;
}

}  // namespace gossamer
