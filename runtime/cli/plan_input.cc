#include "runtime/cli/plan_input.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "runtime/config/run_config.h"
#include "runtime/lab/scenario.h"
#include "runtime/plan/matrix_text.h"

namespace gossamer {
namespace {

constexpr size_t kMostBytes = 4 << 20;  // of a matrix file
constexpr double kSecondsPerNano = 1e-9;

absl::Status Invalid(const absl::Status& status) {
  return absl::InvalidArgumentError(status.message());
}

absl::StatusOr<std::string> ReadMatrixFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad() || (!file.eof() && text.size() <= kMostBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--matrix ", path, ": cannot be read"));
  }
  if (text.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--matrix ", path, ": over 4 MiB is no matrix"));
  }
  return text;
}

// Jitter counts in full: nothing overtakes, so the last of many packets comes
// as late as the latest of them.
LinkTimes::Link TimesOf(const LinkSpec& spec, uint32_t mtu) {
  const double share = (mtu - 52.0) / mtu;  // as kPayloadShare of 1500
  const auto rate = static_cast<double>(spec.bytes_per_second);
  return {.latency =
              kSecondsPerNano * static_cast<double>(spec.delay + spec.jitter),
          .seconds_per_byte = rate > 0 ? 1 / (rate * share) : 0};
}

absl::Status FromScenario(const std::string& path,
                          std::optional<uint32_t> peers, PlanInput& input) {
  const absl::StatusOr<Scenario> scenario = LoadScenario(path, peers);
  if (!scenario.ok()) return Invalid(scenario.status());
  const auto size = static_cast<int>(scenario->hosts.size());
  input.network = scenario->name;
  input.scenario_file = path;
  input.request.links = LinkTimes(size);
  bool loses = false, fails = false;
  for (int i = 0; i < size; ++i) {
    input.hosts.push_back(scenario->hosts[i].name);
    for (int j = 0; j < size; ++j) {
      if (i == j) continue;
      const LinkSpec& spec = scenario->links[i][j];
      input.request.links(i, j) = TimesOf(spec, scenario->mtu);
      loses |= spec.loss > 0;
      fails |= !spec.outages.empty();
    }
  }
  if (loses) {
    input.warnings.push_back(
        "links lose packets, which slows TCP down; the plan leaves it out");
  }
  if (fails) {
    input.warnings.push_back("links have outages; the plan leaves them out");
  }
  if (scenario->stock_tcp) {
    input.warnings.push_back(
        "TCP is not tuned (tcp: \"stock\") and may not fill long links; the "
        "plan assumes that it does");
  }
  return absl::OkStatus();
}

// The same network as a file of the lab.
std::string ScenarioTextOf(const std::string& name,
                           const NetworkMatrix& matrix) {
  const size_t size = matrix.names.size();
  std::string out = absl::StrCat("name: \"", name, "\"\nhosts: ", size, "\n");
  const auto rate = [&](size_t from, size_t to) -> std::string {
    const double mbit = matrix.mbit[from][to];
    return mbit > 0 ? absl::StrFormat("%.6fmbit", mbit) : "unlimited";
  };
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = i + 1; j < size; ++j) {
      absl::StrAppendFormat(&out,
                            "link { a: \"host-%d\" b: \"host-%d\" rtt: "
                            "\"%.6fms\" a_to_b { rate: \"%s\" } b_to_a { rate: "
                            "\"%s\" } }\n",
                            i, j, matrix.rtt_ms[i][j], rate(i, j), rate(j, i));
    }
  }
  return out;
}

absl::Status FromMatrix(const std::string& path, std::optional<uint32_t> peers,
                        PlanInput& input) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string text, ReadMatrixFile(path));
  GOSSAMER_ASSIGN_OR_RETURN(NetworkMatrix matrix,
                            ParseNetworkMatrix(text, path));
  if (peers && *peers > matrix.names.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", matrix.names.size(), " peers, but ",
                     *peers, " are asked for"));
  }
  if (peers) matrix.names.resize(*peers);
  const auto size = static_cast<int>(matrix.names.size());
  input.request.links = LinkTimes(size);
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      if (i == j) continue;
      const double mbit = matrix.mbit[i][j];
      input.request.links(i, j) = {
          .latency = 1e-3 * matrix.rtt_ms[i][j] / 2,
          .seconds_per_byte = mbit > 0 ? 8e-6 / (mbit * kPayloadShare) : 0};
    }
  }
  input.network = std::filesystem::path(path).stem().string();
  input.hosts = matrix.names;
  input.scenario_text = ScenarioTextOf("matrix", matrix);
  return absl::OkStatus();
}

absl::Status FromConfig(const PlanOptions& options, PlanInput& input,
                        std::optional<uint32_t>& peers) {
  if (options.config.empty()) {
    if (options.set.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--set changes a --config; give one");
  }
  const absl::StatusOr<RunConfig> config =
      LoadRunConfig(options.config, options.set);
  if (!config.ok()) return Invalid(config.status());
  peers = config->peers();
  input.request.seed = config->seed();
  if (!config->game().has_synthetic()) return absl::OkStatus();
  const SyntheticConfig& game = config->game().synthetic();
  input.request.parameters = game.parameters();
  const auto step = ParsePositiveDuration(game.step_time());
  if (step.ok()) input.request.step_seconds = absl::ToDoubleSeconds(*step);
  return absl::OkStatus();
}

absl::Status FromNumbers(const PlanOptions& options, PlanRequest& request) {
  request.codec_bytes_per_second = options.codec_rate * 1e9;
  if (options.parameters) request.parameters = *options.parameters;
  if (!options.step_time.empty()) {
    const auto step = ParsePositiveDuration(options.step_time);
    if (!step.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--step-time \"", options.step_time,
                       "\"; write a duration with its unit, such as 40ms"));
    }
    request.step_seconds = absl::ToDoubleSeconds(*step);
  }
  if (request.parameters == 0) {
    return absl::InvalidArgumentError(
        "how large is the model?  Give --parameters, of generator and "
        "discriminator together, such as 2258308 (a --config says it only of "
        "a synthetic game)");
  }
  if (request.step_seconds == 0) {
    return absl::InvalidArgumentError(
        "how long does a step take?  Give --step-time, such as 40ms: "
        "seconds_computing of a run's summary.json over its steps (a --config "
        "says it only of a synthetic game)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlanInput> LoadPlanInput(const PlanOptions& options) {
  if (options.scenario.empty() == options.matrix.empty()) {
    return absl::InvalidArgumentError(
        "say which network: exactly one of --scenario and --matrix");
  }
  PlanInput input{.request = {.links = LinkTimes(0)},
                  .network = "",
                  .hosts = {},
                  .scenario_file = "",
                  .scenario_text = "",
                  .warnings = {}};
  std::optional<uint32_t> peers;
  GOSSAMER_RETURN_IF_ERROR(FromConfig(options, input, peers));
  GOSSAMER_RETURN_IF_ERROR(FromNumbers(options, input.request));
  if (options.peers) peers = static_cast<uint32_t>(*options.peers);
  GOSSAMER_RETURN_IF_ERROR(options.matrix.empty()
                               ? FromScenario(options.scenario, peers, input)
                               : FromMatrix(options.matrix, peers, input));
  return input;
}

}  // namespace gossamer
