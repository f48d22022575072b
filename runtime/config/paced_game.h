// A game whose gradients take a given time, as on another machine.
//
// For measuring what a network or a codec costs a step of that length.  This
// header knows nothing of which game it paces.

#ifndef GOSSAMER_RUNTIME_CONFIG_PACED_GAME_H_
#define GOSSAMER_RUNTIME_CONFIG_PACED_GAME_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/game/wrapped_game.h"

namespace gossamer {

enum class Pace {
  kBurn,   // computes until the time is over, as on a CPU
  kSleep,  // leaves the CPU to others, as with a GPU
};

class PacedGame final : public WrappedGame {
 public:
  // A gradient that takes longer by itself is not hurried.
  PacedGame(std::unique_ptr<Game> game, absl::Duration step_time, Pace pace)
      : WrappedGame(std::move(game)), step_time_(step_time), pace_(pace) {}

  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override;

 private:
  const absl::Duration step_time_;
  const Pace pace_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_PACED_GAME_H_
