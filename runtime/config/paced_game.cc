#include "runtime/config/paced_game.h"

#include <chrono>
#include <thread>

namespace gossamer {

absl::StatusOr<Losses> PacedGame::Gradient(Players players, RngKey key) {
  const auto end =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(step_time_);
  absl::StatusOr<Losses> losses = WrappedGame::Gradient(players, key);
  if (pace_ == Pace::kSleep) {
    std::this_thread::sleep_until(end);
  } else {
    while (std::chrono::steady_clock::now() < end) {
    }
  }
  return losses;
}

}  // namespace gossamer
