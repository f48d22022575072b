#include "runtime/config/run_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/method/registry.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "runtime/config/config_text.h"
#include "runtime/config/datalens_config.h"
#include "runtime/config/run_config_check.h"

namespace gossamer {
namespace {

// The part that all peers must agree on.
RunConfig Shared(RunConfig config) {
  config.clear_name();
  config.clear_evaluation();
  config.clear_checkpoint();
  config.clear_transport();
  if (config.has_resources()) {
    config.mutable_resources()->clear_device();
    config.mutable_resources()->clear_fabric();
    config.mutable_resources()->clear_congestion_control();
    config.mutable_resources()->clear_tls_gate();
    // Earlier releases had 1 by default, with which 0 agrees: their peers and
    // checkpoints are of the same configuration.
    if (config.resources().connections() == 0) {
      config.mutable_resources()->set_connections(1);
    }
  }
  if (config.game().has_gan()) {
    config.mutable_game()->mutable_gan()->mutable_data()->clear_path();
  }
  if (config.game().has_datalens()) {
    config.mutable_game()->mutable_datalens()->clear_path();
  }
  return config;
}

void AppendLines(const google::protobuf::Message& message,
                 const std::string& prefix, std::string& lines) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    // A secret: the lines go to the service and into messages.
    if (field->name() == "noise_seed") continue;
    const std::string key = absl::StrCat(prefix, field->name());
    const int count =
        field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const int index = field->is_repeated() ? i : -1;
      if (field->cpp_type() ==
          google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
        AppendLines(field->is_repeated()
                        ? reflection.GetRepeatedMessage(message, field, i)
                        : reflection.GetMessage(message, field),
                    absl::StrCat(key, "."), lines);
        continue;
      }
      std::string value;
      google::protobuf::TextFormat::PrintFieldValueToString(message, field,
                                                            index, &value);
      absl::StrAppend(&lines, key, ": ", value, "\n");
    }
  }
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  return ReadConfigText(path, "a configuration",
                        "deploy/configs/ has examples to start from");
}

absl::StatusOr<RunConfig> ParseGiven(std::string_view text,
                                     std::string_view file,
                                     std::span<const std::string> overrides,
                                     FieldOrigins& origins) {
  RunConfig config;
  GOSSAMER_RETURN_IF_ERROR(ParseTextProto(text, file, config, origins));
  for (const std::string& assignment : overrides) {
    GOSSAMER_RETURN_IF_ERROR(SetField(assignment, config, origins));
  }
  return config;
}

}  // namespace

const Method* MethodOf(const RunConfig& config) {
  return FindMethod(config.algorithm());
}

absl::Status CheckGameIsHere(const RunConfig& config) {
  if (!config.game().has_caller()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "game caller is a program's own: start that program, by python -m "
      "gossamer.run or one by one, which joins the fleet with gossamer's "
      "library");
}

bool IsCentralized(const RunConfig& config) {
  const Method* const method = MethodOf(config);
  return method != nullptr && method->centralized();
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
          .degree = static_cast<int>(mixing.degree()),
          .edge_probability = mixing.edge_probability(),
          .edges = mixing.edges(),
          .sites = mixing.sites(),
          .variance_budget = mixing.variance_budget()};
}

void ResolveRunConfig(RunConfig& config) {
  ResolveVotes(config);
  // One method alone steps as the caller does: it and that game imply each
  // other.
  if (config.game().game_case() == GameConfig::GAME_NOT_SET) {
    const Method* const method = MethodOf(config);
    if (method != nullptr && method->callers_step) {
      config.mutable_game()->mutable_caller();
    } else {
      config.mutable_game()->mutable_gan();
    }
  }
  if (config.game().has_caller() && !config.has_algorithm()) {
    const auto of_callers =
        std::ranges::find_if(Methods(), &Method::callers_step);
    config.set_algorithm(std::string((*of_callers)->name));
  }
  const Method* const method = MethodOf(config);
  static constexpr MethodDefaults kUsual;
  const MethodDefaults& usual = method == nullptr ? kUsual : method->defaults;
  MixingConfig& mixing = *config.mutable_mixing();
  if (mixing.graph().empty()) mixing.set_graph(std::string(usual.graph));
  if (!mixing.has_codec() && !usual.codec.empty()) {
    mixing.set_codec(std::string(usual.codec));
  }
  if (!mixing.has_gamma() && usual.gamma != nullptr) {
    mixing.set_gamma(usual.gamma(mixing.codec()));
  }
  if (!mixing.has_overlap_steps()) {
    if (mixing.mixing_rounds() > 1) {
      mixing.set_overlap_steps(MixingConfig::steps_0);
    } else if (usual.overlap_steps) {
      mixing.set_overlap_steps(
          static_cast<MixingConfig::OverlapSteps>(*usual.overlap_steps));
    }
  }
  if (!mixing.gradient_codec().empty() &&
      (!mixing.has_all_reduce() || mixing.all_reduce() == "auto")) {
    const auto made = GradientCompressor::Create(mixing.gradient_codec(), {});
    // Else there is no other choice.
    if (made.ok() && !(*made)->summable()) mixing.set_all_reduce("all-gather");
  }
  StepConfig& step = *config.mutable_step();
  if (step.optimizer().empty()) {
    step.set_optimizer(std::string(usual.optimizer));
  }
  FillDefaults(config);
}

absl::Status ValidateRunConfig(const RunConfig& config) {
  return FindProblems(config).ToStatus();
}

absl::StatusOr<RunConfig> ParseRunConfig(
    std::string_view text, std::string_view file,
    std::span<const std::string> overrides) {
  FieldOrigins origins;
  GOSSAMER_ASSIGN_OR_RETURN(RunConfig config,
                            ParseGiven(text, file, overrides, origins));
  ResolveRunConfig(config);
  GOSSAMER_RETURN_IF_ERROR(AtOrigins(FindProblems(config), origins));
  return config;
}

absl::StatusOr<RunConfig> LoadRunConfig(
    const std::string& path, std::span<const std::string> overrides) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseRunConfig(text, path, overrides);
}

absl::StatusOr<RunConfig> LoadGiven(const std::string& path,
                                    std::span<const std::string> overrides) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  FieldOrigins origins;
  return ParseGiven(text, path, overrides, origins);
}

uint64_t ConfigurationHash(const RunConfig& config) {
  return RngKey(0).Fold(ToTextProto(Shared(config))).Bits(0);
}

std::string ConfigurationLines(const RunConfig& config) {
  std::string lines;
  AppendLines(Shared(config), "", lines);
  return lines;
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
  (void)google::protobuf::TextFormat::PrintToString(config, &text);
  return text;
}

}  // namespace gossamer
