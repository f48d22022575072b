#include "runtime/config/run_config.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/gradient_compressor.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "runtime/config/config_text.h"
#include "runtime/config/run_config_check.h"

namespace gossamer {
namespace {

constexpr size_t kMostBytes = 1 << 20;  // of a configuration file

// What all peers must agree on.
RunConfig Shared(RunConfig config) {
  config.clear_name();
  config.clear_evaluation();
  config.clear_checkpoint();
  if (config.game().has_gan()) {
    config.mutable_game()->mutable_gan()->mutable_data()->clear_path();
  }
  return config;
}

absl::Status Join(const std::vector<Problem>& problems,
                  const FieldOrigins& origins) {
  if (problems.empty()) return absl::OkStatus();
  std::vector<std::string> lines;
  for (const Problem& p : problems) {
    const auto origin = origins.find(p.field);
    lines.push_back(absl::StrCat(
        origin == origins.end() ? "" : absl::StrCat(origin->second, ": "),
        p.field, " ", p.what));
  }
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

}  // namespace

std::vector<std::string_view> AlgorithmNames() {
  return {"dposg", "dp-oadam",  "rand-dp-oadam",    "cp-oadam",
          "cold",  "dyna-cold", "gradient-tracking"};
}

absl::StatusOr<absl::Duration> ParsePositiveDuration(std::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration(std::string(text), &duration) ||
      duration <= absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is \"", std::string(text),
                     "\"; write a duration above 0, such as 40ms or 2m30s"));
  }
  return duration;
}

ScheduleSpec ScheduleSpecOf(const MixingConfig& mixing) {
  return {.graph = mixing.graph(),
          .schedule = mixing.schedule(),
          .weights = mixing.weights(),
          .degree = static_cast<int>(mixing.degree()),
          .edge_probability = mixing.edge_probability(),
          .edges = mixing.edges(),
          .sites = mixing.sites(),
          .variance_budget = mixing.variance_budget()};
}

absl::Status ApplyOverride(std::string_view assignment, RunConfig& config) {
  FieldOrigins origins;
  return SetField(assignment, config, origins);
}

void ResolveRunConfig(RunConfig& config) {
  if (config.game().game_case() == GameConfig::GAME_NOT_SET) {
    config.mutable_game()->mutable_gan();
  }
  const std::string algorithm = config.algorithm();
  const bool central = algorithm == "cp-oadam";
  MixingConfig& mixing = *config.mutable_mixing();
  if (mixing.graph().empty()) mixing.set_graph(central ? "complete" : "ring");
  if (mixing.schedule().empty()) {
    mixing.set_schedule(algorithm == "rand-dp-oadam" ? "permuted-ring"
                                                     : "fixed");
  }
  const bool dual = algorithm == "cold" || algorithm == "dyna-cold";
  if (dual) {
    // NIDS, which COLD becomes without compression, takes half a step of mixing
    // (Li, Shi, Yan, IEEE TSP 2019).
    if (!mixing.has_order()) mixing.set_order("step-then-mix");
    if (algorithm == "dyna-cold" && !mixing.has_codec()) {
      mixing.set_codec("dyna");
    }
    if (!mixing.has_gamma()) {
      mixing.set_gamma(absl::StartsWith(mixing.codec(), "dyna") ? 0.05 : 0.5);
    }
  }
  if (!mixing.has_overlap_steps() &&
      (central || dual || mixing.mixing_rounds() > 1)) {
    mixing.set_overlap_steps(MixingConfig::steps_0);
  }
  if (!mixing.gradient_codec().empty() &&
      (!mixing.has_all_reduce() || mixing.all_reduce() == "auto")) {
    const auto made = GradientCompressor::Create(mixing.gradient_codec(), {});
    // Else there is no other choice.
    if (made.ok() && !(*made)->sums()) mixing.set_all_reduce("all-gather");
  }
  StepConfig& step = *config.mutable_step();
  if (step.optimizer().empty()) {
    step.set_optimizer(algorithm == "dposg"               ? "osg"
                       : algorithm == "gradient-tracking" ? "ogda"
                       : dual                             ? "cold"
                                                          : "oadam");
  }
  FillDefaults(config);
}

absl::Status ValidateRunConfig(const RunConfig& config) {
  return Join(FindProblems(config), {});
}

absl::StatusOr<RunConfig> ParseRunConfig(
    std::string_view text, std::string_view file,
    std::span<const std::string> overrides) {
  RunConfig config;
  FieldOrigins origins;
  GOSSAMER_RETURN_IF_ERROR(ParseTextProto(text, file, config, origins));
  for (const std::string& assignment : overrides) {
    GOSSAMER_RETURN_IF_ERROR(SetField(assignment, config, origins));
  }
  ResolveRunConfig(config);
  GOSSAMER_RETURN_IF_ERROR(Join(FindProblems(config), origins));
  return config;
}

absl::StatusOr<RunConfig> LoadRunConfig(
    const std::string& path, std::span<const std::string> overrides) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(absl::StrCat(
        path, ": cannot be read; deploy/configs/ has examples to start from"));
  }
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostBytes || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a configuration (over 1 MiB or unreadable)"));
  }
  return ParseRunConfig(text, path, overrides);
}

uint64_t ConfigurationHash(const RunConfig& config) {
  return RngKey(0).Fold(ToTextProto(Shared(config))).Bits(0);
}

std::string ConfigurationDifference(const RunConfig& before,
                                    const RunConfig& now) {
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  differencer.Compare(Shared(before), Shared(now));
  return differences;
}

std::string ToTextProto(const RunConfig& config) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  return text;
}

}  // namespace gossamer
