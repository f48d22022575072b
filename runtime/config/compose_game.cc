#include "runtime/config/compose_game.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/datalens/datalens_game.h"
#include "gan_models/learned_coder.h"
#include "gan_models/make_game.h"
#include "runtime/config/compose.h"
#include "runtime/config/composition_check.h"
#include "runtime/config/datalens_config.h"
#include "runtime/config/paced_game.h"
#include "runtime/config/run_config.h"

namespace gossamer {

bool NeedsNetworks(const RunConfig& config) {
  const std::string& gradients = config.mixing().gradient_codec();
  return config.game().has_gan() || config.game().has_datalens() ||
         gradients.substr(0, gradients.find(':')) == "lgc";
}

absl::StatusOr<std::unique_ptr<Game>> MakeGame(const RunConfig& config,
                                               const std::string& data,
                                               int shard,
                                               const DeviceQueue& queue) {
  const GameConfig& game = config.game();
  if (game.has_gan()) {
    GanSpec spec = GanSpecOf(config);
    if (spec.data.path.empty()) spec.data.path = data;
    GOSSAMER_ASSIGN_OR_RETURN(
        std::unique_ptr<Game> gan,
        MakeGan(spec, shard, static_cast<int>(config.peers()), config.seed(),
                static_cast<int>(config.resources().threads()), queue));
    return GameFor(config, std::move(gan));
  }
  if (!queue.on_host()) {
    return absl::UnimplementedError(
        absl::StrCat("resources.device: ", WhyOnHost(config)));
  }
  if (game.has_datalens()) {
    return MakeDataLens(
        {.settings = DataLensSettingsOf(config),
         .path = game.datalens().path().empty() ? data : game.datalens().path(),
         .evaluation_samples = static_cast<int>(config.evaluation().samples())},
        shard, static_cast<int>(config.peers()));
  }
  GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<Game> made,
                            MakeClosedFormGame(config, shard));
  made = GameFor(config, std::move(made));
  if (!game.has_synthetic() || game.synthetic().step_time() == "0") {
    return made;
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      const absl::Duration step_time,
      ParsePositiveDuration(game.synthetic().step_time()));
  return std::make_unique<PacedGame>(
      std::move(made), step_time,
      game.synthetic().pace() == "sleep" ? Pace::kSleep : Pace::kBurn);
}

absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeGradients(
    const RunConfig& config, const ParameterLayout& layout) {
  return GradientCompressorOf(config, layout, MakeLearnedCoder);
}

}  // namespace gossamer
