#include "topology/fleet/overlap_chooser.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

int StepsFor(double exchange, double step) {
  const double steps = std::ceil(exchange / step);
  return static_cast<int>(std::clamp<double>(steps, 1, kMaxOverlap));
}

}  // namespace

int ChooseOverlap(std::span<const Tempo> peers, int current) {
  double step = 0;
  uint64_t rounds = std::numeric_limits<uint64_t>::max();
  for (const Tempo& p : peers) {
    const bool sound = std::isfinite(p.busy_seconds) && p.busy_seconds > 0 &&
                       std::isfinite(p.exchange_seconds) &&
                       p.exchange_seconds >= 0;
    // One member without a measurement leaves the choice as it is: its exchange
    // may be the longest.
    if (!sound || p.rounds < kRoundsToChoose) return current;
    step = std::max(step, p.busy_seconds);
    rounds = std::min(rounds, p.rounds);
  }
  if (peers.empty()) return current;
  double exchange = 0;
  for (const Tempo& p : peers) {
    if (p.busy_seconds >= kNearlyAsSlow * step) {
      exchange = std::max(exchange, p.exchange_seconds);
    }
  }
  const int enough = StepsFor(kMargin * exchange, step);
  if (enough > current) return enough;
  // An h that is too small makes every round wait, so a smaller one takes
  // measurements of many more rounds.
  if (rounds < kRoundsToGoBack) return current;
  return std::min(current, StepsFor(kToSpare * exchange, step));
}

}  // namespace gossamer
