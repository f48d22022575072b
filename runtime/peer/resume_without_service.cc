#include "runtime/peer/resume_without_service.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>

namespace gossamer {
namespace {

// A question, or its answer, may be lost with a connection.
constexpr absl::Duration kApart = absl::Milliseconds(500);
// The time that a first answer waits for the others.
constexpr absl::Duration kOthers = absl::Seconds(2);
// One answer is enough; a few more keep one member from misleading this peer.
constexpr size_t kMaxAsked = 16;
// Of a schedule that changes by round, the neighbours of so many rounds are
// asked.
constexpr uint64_t kRounds = 8;

}  // namespace

ResumeWithoutService::ResumeWithoutService(PeerId self, Parts parts)
    : self_(self), parts_(std::move(parts)) {
  parts_.prober->SetOnRound([this](PeerId peer, uint64_t round) {
    rounds_[peer] = round;
    first_answer_ = std::min(first_answer_, parts_.loop->Now());
  });
}

ResumeWithoutService::~ResumeWithoutService() {
  parts_.prober->SetOnRound([](PeerId, uint64_t) {});
}

std::vector<Member> ResumeWithoutService::NeighborsIn(const View& view) const {
  const std::optional<int> rank = view.RankOf(self_);
  const auto schedule = ScheduleOf(parts_.make_schedule, view);
  if (!rank || !schedule.ok()) return {};
  std::set<int> ranks;
  for (uint64_t r = view.from_round; r < view.from_round + kRounds; ++r) {
    for (const Neighbor& n : (*schedule)->Row(*rank, r).neighbors) {
      if (ranks.size() < kMaxAsked) ranks.insert(n.rank);
    }
  }
  std::vector<Member> neighbors;
  for (const int r : ranks) {
    neighbors.push_back(view.members[static_cast<size_t>(r)]);
  }
  return neighbors;
}

void ResumeWithoutService::Tick() {
  const std::shared_ptr<const View> view = parts_.membership->last_view();
  if (view == nullptr || parts_.loop->Now() < next_) return;
  next_ = parts_.loop->Now() + kApart;
  if (asked_.empty()) asked_ = NeighborsIn(*view);
  for (const Member& m : asked_) {
    parts_.transport->Connect(m.id, m.address);
    parts_.prober->AskRound(m.id, view->generation, view->epoch);
  }
}

absl::Time ResumeWithoutService::next_tick() const {
  return parts_.membership->last_view() == nullptr ? absl::InfiniteFuture()
                                                   : next_;
}

std::optional<uint64_t> ResumeWithoutService::round() const {
  if (rounds_.empty() || parts_.membership->last_view() == nullptr ||
      (rounds_.size() < asked_.size() &&
       parts_.loop->Now() < first_answer_ + kOthers)) {
    return std::nullopt;
  }
  uint64_t least = UINT64_MAX;
  for (const auto& [peer, round] : rounds_) least = std::min(least, round);
  return least;
}

}  // namespace gossamer
