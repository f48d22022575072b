// A game of any size whose gradient costs one pass over memory: for measuring
// networks, codecs and plans with neither data nor GPU.
//
// f_r(u, v) = Σ_i ½(u_i − a_i)² + (u_i − a_i)(v_i − b_i) − ½(v_i − b_i)², with
// (a, b) of peer r: the fleet's plus shifts that sum to zero over the peers.  A
// coupling of pairs stands for the networks'; noise is left out because drawing
// it costs more than the rest.  This header knows nothing of time: a step takes
// a given time only inside a paced game (runtime/config/paced_game.h).

#ifndef GOSSAMER_ALGORITHMS_GAME_SYNTHETIC_GAME_H_
#define GOSSAMER_ALGORITHMS_GAME_SYNTHETIC_GAME_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/problems.h"
#include "algorithms/game/game.h"

namespace gossamer {

struct SyntheticSpec {
  // Number of both players' parameters together; the generator has the odd one.
  int64_t parameters = 2'258'308;  // the WGAN-GP ResNet's of width 128
  double heterogeneity = 1;        // standard deviation of the shifts
};

// Returns what of a spec is out of range; Create asks it, too.
Problems ProblemsOf(const SyntheticSpec& spec);

class SyntheticGame final : public Game, private Evaluator {
 public:
  // The game of peer `rank` of `peers`.  kInvalidArgument for anything out of
  // range.
  static absl::StatusOr<std::unique_ptr<SyntheticGame>> Create(
      const SyntheticSpec& spec, int rank, int peers, uint64_t seed);

  const ParameterLayout& layout() const override { return layout_; }
  DeviceSpan<float> device_parameters() override { return parameters_; }
  DeviceSpan<const float> device_gradients() const override {
    return gradients_;
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override;
  // Its score, "distance", is the root mean square of u − a of the fleet.
  Evaluator* evaluator() override { return this; }

  // (a, b) of the average of all peers' games.
  std::span<const float> solution() const { return solution_; }

 private:
  SyntheticGame(const SyntheticSpec& spec, int rank, int peers, uint64_t seed);
  std::string_view score_name() const override { return "distance"; }
  absl::StatusOr<double> Score(std::span<const float> generator,
                               RngKey key) override;
  absl::Status WriteSamples(std::span<const float> generator, RngKey key,
                            const std::string& path) override;

  const ParameterLayout layout_;
  std::vector<float> solution_;      // of the fleet
  std::vector<float> own_solution_;  // of this peer's game alone
  std::vector<float> parameters_;
  std::vector<float> gradients_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_SYNTHETIC_GAME_H_
