// The commands of gossamer-models, as functions.
//
// This header knows nothing of command lines.

#ifndef GOSSAMER_RUNTIME_CLI_MODELS_COMMANDS_H_
#define GOSSAMER_RUNTIME_CLI_MODELS_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gan_models/data/emoji_renderer.h"
#include "gan_models/make_game.h"

namespace gossamer {

// Renders emoji-32, or that of another size, into `folder` (made if missing),
// unless a whole one with the same settings exists.
absl::Status RenderEmojiTo(const std::string& folder, const EmojiSpec& spec);

struct GeneratorFiles {
  // safetensors with "ema" (a generator) or "parameters" (both players).  The
  // mean of several files is the fleet's model.
  std::vector<std::string> paths;
  bool raw = false;  // "parameters" even if there is "ema"
};

struct SampleSpec {
  GanSpec gan;
  GeneratorFiles files;
  std::string out;
  // The class of a conditional model that all samples are of, by name or
  // number; empty: some of each.
  std::string of_class;
  uint64_t seed = 1;
  int threads = 0;  // 0: one for each processor
};
absl::Status Sample(const SampleSpec& spec);

struct ExportSpec {
  GanSpec gan;
  GeneratorFiles files;
  std::string out;
};
// Writes the generator as safetensors, one tensor per name of PrintModel, for
// other programs.
absl::Status Export(const ExportSpec& spec);

struct EvaluateSpec {
  GanSpec gan;
  GeneratorFiles files;
  // TorchScript; empty: fixed random convolutions.
  std::string inception;
  int inception_size = 299;
  uint64_t seed = 1;
  uint64_t round = 0;  // of the checkpoints, to be printed; 0: unknown
  int threads = 0;     // 0: one for each processor
  bool json = false;
};
absl::Status Evaluate(const EvaluateSpec& spec);

// Prints the tensors of a model's two networks.
absl::Status PrintModel(const GanSpec& spec, bool json);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_MODELS_COMMANDS_H_
