// DataLens as the game of a peer: peer 1 has the student, every other peer its
// group of teachers, and all have the student's parameters as their vector, so
// that a teacher's vector says nothing of its data.
//
// This header knows nothing of votes' noise, budgets or processes.

#ifndef GOSSAMER_GAN_MODELS_DATALENS_DATALENS_GAME_H_
#define GOSSAMER_GAN_MODELS_DATALENS_DATALENS_GAME_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "algorithms/game/game.h"
#include "algorithms/privacy/settings.h"
#include "gan_models/datalens/datalens.h"

namespace gossamer {

struct DataLensSpec {
  DataLensSettings settings;  // without problems
  // Folder of digits.csv; empty: a student has nothing to score with, and
  // teachers are refused.
  std::string path;
  int evaluation_samples = 1024;
};

// The game of shard 0, the student, to `peers` - 1.  Errors: kInvalidArgument
// (fewer examples than teachers, no folder), those of ReadDigits.
absl::StatusOr<std::unique_ptr<Game>> MakeDataLens(const DataLensSpec& spec,
                                                   int shard, int peers);

// Draws and scores a student by any of its parameters: "classifier-error" is
// the share of held-out digits that a classifier gets wrong, trained on
// `samples` of the student's images alone.  `path` as of DataLensSpec.
absl::StatusOr<std::unique_ptr<Evaluator>> MakeStudentEvaluator(
    const StudentShape& shape, const std::string& path, int samples);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATALENS_DATALENS_GAME_H_
