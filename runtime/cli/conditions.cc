#include "runtime/cli/conditions.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/cli/rehearse.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

// The most lines of a difference: a change of every link of a large network is
// one change to its reader.
constexpr int kMaxLines = 5;

std::string TextOf(const Json& conditions) { return conditions.dump(2) + "\n"; }

// Returns the values by their paths, such as "/scenario/links/0/delay_ms".
std::map<std::string, std::string> ValuesOf(const std::string& text) {
  std::map<std::string, std::string> values;
  // A folder of an older program may have no conditions, or others: that is a
  // difference, not an error.
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return values;
  const Json flat = json.flatten();
  for (const auto& [path, value] : flat.items()) {
    values[path] = value.dump();
  }
  return values;
}

}  // namespace

std::string LoopbackConditions() { return TextOf({{"place", "loopback"}}); }

std::string LabConditions(const Scenario& scenario) {
  return TextOf(
      {{"place", "lab"}, {"scenario", Json::parse(ScenarioJson(scenario))}});
}

std::string RehearsalConditions(const Scenario& scenario,
                                const std::string& step_times,
                                const std::vector<std::string>& events) {
  Json conditions = {{"place", "rehearsal"},
                     {"step_times", step_times},
                     {"memory_rate", kRehearsedMemoryRate / 1e9}};
  if (!events.empty()) conditions["events"] = events;
  conditions["scenario"] = Json::parse(ScenarioJson(scenario));
  return TextOf(conditions);
}

std::string ConditionsDifference(const std::string& before,
                                 const std::string& now) {
  const auto old_values = ValuesOf(before);
  const auto new_values = ValuesOf(now);
  // The map holds all paths of both texts, in order.
  std::map<std::string, std::string> all = old_values;
  all.insert(new_values.begin(), new_values.end());
  const auto of = [](const auto& values, const std::string& path) {
    const auto it = values.find(path);
    return it == values.end() ? std::string("none") : it->second;
  };
  std::string lines;
  int count = 0;
  for (const auto& [path, ignored] : all) {
    const std::string was = of(old_values, path), is = of(new_values, path);
    if (was == is || ++count > kMaxLines) continue;
    absl::StrAppend(&lines, path.substr(1), ": ", was, " -> ", is, "\n");
  }
  if (count > kMaxLines) {
    absl::StrAppend(&lines, "and ", count - kMaxLines, " more\n");
  }
  return lines;
}

}  // namespace gossamer
