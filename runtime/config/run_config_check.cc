#include "runtime/config/run_config_check.h"

#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/spelling.h"
#include "algorithms/collective/all_reduce.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/registry.h"
#include "algorithms/method/catalogue.h"
#include "algorithms/method/registry.h"
#include "algorithms/optim/optimizer.h"
#include "runtime/config/composition_check.h"
#include "runtime/config/run_config.h"
#include "topology/sites.h"

namespace gossamer {
namespace {

using Names = std::vector<std::string_view>;

// A folder name, a part of identities and of file names.
constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

// Checks, and gathers every problem instead of the first.
class Checker {
 public:
  void Refuse(std::string field, std::string what) {
    problems_.push_back({std::move(field), std::move(what)});
  }
  template <typename T>
  void Range(const char* field, T value, T least, T most) {
    if (value >= least && value <= most) return;  // false for NaN
    Refuse(field, absl::StrCat("is ", value, "; it must lie between ", least,
                               " and ", most));
  }
  void Positive(const char* field, double value) {
    if (value > 0 && std::isfinite(value)) return;
    Refuse(field, absl::StrCat("is ", value, "; it must be above 0"));
  }
  void NotNegative(const char* field, double value) {
    if (value >= 0 && std::isfinite(value)) return;
    Refuse(field, absl::StrCat("is ", value, "; it must be 0 or more"));
  }
  void OneOf(const char* field, const std::string& value, const Names& known) {
    for (std::string_view name : known) {
      if (name == value) return;
    }
    Names none;
    std::vector<std::string> names(known.begin(), known.end());
    const std::string nearest = Nearest(value, known);
    Refuse(field, absl::StrCat(
                      "is \"", value, "\"; known: ", absl::StrJoin(names, ", "),
                      nearest.empty() ? ""
                                      : absl::StrCat(" (did you mean \"",
                                                     nearest, "\"?)")));
  }
  void Duration(const char* field, const std::string& value) {
    const auto parsed = ParsePositiveDuration(value);
    if (!parsed.ok()) Refuse(field, std::string(parsed.status().message()));
  }
  std::vector<Problem> Take() { return std::move(problems_); }

 private:
  std::vector<Problem> problems_;
};

void CheckRun(const RunConfig& config, Checker& check) {
  check.OneOf("algorithm", config.algorithm(), MethodNames());
  check.Range<uint64_t>("peers", config.peers(), 1, 1024);
  // A round and a phase share 64 bits of an exchange's name.
  check.Range<uint64_t>("rounds", config.rounds(), 1, uint64_t{1} << 48);
  check.Range<uint64_t>("resources.threads", config.resources().threads(), 1,
                        1024);
  check.Range<uint64_t>("resources.connections",
                        config.resources().connections(), 1, 8);
  const std::string& name = config.name();
  if (name.empty() || name.size() > 100 || name[0] == '.' || name[0] == '-' ||
      name.find_first_not_of(kNameLetters) != std::string::npos) {
    check.Refuse("name",
                 absl::StrCat("is \"", name,
                              "\"; a run's name is a folder's: 1 to 100 "
                              "letters, digits and ._-, not first . or -"));
  }
  check.OneOf("evaluation.who", config.evaluation().who(), {"first", "all"});
  check.Range<uint64_t>("evaluation.samples", config.evaluation().samples(), 2,
                        1 << 20);
  check.Range<uint64_t>("checkpoint.keep", config.checkpoint().keep(), 1,
                        1 << 20);
}

// The codec that a method of the catalogue is chosen by; empty if `name` is
// none or brings another.
std::string CodecOfMethod(std::string_view name) {
  constexpr std::string_view kChosenBy = "mixing.codec=";
  const CatalogueEntry* const entry = FindInCatalogue(name);
  if (entry == nullptr) return "";
  for (const std::string_view setting : entry->settings) {
    if (setting.starts_with(kChosenBy)) {
      return std::string(setting.substr(kChosenBy.size()));
    }
  }
  return "";
}

// A name, and after a colon options, which are for the codec to judge.
void CheckCodec(const std::string& codec, Checker& check) {
  const Names known = Codec::Names();
  const std::string name = codec.substr(0, codec.find(':'));
  if (std::ranges::find(known, name) == known.end() && !IsGoneFromEdges(name)) {
    const std::string chosen = CodecOfMethod(name);
    if (chosen.empty()) return check.OneOf("mixing.codec", name, known);
    return check.Refuse("mixing.codec",
                        absl::StrCat("is \"", name,
                                     "\", the name of a method, whose codec is "
                                     "\"",
                                     chosen, "\": write that"));
  }
  const absl::Status options = Codec::Create(codec, {}).status();
  if (!options.ok()) {
    check.Refuse("mixing.codec",
                 absl::StrCat("is \"", codec, "\": ", options.message()));
  }
}

void CheckGradientCodec(const MixingConfig& mixing, Checker& check) {
  const std::string& method = mixing.gradient_codec();
  const absl::Status made = GradientCompressor::Create(method, {}).status();
  if (made.ok()) return;
  check.Refuse("mixing.gradient_codec",
               absl::StrCat("is \"", method, "\": ", made.message()));
}

// Every founder of the fleet must be at a site, and some must share one.
void CheckSites(const RunConfig& config, Checker& check) {
  const MixingConfig& mixing = config.mixing();
  if (mixing.schedule() != "locality-skewed") {
    if (mixing.sites().empty()) return;
    check.Refuse(
        "mixing.sites",
        absl::StrCat("is given, but mixing.schedule is ", mixing.schedule(),
                     ": leave it out, or take locality-skewed"));
    return;
  }
  check.Range("mixing.variance_budget", mixing.variance_budget(), 0.0, 1000.0);
  const auto sites = Sites::Parse(mixing.sites());
  if (!sites.ok()) {
    check.Refuse("mixing.sites", std::string(sites.status().message()));
    return;
  }
  const std::vector<PeerId> founders =
      FoundingMembers(static_cast<int>(config.peers()));
  for (const PeerId id : founders) {
    if (sites->Has(id)) continue;
    check.Refuse("mixing.sites",
                 absl::StrCat("does not say where peer ", id.value, " of ",
                              config.peers(),
                              " is; add it to a site, or give it its own"));
    return;
  }
  const std::vector<int> of = sites->Of(founders);
  const std::set<int> different(of.begin(), of.end());
  if (different.size() > 1 && different.size() < of.size()) return;
  check.Refuse("mixing.sites",
               absl::StrCat("puts the ", of.size(), " peers ",
                            different.size() == 1
                                ? "at one site: nothing is far"
                                : "each at its own site: nothing is near",
                            "; take schedule random-matching"));
}

void CheckMixing(const RunConfig& config, Checker& check) {
  const MixingConfig& mixing = config.mixing();
  CheckSites(config, check);
  CheckCodec(mixing.codec(), check);
  CheckGradientCodec(mixing, check);
  check.OneOf("mixing.order", mixing.order(),
              {"mix-then-step", "step-then-mix"});
  std::vector<std::string_view> all_reduces = AllReduce::Names();
  all_reduces.push_back("auto");
  check.OneOf("mixing.all_reduce", mixing.all_reduce(), all_reduces);
  check.OneOf("mixing.gossip", mixing.gossip(), {"plain", "chebyshev"});
  check.Range("mixing.gamma", mixing.gamma(), 0.0, 1.0);
  check.NotNegative("mixing.clip_radius", mixing.clip_radius());
  check.Range("mixing.largest_parameter", mixing.largest_parameter(), 0.0,
              1e30);
  check.Range<uint64_t>("mixing.mixing_rounds", mixing.mixing_rounds(), 1, 64);
  check.Range<uint64_t>("mixing.replica_memory_mb", mixing.replica_memory_mb(),
                        0, uint64_t{1} << 32);
  check.Duration("mixing.liveness_limit", mixing.liveness_limit());
  if (mixing.deadline() != "none" && mixing.deadline() != "auto" &&
      !ParsePositiveDuration(mixing.deadline()).ok()) {
    check.Refuse("mixing.deadline",
                 absl::StrCat("is \"", mixing.deadline(),
                              "\"; write none, auto, or a duration such as "
                              "40ms"));
  }
  if (mixing.gamma() > 0 && mixing.overlap_steps() == MixingConfig::auto_) {
    check.Refuse("mixing.gamma",
                 "is given, but with mixing.overlap_steps: auto the step size "
                 "follows the overlap: leave it out, or fix the overlap");
  }
  if (mixing.mixing_rounds() > 1 &&
      mixing.overlap_steps() != MixingConfig::steps_0) {
    check.Refuse("mixing.mixing_rounds",
                 absl::StrCat("is ", mixing.mixing_rounds(),
                              ", which needs mixing.overlap_steps: 0 (the "
                              "rounds of one iteration follow one another)"));
  }
}

// A rule of optim/, or the algorithm's own.
void CheckOptimizer(const RunConfig& config, Checker& check) {
  const std::string& optimizer = config.step().optimizer();
  for (const Method* method : Methods()) {
    if (method->rule == nullptr || method->defaults.optimizer != optimizer) {
      continue;
    }
    const Method* const own = MethodOf(config);
    if (own != nullptr && own->rule == method->rule) return;
    return check.Refuse(
        "step.optimizer",
        absl::StrCat("is ", optimizer, ", the rule of algorithm ",
                     std::string(method->name),
                     ": leave it out, or take that algorithm"));
  }
  check.OneOf("step.optimizer", optimizer, Optimizer::Names());
}

void CheckStep(const RunConfig& config, Checker& check) {
  const StepConfig& step = config.step();
  CheckOptimizer(config, check);
  check.Positive("step.generator_learning_rate",
                 step.generator_learning_rate());
  check.Positive("step.discriminator_learning_rate",
                 step.discriminator_learning_rate());
  check.Range("step.beta1", step.beta1(), 0.0, 0.999999);
  check.Range("step.beta2", step.beta2(), 0.0, 0.999999);
  check.Positive("step.epsilon", step.epsilon());
  check.NotNegative("step.gradient_clip", step.gradient_clip());
  check.Range<uint64_t>("step.n_critic", step.n_critic(), 1, 1000);
  check.Range<uint64_t>("step.steps_per_round", step.steps_per_round(), 1,
                        1 << 20);
  if (step.decay_from_round() > config.rounds()) {
    check.Refuse(
        "step.decay_from_round",
        absl::StrCat("is ", step.decay_from_round(), ", after the last round (",
                     config.rounds(), "); 0 means no decay"));
  }
}

void CheckGan(const GanConfig& gan, Checker& check) {
  check.OneOf("game.gan.model", gan.model(),
              {"up", "wgan-gp-resnet", "dcgan", "mlp"});
  check.OneOf("game.gan.loss", gan.loss(),
              {"wgan-gp", "hinge", "non-saturating"});
  check.Range<uint64_t>("game.gan.width", gan.width(), 1, 4096);
  check.Range<uint64_t>("game.gan.latent", gan.latent(), 1, 65536);
  check.Range<uint64_t>("game.gan.batch", gan.batch(), 1, 65536);
  check.NotNegative("game.gan.gradient_penalty", gan.gradient_penalty());
  check.Range("game.gan.ema", gan.ema(), 0.0, 0.999999);
  const DataConfig& data = gan.data();
  check.OneOf("game.gan.data.name", data.name(),
              {"emoji-32", "cifar-10", "cifar-100", "gaussian-mixture"});
  check.OneOf("game.gan.data.shard", data.shard(), {"iid", "dirichlet"});
  check.Positive("game.gan.data.alpha", data.alpha());
}

void CheckGame(const GameConfig& game, Checker& check) {
  if (game.has_gan()) CheckGan(game.gan(), check);
  if (game.has_bilinear()) {
    check.Range<uint64_t>("game.bilinear.dimension",
                          game.bilinear().dimension(), 1, 1 << 14);
    check.NotNegative("game.bilinear.noise", game.bilinear().noise());
  }
  if (game.has_quadratic()) {
    check.Range<uint64_t>("game.quadratic.dimension",
                          game.quadratic().dimension(), 1, 1 << 24);
    check.NotNegative("game.quadratic.noise", game.quadratic().noise());
    check.NotNegative("game.quadratic.heterogeneity",
                      game.quadratic().heterogeneity());
  }
  if (game.has_synthetic()) {
    const SyntheticConfig& synthetic = game.synthetic();
    check.Range<uint64_t>("game.synthetic.parameters", synthetic.parameters(),
                          2, 1 << 28);
    check.OneOf("game.synthetic.pace", synthetic.pace(), {"burn", "sleep"});
    check.NotNegative("game.synthetic.heterogeneity",
                      synthetic.heterogeneity());
    if (synthetic.step_time() != "0") {
      check.Duration("game.synthetic.step_time", synthetic.step_time());
    }
  }
}

}  // namespace

std::vector<Problem> FindProblems(const RunConfig& config) {
  Checker check;
  CheckRun(config, check);
  CheckMixing(config, check);
  CheckStep(config, check);
  CheckGame(config.game(), check);
  std::vector<Problem> problems = check.Take();
  if (!problems.empty()) return problems;
  return FindMisfits(config);
}

}  // namespace gossamer
