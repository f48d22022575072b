#include "topology/fleet/overlap_chooser.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "topology/view.h"

namespace gossamer {
namespace {

constexpr double kNearlyAsSlow = 0.9;
// Exchanges vary: what is just hidden on most days waits on some.
constexpr double kMargin = 1.05;
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
  if (rounds < kRoundsToGoBack) return current;
  return std::min(current, StepsFor(kToSpare * exchange, step));
}

}  // namespace gossamer
