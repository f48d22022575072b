#include "runtime/config/run_config_check.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/player_codecs.h"
#include "algorithms/game/bilinear_game.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/game/synthetic_game.h"
#include "algorithms/method/registry.h"
#include "algorithms/optim/local_step.h"
#include "gan_models/gan_spec.h"
#include "runtime/base/run_name.h"
#include "runtime/config/compose.h"
#include "runtime/config/composition_check.h"
#include "runtime/config/datalens_config.h"
#include "runtime/config/run_config.h"
#include "runtime/device/device_request.h"
#include "runtime/transport/transport_choice.h"
#include "topology/mixing_schedule.h"

namespace gossamer {
namespace {

// The letters of a fabric's name and of a congestion control's.
constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

void CheckRun(const RunConfig& config, Problems& problems) {
  problems.OneOf("algorithm", config.algorithm(), MethodNames());
  problems.OneOf("transport", config.transport(), kTransportChoices);
  problems.Range<uint64_t>("resources.threads", config.resources().threads(), 1,
                           kMaxThreads);
  problems.Range<uint64_t>("resources.connections",
                           config.resources().connections(), 0, 8);
  if (const auto device = ParseDeviceRequest(config.resources().device());
      !device.ok()) {
    problems.Refuse("resources.device", device.status().message());
  }
  if (const std::string& fabric = config.resources().fabric();
      fabric.size() > 64 ||
      fabric.find_first_not_of(kNameLetters) != std::string::npos) {
    problems.Refuse(
        "resources.fabric", "is \"", fabric,
        "\"; a fabric's name is at most 64 letters, digits and ._-");
  }
  // The kernel bounds its names; those that it allows are the machine's matter.
  if (const std::string& name = config.resources().congestion_control();
      name.empty() || name.size() > 15 ||
      name.find_first_not_of(kNameLetters) != std::string::npos) {
    problems.Refuse("resources.congestion_control", "is \"", name,
                    "\"; give it auto, cubic, bbr, or another name of "
                    "net.ipv4.tcp_allowed_congestion_control");
  }
  problems.Range<uint64_t>("mixing.replica_memory_mb",
                           config.mixing().replica_memory_mb(), 0,
                           uint64_t{1} << 32);
  problems.Range<uint64_t>("checkpoint.keep", config.checkpoint().keep(), 1,
                           1 << 20);
  if (!IsRunName(config.name())) {
    problems.Refuse("name", "is \"", config.name(),
                    "\"; a run's name is a folder's: 1 to 100 letters, digits "
                    "and ._-, not first . or -");
  }
}

void CheckCodec(const RunConfig& config, Problems& problems) {
  const std::string& codec = config.mixing().codec();
  absl::Status made = Codec::Create(codec, {}).status();
  // The players of a program's own game are known when it joins.
  if (made.ok() && !config.game().has_caller()) {
    made = CheckPlayers(*ReadPlayerCodecs(codec), ParameterLayout().players());
  }
  if (made.ok()) return;
  problems.Refuse("mixing.codec", "is \"", codec, "\": ", made.message());
}

void CheckGradientCodec(const std::string& method, Problems& problems) {
  const absl::Status made = GradientCompressor::Create(method, {}).status();
  if (made.ok()) return;
  problems.Refuse("mixing.gradient_codec", "is \"", method,
                  "\": ", made.message());
}

// A rule that belongs to another method than the run's.
void CheckOptimizer(const RunConfig& config, Problems& problems) {
  const std::string& optimizer = config.step().optimizer();
  const Method* const own = MethodOf(config);
  for (const Method* method : Methods()) {
    if (method->rule == nullptr || method->defaults.optimizer != optimizer ||
        (own != nullptr && own->rule == method->rule)) {
      continue;
    }
    return problems.Refuse("step.optimizer", "is ", optimizer,
                           ", the rule of algorithm ", method->name,
                           ": leave it out, or take that algorithm");
  }
}

void CheckGame(const RunConfig& config, Problems& problems) {
  const GameConfig& game = config.game();
  if (game.has_gan()) {
    Problems gan = ProblemsOf(GanSpecOf(config));
    for (Problem& p : gan.Take()) {
      // Two settings of a GAN are keys of others.
      std::string key = absl::StrCat("game.gan.", p.key);
      if (p.key == "evaluation_samples") key = "evaluation.samples";
      if (p.key == "precision") key = "step.precision";
      problems.Refuse(key, p.what);
    }
  } else if (config.step().precision() != "float32") {
    problems.Refuse("step.precision", "is \"", config.step().precision(),
                    "\", but only the networks of game gan have a choice: "
                    "leave it out");
  }
  if (game.has_bilinear()) {
    problems.Add("game.bilinear.", ProblemsOf(BilinearSpecOf(config)));
    if (game.bilinear().heterogeneity() != 0) {
      problems.Refuse("game.bilinear.heterogeneity", "is ",
                      game.bilinear().heterogeneity(),
                      ", but all peers have one bilinear game: leave it out, "
                      "or take game quadratic");
    }
  }
  if (game.has_quadratic()) {
    problems.Add("game.quadratic.", ProblemsOf(QuadraticSpecOf(config)));
  }
  if (game.has_synthetic()) {
    problems.Add("game.synthetic.", ProblemsOf(SyntheticSpecOf(config)));
    constexpr std::string_view kPaces[] = {"burn", "sleep"};
    problems.OneOf("game.synthetic.pace", game.synthetic().pace(), kPaces);
    const std::string& step_time = game.synthetic().step_time();
    if (const auto parsed = ParsePositiveDuration(step_time);
        step_time != "0" && !parsed.ok()) {
      problems.Refuse("game.synthetic.step_time", parsed.status().message());
    }
  }
}

// The settings of a peer are of four messages.
std::string KeyOfPeer(const RunConfig& config, const std::string& setting) {
  if (setting == "rounds") return setting;
  if (setting == "steps_per_round") return absl::StrCat("step.", setting);
  if (setting == "ema") {
    return absl::StrCat(
        config.game().has_datalens() ? "game.datalens." : "game.gan.", setting);
  }
  return absl::StrCat("mixing.", setting);
}

void CheckPeer(const RunConfig& config, Problems& problems) {
  // Settings that cannot be read are left out here, and refused below.
  RunConfig readable = config;
  MixingConfig& mixing = *readable.mutable_mixing();
  Problems unreadable;
  if (!DeadlinePolicyOf(mixing.deadline()).ok()) {
    unreadable.Refuse("mixing.deadline", "is \"", mixing.deadline(),
                      "\"; write none, auto, or a duration such as 40ms");
    mixing.clear_deadline();
  }
  if (const auto limit = ParsePositiveDuration(mixing.liveness_limit());
      !limit.ok()) {
    unreadable.Refuse("mixing.liveness_limit", limit.status().message());
    mixing.clear_liveness_limit();
  }
  const absl::StatusOr<PeerSpec> spec = PeerSpecOf(readable);
  if (!spec.ok()) {
    return problems.Refuse("mixing", spec.status().message());
  }
  for (Problem& p : ProblemsOf(*spec).Take()) {
    problems.Refuse(KeyOfPeer(config, p.key), p.what);
  }
  problems.Add("", std::move(unreadable));
}

}  // namespace

Problems FindProblems(const RunConfig& config) {
  Problems problems;
  CheckRun(config, problems);
  for (Problem& p : ProblemsOf(ScheduleSpecOf(config.mixing()),
                               static_cast<int>(config.peers()), config.seed())
                        .Take()) {
    problems.Refuse(p.key == "peers" ? p.key : absl::StrCat("mixing.", p.key),
                    p.what);
  }
  CheckCodec(config, problems);
  CheckGradientCodec(config.mixing().gradient_codec(), problems);
  CheckPeer(config, problems);
  CheckOptimizer(config, problems);
  problems.Add("step.", ProblemsOf(LocalStepSpecOf(config)));
  CheckGame(config, problems);
  problems.Add("", ProblemsOfVotes(config));
  return problems.empty() ? FindConflicts(config) : problems;
}

}  // namespace gossamer
