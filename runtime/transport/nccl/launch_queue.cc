#include "runtime/transport/nccl/launch_queue.h"

#include <algorithm>
#include <utility>

#include "algorithms/base/seeded_bug.h"

namespace gossamer {

// A pair before the one under way could close a circle: that of a payload which
// is sent for the first time when a connection is back, for example.  Two pairs
// of one matching are of views that differ.
bool LaunchQueue::MayEnter(uint64_t exchange, int colour) const {
  if (meeting_) return false;
  const auto position = std::pair(exchange, colour);
  if (under_way_ &&
      position <= std::pair(under_way_->exchange, under_way_->colour)) {
    return false;
  }
  return std::ranges::none_of(pairs_, [&](const auto& p) {
    return position == std::pair(p.first.exchange, p.first.colour);
  });
}

void LaunchQueue::Enter(NcclPair pair) {
  const LaunchPosition position = pair.position;
  pairs_[position] = std::move(pair);
}

bool LaunchQueue::Agree(PeerId peer, uint64_t exchange, PairTerms terms) {
  const auto found = std::ranges::find_if(pairs_, [&](const auto& p) {
    return p.first.exchange == exchange && p.first.peer == peer;
  });
  if (found == pairs_.end()) return false;
  found->second.terms = std::move(terms);
  return true;
}

void LaunchQueue::Withdraw(PeerId peer, uint64_t exchange) {
  std::erase_if(pairs_, [&](const auto& p) {
    return p.first.peer == peer && p.first.exchange == exchange &&
           !p.second.terms;
  });
}

const NcclPair* LaunchQueue::Next() const {
  if (under_way_ || pairs_.empty()) return nullptr;
  auto first = pairs_.begin();
  if (SeededBug("nccl-unordered")) {
    const auto agreed = std::ranges::find_if(
        pairs_, [](const auto& p) { return p.second.terms.has_value(); });
    if (agreed != pairs_.end()) first = agreed;
  }
  return first->second.terms ? &first->second : nullptr;
}

void LaunchQueue::Begin() {
  if (const NcclPair* const pair = Next()) under_way_ = pair->position;
}

void LaunchQueue::Skip() {
  if (const NcclPair* const pair = Next())
    pairs_.erase(LaunchPosition(pair->position));
}

const NcclPair* LaunchQueue::under_way() const {
  return under_way_ ? &pairs_.at(*under_way_) : nullptr;
}

NcclPair LaunchQueue::Finish() {
  const LaunchPosition position = *std::exchange(under_way_, std::nullopt);
  return std::move(pairs_.extract(position).mapped());
}

void LaunchQueue::Drop(uint64_t key) {
  if (under_way_ && pairs_.at(*under_way_).key == key) under_way_.reset();
  if (meeting_ == key) meeting_.reset();
  std::erase_if(pairs_, [key](const auto& p) { return p.second.key == key; });
}

void LaunchQueue::EnterMeeting(uint64_t key) { meeting_ = key; }

// A pair that both ends have agreed on is in both queues, so all of them are
// launched before either end meets: a peer in the meeting holds up no other.
std::optional<uint64_t> LaunchQueue::Meeting() const {
  return pairs_.empty() ? meeting_ : std::nullopt;
}

bool LaunchQueue::Expects(PeerId peer, uint64_t name) const {
  return meeting_ == name || std::ranges::any_of(pairs_, [&](const auto& p) {
           return p.first.peer == peer && p.second.terms &&
                  p.second.terms->name == name;
         });
}

}  // namespace gossamer
