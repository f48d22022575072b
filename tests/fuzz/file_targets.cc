// Files and texts of people: checkpoints, data, configurations, logs, command
// lines.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gan_models/data/cifar_files.h"
#include "gan_models/data/digits.h"
#include "gan_models/data/emoji_list.h"
#include "runtime/base/command_line.h"
#include "runtime/base/safetensors.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/config/run_config.h"
#include "runtime/lab/scenario.h"
#include "runtime/replay/decisions.h"
#include "runtime/telemetry/metrics_log.h"
#include "runtime/telemetry/summary.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"
#include "topology/graph.h"
#include "topology/sites.h"

namespace gossamer::fuzz {
namespace {

void Tensors(Bytes input) {
  const auto read = ParseSafetensors(input);
  if (!read.ok()) return;
  SafetensorsView view;
  for (const auto& [name, t] : read->floats) {
    view.floats.push_back({name, t.shape, t.values});
  }
  for (const auto& [name, b] : read->bytes) view.bytes.push_back({name, b});
  view.metadata = read->metadata;
  const auto text = FormatSafetensors(view);
  Require(text.ok(), "what was read can be written");
  Require(ParseSafetensors(std::as_bytes(std::span(*text))).ok(),
          "and be read again");
}

// A checkpoint's folder: the manifest, after two bytes of length, then the
// tensors.
void CheckpointFolder(Bytes input) {
  static const bool made = [] {
    return std::filesystem::create_directories(Folder() + "/round-7");
  }();
  Require(made, "a folder can be made");
  Input in(input);
  Write("round-7/manifest.textproto", in.TakePiece());
  Write("round-7/state.safetensors", in.Rest());
  const CheckpointStore store(Folder(), 1);
  (void)store.Rounds();
  (void)store.Load(7);
}

// The input is the test batch and every training batch of a tiny data set.
void Cifar(Bytes input) {
  static const bool linked = [] {
    for (const char* name :
         {"data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
          "data_batch_5.bin", "test_batch.bin", "train.bin", "test.bin"}) {
      std::filesystem::create_symlink("data_batch_1.bin",
                                      Folder() + "/" + name);
    }
    std::filesystem::create_symlink("batches.meta.txt",
                                    Folder() + "/fine_label_names.txt");
    return true;
  }();
  Require(linked, "all files can be one");
  Write("data_batch_1.bin", input);
  Write("batches.meta.txt", input.first(std::min<size_t>(input.size(), 200)));
  for (const char* format : {"cifar-10", "cifar-100", "emoji-32"}) {
    const auto images = ReadImages(format, Folder(), {});
    if (!images.ok()) continue;
    Require(
        images->train.pixels.size() == images->train.size() * ImageBytes(32),
        "every label has an image");
  }
}

void DigitsText(Bytes input) {
  const auto digits = ReadDigits(Write("digits", input));
  if (!digits.ok()) return;
  for (const ImageBatch* part : {&digits->train, &digits->held_out}) {
    Require(part->images.size() == part->labels.size() * kDigitPixels,
            "every label has an image");
  }
}

void EmojiList(Bytes input) {
  std::istringstream file{std::string(Text(input))};
  const auto list = ParseEmojiList(file);
  if (!list.ok()) return;
  const auto classes = static_cast<int>(EmojiClassNames().size());
  for (const Emoji& emoji : *list) {
    Require(!emoji.code_points.empty(), "an emoji is something");
    Require(emoji.emoji_class >= 0 && emoji.emoji_class < classes,
            "an emoji is of a class");
  }
}

// The configuration is read as one of a small fleet: connecting many peers all
// to all takes long, which is allowed.
void Config(Bytes input) {
  static const std::vector<std::string> few = {"peers=16"};
  const auto config = ParseRunConfig(Text(input), "fuzz", few);
  if (!config.ok()) return;
  const auto again = ParseRunConfig(ToTextProto(*config), "again");
  Require(again.ok() && ConfigurationHash(*again) == ConfigurationHash(*config),
          "a configuration says the same once more");
}

void ConfigOverride(Bytes input) {
  const std::string assignment(Text(input));
  (void)ParseRunConfig("", "fuzz", {{assignment}});
}

void ScenarioFile(Bytes input) {
  const auto scenario = ParseScenario(Text(input), "fuzz", std::nullopt);
  if (!scenario.ok()) return;
  Require(scenario->hosts.size() <= kMaxPeers, "a lab has bounds");
}

void DecisionLog(Bytes input) { (void)Decisions::Replay(Text(input)); }

void EdgeList(Bytes input) { (void)ParseEdgeList(std::string(Text(input)), 8); }

void SitesText(Bytes input) {
  const auto sites = Sites::Parse(std::string(Text(input)));
  if (!sites.ok()) return;
  const std::vector<PeerId> members = FoundingMembers(8);
  for (const int site : sites->Of(members)) {
    Require(site >= 0, "everybody is somewhere");
  }
}

// A peer's log, read as a run's report reads it.
void MetricsLog(Bytes input) {
  const std::string path = Write("metrics.jsonl", input);
  (void)CountEvents(path);
  const auto rounds = ReadMetrics(path);
  if (!rounds.ok()) return;
  for (const RoundMetrics& m : *rounds) {
    const auto again = ParseMetricsLine(ToJsonLine(m));
    Require(again.ok() && again->round == m.round && again->steps == m.steps,
            "a line says the same once more");
  }
  (void)ToJson(Summarize({*rounds}));
}

// Words between line ends, for options of every kind.
void CommandLine(Bytes input) {
  bool flag = false;
  std::string text;
  double number = 0;
  std::optional<uint64_t> count;
  std::vector<std::string> list;
  Command program({.name = "fuzz", .about = "Fuzzes."});
  Command& command = program.AddCommand({.name = "run", .about = "Runs."});
  command.AddOption("--flag", &flag, "a flag");
  command.AddOption("--text", &text, "a choice", {.choices = {"a", "b"}});
  command.AddOption("--number", &number, "a number", {.range = {{0, 9}}});
  command.AddOption("--count", &count, "a count", {.positive = true});
  command.AddOption("--list", &list, "a list", {.delimiter = ','});
  const std::vector<std::string> words = absl::StrSplit(AbslText(input), '\n');
  std::vector<const char*> argv = {"fuzz"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  const auto parsed = program.Parse(static_cast<int>(argv.size()), argv.data());
  if (!parsed.ok()) return;
  Require(number >= 0 && number <= 9 && count.value_or(1) > 0,
          "what is taken is within its bounds");
}

// A file is hashed in pieces of this size.
constexpr size_t kHashedAtOnce = 1 << 20;

}  // namespace

std::span<const Target> FileTargets() {
  static constexpr Target kTargets[] = {
      {"safetensors", Tensors},
      {"checkpoint", CheckpointFolder, kHashedAtOnce},
      {"cifar", Cifar},
      {"config", Config},
      {"config-override", ConfigOverride},
      {"scenario", ScenarioFile},
      {"decisions", DecisionLog},
      {"edge-list", EdgeList},
      {"sites", SitesText},
      {"digits", DigitsText},
      {"emoji-list", EmojiList},
      {"metrics-log", MetricsLog},
      {"command-line", CommandLine}};
  return kTargets;
}

}  // namespace gossamer::fuzz
