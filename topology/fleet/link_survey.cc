#include "topology/fleet/link_survey.h"

#include <algorithm>
#include <cmath>

namespace gossamer {
namespace {

// A generation has room for the turns of hundreds of surveys.  Generations are
// of 48 bits, so that the sum stays below 64.
constexpr int kTurnBits = 14;

}  // namespace

void LinkSurvey::Start(std::vector<PeerId> members, uint64_t generation,
                       absl::Time now) {
  number_ = std::max(number_, generation << kTurnBits);
  members_ = std::move(members);
  ways_.clear();
  turn_ = 0;
  NextTurn(now);
}

size_t LinkSurvey::turns() const {
  const size_t n = members_.size();
  if (n < 2) return 0;
  return n % 2 == 0 ? n - 1 : n;
}

// The circle method: places lie on a circle of odd length, and in each turn two
// places are paired whose sum is the turn's number.  With an even number of
// members the last one is outside the circle and is paired with the place that
// would be its own partner.
std::optional<size_t> LinkSurvey::PartnerOf(size_t place) const {
  const size_t n = members_.size();
  const size_t circle = n % 2 == 0 ? n - 1 : n;
  const bool middle = n % 2 == 0;
  if (middle && place == n - 1) {
    // The place that would be its own partner has 2p = turn modulo the circle.
    for (size_t p = 0; p < circle; ++p) {
      if (2 * p % circle == turn_) return p;
    }
  }
  const size_t other = (turn_ + circle - place) % circle;
  if (other != place) return other;
  return middle ? std::optional(n - 1) : std::nullopt;
}

void LinkSurvey::NextTurn(absl::Time now) {
  ++number_;
  turn_ends_ = now + turn_limit_;
  open_.clear();
  if (!running()) return;
  for (size_t place = 0; place < members_.size(); ++place) {
    if (PartnerOf(place)) open_.insert(members_[place]);
  }
}

std::optional<LinkSurvey::Task> LinkSurvey::TaskOf(PeerId peer) const {
  if (!running() || !open_.contains(peer)) return std::nullopt;
  const auto at = std::ranges::find(members_, peer);
  const auto partner = PartnerOf(static_cast<size_t>(at - members_.begin()));
  return Task{.number = number_, .other = members_[*partner]};
}

void LinkSurvey::Report(PeerId peer, uint64_t number, std::optional<Way> way,
                        absl::Time now) {
  const std::optional<Task> task = TaskOf(peer);
  // A report of an earlier turn, or of a survey before, must not end the task
  // of this one.
  if (!task || task->number != number) return;
  // A nonsensical result counts as a failed measurement: the turn still ends.
  const auto sound = [](double v) { return std::isfinite(v) && v >= 0; };
  if (way && sound(way->rtt_seconds) && sound(way->bytes_per_second)) {
    ways_[{peer, task->other}] = *way;
  }
  open_.erase(peer);
  if (!open_.empty()) return;
  ++turn_;
  NextTurn(now);
}

// A member that has gone, or does not answer, would otherwise hold up the
// survey for good.
void LinkSurvey::Tick(absl::Time now) {
  if (!running() || now < turn_ends_) return;
  ++turn_;
  NextTurn(now);
}

std::optional<LinkSurvey::Way> LinkSurvey::way(PeerId from, PeerId to) const {
  const auto it = ways_.find({from, to});
  if (it == ways_.end()) return std::nullopt;
  return it->second;
}

}  // namespace gossamer
