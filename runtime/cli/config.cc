// gossamer config: what a key of a configuration means, and a configuration as
// a run would have it.

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "runtime/cli/command.h"
#include "runtime/config/config_keys.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kExamples[] = R"(examples:
  gossamer config explain                       # all keys, a line each
  gossamer config explain mixing.codec
  gossamer config explain deadline --json
  gossamer config show --config c.textproto --set mixing.graph=torus

show checks the file as gossamer train does and prints every key that means
something, with what the algorithm and the defaults add.

JSON keys of explain, a list: key, type, values, default, explanation.)";

struct Options {
  std::string key;
  std::string config;
  std::vector<std::string> set;
  bool json = false;
};

constexpr size_t kWidth = 80;

// Breaks a paragraph between words.
std::string Wrapped(const std::string& paragraph) {
  std::string text, line;
  for (absl::string_view word : absl::StrSplit(paragraph, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      absl::StrAppend(&text, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return absl::StrCat(text, line, "\n");
}

void Print(const ConfigKey& key) {
  std::cout << key.path << ": " << key.type;
  if (!key.default_value.empty())
    std::cout << "; default " << key.default_value;
  std::cout << "\n";
  for (absl::string_view p : absl::StrSplit(key.explanation, '\n')) {
    std::cout << "\n" << Wrapped(std::string(p));
  }
  if (!key.values.empty()) {
    std::cout << "\n" << Wrapped(absl::StrCat("values: ", key.values));
  }
  // A group is explained by the keys in it, a sentence each.  The dot keeps out
  // a key whose name only begins with this one's.
  const std::string prefix = key.path + ".";
  for (const ConfigKey& inner : ConfigKeys()) {
    if (inner.path.rfind(prefix, 0) != 0) continue;
    std::cout << absl::StreamFormat("\n  %-36s %s", inner.path,
                                    FirstSentence(inner.explanation));
  }
  if (key.type == "group of keys") std::cout << "\n";
}

Json ToJson(const ConfigKey& key) {
  return {{"key", key.path},
          {"type", key.type},
          {"values", key.values},
          {"default", key.default_value},
          {"explanation", key.explanation}};
}

int RunExplain(const Options& options) {
  std::vector<ConfigKey> keys = ConfigKeys();
  if (!options.key.empty()) {
    const auto key = FindConfigKey(options.key);
    if (!key.ok()) {
      return PrintError("config", absl::InvalidArgumentError(
                                      std::string(key.status().message())));
    }
    keys = {*key};
  }
  if (options.json) {
    Json all = Json::array();
    for (const ConfigKey& key : keys) all.push_back(ToJson(key));
    std::cout << all.dump(2) << "\n";
  } else if (options.key.empty()) {
    std::cout << ConfigKeysHelp();
  } else {
    Print(keys[0]);
  }
  return kOk;
}

int RunShow(const Options& options) {
  const auto config = LoadRunConfig(options.config, options.set);
  if (!config.ok()) return PrintError("config", config.status());
  std::cout << ToTextProto(*config);
  return kOk;
}

}  // namespace

void AddConfig(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.AddCommand(
      {.name = "config",
       .about = "Explain the keys of a configuration, or "
                "show one as a run would have it",
       .footer = absl::StrCat(kExamples, "\n\nkeys:\n", ConfigKeysHelp())});
  Command& explain =
      command.AddCommand({.name = "explain",
                          .about = "Say what a key means, or list all keys",
                          .footer = kExamples,
                          .run = [options] { return RunExplain(*options); }});
  explain.AddOption("KEY", &options->key, "the key, as in mixing.codec");
  explain.AddOption("--json", &options->json, "answer as JSON");
  Command& show = command.AddCommand(
      {.name = "show",
       .about = "Check a configuration and print it with all defaults",
       .footer = kExamples,
       .run = [options] { return RunShow(*options); }});
  show.AddOption("--config", &options->config, "the file",
                 {.required = true, .value_name = "FILE"});
  show.AddOption("--set", &options->set, "KEY=VALUE over the file",
                 {.value_name = "KEY=VALUE", .one_at_a_time = true});
}

}  // namespace gossamer
