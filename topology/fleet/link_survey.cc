#include "topology/fleet/link_survey.h"

#include <algorithm>
#include <cmath>

namespace gossamer {
namespace {

// A generation has room for the slots of hundreds of surveys.  That the largest
// generations lose their high bits does no harm: a number is compared only with
// the one before it.
constexpr int kSlotBits = 14;

}  // namespace

void LinkSurvey::Start(std::vector<PeerId> members, uint64_t generation,
                       absl::Time now) {
  number_ = std::max(number_, generation << kSlotBits);
  members_ = std::move(members);
  links_.clear();
  slot_ = 0;
  NextSlot(now);
}

size_t LinkSurvey::slots() const {
  const size_t n = members_.size();
  if (n < 2) return 0;
  return n % 2 == 0 ? n - 1 : n;
}

// The circle method: places lie on a circle of odd length, and in each slot two
// places are paired whose sum is the slot's number.  With an even number of
// members the last one is outside the circle and is paired with the place that
// would be its own partner.
std::optional<size_t> LinkSurvey::PartnerOf(size_t place) const {
  const size_t n = members_.size();
  const size_t circle = n % 2 == 0 ? n - 1 : n;
  const bool middle = n % 2 == 0;
  if (middle && place == n - 1) {
    // The place that would be its own partner has 2p = slot modulo the circle.
    for (size_t p = 0; p < circle; ++p) {
      if (2 * p % circle == slot_) return p;
    }
  }
  const size_t other = (slot_ + circle - place) % circle;
  if (other != place) return other;
  return middle ? std::optional(n - 1) : std::nullopt;
}

void LinkSurvey::NextSlot(absl::Time now) {
  ++number_;
  slot_ends_ = now + slot_limit_;
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

void LinkSurvey::Report(PeerId peer, uint64_t number,
                        std::optional<LinkMeasurement> link, absl::Time now) {
  const std::optional<Task> task = TaskOf(peer);
  // A report of an earlier slot, or of a survey before, must not end the task
  // of this one.
  if (!task || task->number != number) return;
  // A nonsensical result counts as a failed measurement: the slot still ends.
  const auto sound = [](double v) { return std::isfinite(v) && v >= 0; };
  if (link && sound(link->rtt_seconds) && sound(link->bytes_per_second)) {
    links_[{peer, task->other}] = *link;
  }
  open_.erase(peer);
  if (!open_.empty()) return;
  ++slot_;
  NextSlot(now);
}

// A member that has gone, or does not answer, would otherwise hold up the
// survey for good.
void LinkSurvey::Tick(absl::Time now) {
  if (!running() || now < slot_ends_) return;
  ++slot_;
  NextSlot(now);
}

std::optional<LinkMeasurement> LinkSurvey::link(PeerId from, PeerId to) const {
  const auto it = links_.find({from, to});
  if (it == links_.end()) return std::nullopt;
  return it->second;
}

}  // namespace gossamer
