#include "runtime/neighborhood/damping.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace gossamer {
namespace {

// An end that was away for more rounds is as good as new: its next corrections
// are on time again, and a larger age would hold its edge back for long.
constexpr uint64_t kMaxLate = 16;

}  // namespace

void Damping::OnCorrection(const Correction& correction) {
  // The oldest of a boundary's corrections acts on the oldest x.
  oldest_ = std::min(oldest_.value_or(correction.id), correction.id);
}

void Damping::Emitted(uint64_t round) {
  // Phases of a round count once.
  if (std::exchange(last_, round) != round) emitted_.push_back(round);
}

void Damping::Completed(ExchangeId limit) {
  const uint64_t round = RoundOf(limit - 1);
  for (; !emitted_.empty() && emitted_.front() <= round; emitted_.pop_front()) {
    missed_ = static_cast<uint16_t>(missed_ << 1 | 1);
  }
  if (!oldest_) return;
  // Something was corrected: the youngest of the rounds that are due here has
  // mixed.
  missed_ &= ~uint16_t{1};
  const uint64_t late = round - RoundOf(*oldest_);
  oldest_.reset();
  // The decay rounds up, so that it ends at 0.
  lateness_ = std::max(static_cast<int>(std::min(late, kMaxLate)),
                       lateness_ - (lateness_ + 3) / 4);
}

double Damping::Factor(double stable, int overlap) const {
  if (lateness_ == 0) return 1;
  // An exchange on time is max(1, h) − 1 steps old already (PROTOCOL.md 9).
  const int age = std::max(overlap, 1) - 1 + lateness_;
  return std::min(1.0, stable * std::sin(std::numbers::pi / (4 * age + 2)));
}

}  // namespace gossamer
