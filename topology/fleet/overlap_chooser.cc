#include "topology/fleet/overlap_chooser.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "topology/view.h"

namespace gossamer {
namespace {

// The share of the slowest member's time of a round from which on members are
// not late to each other.
constexpr double kNearlyAsSlow = 0.9;
// Exchange times vary: an exchange that is just hidden in most rounds is waited
// for in some.
constexpr double kMargin = 1.05;
// A smaller h must have more to spare than a larger one needs, so that the
// choice does not swing between two values.
constexpr double kToSpare = 1.25;
// A larger h brought nothing if exchanges became longer by this part of its
// growth: by all of it, on a link that carries no more.
constexpr double kBroughtNothing = 0.85;
// The link is another one if they take so many times as long, or as short, as
// when it was full.
constexpr double kAnotherLink = 1.5;

int StepsFor(double exchange, double step) {
  const double steps = std::ceil(exchange / step);
  return static_cast<int>(std::clamp<double>(steps, 1, kMaxOverlap));
}

}  // namespace

int OverlapChooser::Choose(std::span<const RoundTiming> peers, int current,
                           uint64_t rounds) {
  double step = 0;
  uint64_t measured = std::numeric_limits<uint64_t>::max();
  for (const RoundTiming& p : peers) {
    const bool sound = std::isfinite(p.busy_seconds) && p.busy_seconds > 0 &&
                       std::isfinite(p.exchange_seconds) &&
                       p.exchange_seconds >= 0;
    // One member without a measurement leaves the choice as it is: its exchange
    // may be the longest.
    if (!sound || p.rounds < kExchangesToChoose) return current;
    step = std::max(step, p.busy_seconds);
    measured = std::min(measured, p.rounds);
  }
  if (peers.empty()) return current;
  double exchange = 0;
  bool waits = false;
  for (const RoundTiming& p : peers) {
    if (p.busy_seconds >= kNearlyAsSlow * step) {
      exchange = std::max(exchange, p.exchange_seconds);
      waits = waits || p.waits;
    }
  }
  const int enough = StepsFor(kMargin * exchange, step);
  if (enough > current) {
    return waits ? Larger(enough, current, exchange, measured) : current;
  }
  if (measured < kExchangesToGoBack) return current;
  full_.reset();  // nobody waits any more
  // An h that is too small makes every round wait, so a smaller one takes many
  // more measurements.  A smaller h that did not do takes twice as long the
  // next time: the time of an exchange may depend on h itself.
  const int less = StepsFor(kToSpare * exchange, step);
  if (less >= current || rounds < hold_rounds_) return current;
  went_back_ = true;
  return less;
}

int OverlapChooser::Larger(int enough, int current, double exchange,
                           uint64_t measured) {
  if (raised_ && raised_->to == current) {
    // The first exchanges with this h find the queue of the one before.
    if (measured < kExchangesToChoose + static_cast<uint64_t>(current)) {
      return current;
    }
    const double more = static_cast<double>(current) / raised_->from;
    if (exchange >= kBroughtNothing * more * raised_->exchange) {
      full_ = exchange;
    }
  }
  raised_.reset();
  if (full_) {
    const bool same =
        exchange < kAnotherLink * *full_ && exchange * kAnotherLink > *full_;
    // A few long ones are a disturbance.
    if (same || measured < kExchangesToGoBack) return current;
    full_.reset();
  }
  raised_ = Raise{.from = current, .to = enough, .exchange = exchange};
  if (std::exchange(went_back_, false)) hold_rounds_ *= 2;
  return enough;
}

}  // namespace gossamer
