#include "runtime/membership/failure_detector.h"

#include <algorithm>

namespace gossamer {
namespace {

constexpr int kMostLateness = 7;
constexpr int kTicksToRecover = 8;

}  // namespace

void FailureDetector::Watch(const std::set<PeerId>& peers, absl::Time now) {
  std::erase_if(heard_,
                [&](const auto& h) { return !peers.contains(h.first); });
  for (const PeerId peer : peers) heard_.try_emplace(peer, now);
}

void FailureDetector::Heard(PeerId peer, absl::Time now) {
  const auto it = heard_.find(peer);
  if (it != heard_.end()) it->second = std::max(it->second, now);
}

std::vector<PeerId> FailureDetector::Tick(absl::Time now) {
  const absl::Duration late = last_tick_ == absl::InfinitePast()
                                  ? absl::ZeroDuration()
                                  : now - last_tick_ - period();
  last_tick_ = now;
  if (late > period()) {
    // What came meanwhile has not been read yet: the time does not count.
    for (auto& [peer, heard] : heard_) heard = std::min(heard + late, now);
    lateness_ = std::min(lateness_ + 1, kMostLateness);
    ticks_in_time_ = 0;
  } else if (++ticks_in_time_ >= kTicksToRecover) {
    lateness_ = std::max(lateness_ - 1, 0);
    ticks_in_time_ = 0;
  }
  std::vector<PeerId> probe;
  suspected_.clear();
  for (const auto& [peer, heard] : heard_) {
    if (now - heard > suspect_after_ / 4) probe.push_back(peer);
    if (now - heard > patience() * suspect_after_) suspected_.push_back(peer);
  }
  return probe;
}

}  // namespace gossamer
