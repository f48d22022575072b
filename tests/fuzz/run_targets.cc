// Files of a run's folder beside checkpoints and logs: the fleet's consensus
// distance, and the configuration and states of a DataLens run.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/state.h"
#include "algorithms/privacy/settings.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "proto/checkpoint.pb.h"
#include "runtime/checkpoint/file_ops.h"
#include "runtime/cli/run_folder.h"
#include "runtime/datalens/kept_state.h"
#include "runtime/datalens/run_text.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

void Consensus(Bytes input) {
  Write("consensus.jsonl", input);
  const std::vector<Sample> samples = RunFolder(Folder()).ReadConsensus();
  std::string lines;
  for (const Sample& sample : samples) {
    Require(std::isfinite(sample.value), "JSON has no other numbers");
    absl::StrAppend(&lines, ConsensusLine(sample), "\n");
  }
  Write("consensus.jsonl", std::as_bytes(std::span(lines)));
  const std::vector<Sample> again = RunFolder(Folder()).ReadConsensus();
  Require(again.size() == samples.size(), "lines say the same once more");
  for (size_t i = 0; i < again.size(); ++i) {
    Require(again[i].round == samples[i].round &&
                again[i].value == samples[i].value,
            "lines say the same once more");
    Require(i == 0 || again[i].round > again[i - 1].round, "rounds ascend");
  }
}

void DataLensConfig(Bytes input) {
  constexpr int kDimensions = 784;
  DataLensRun run;
  if (!ReadRunText(Text(input), "fuzz", run).ok()) return;
  const std::string text = RunText(run);
  DataLensRun again;
  Require(
      ReadRunText(text, "again", again).ok() && RunText(again) == text &&
          DifferenceOf(SettingsText(run.settings), SettingsText(again.settings))
              .empty(),
      "a configuration says the same once more");
  (void)CheckSettings(run.settings, kDimensions);
}

// A state that is there to be overwritten.
class Thing {
 public:
  void Visit(StateVisitor& visitor) {
    visitor.Floats("floats", floats_);
    visitor.Counter("counter", counter_);
    visitor.Bytes("bytes", bytes_);
  }

 private:
  std::vector<float> floats_ = std::vector<float>(2);
  uint64_t counter_ = 0;
  std::vector<std::byte> bytes_;
};

// A state whose own manifest says whose it is: two bytes of length, the
// manifest, and the tensors, whose checksum is made right.  It is kept as a
// state and as a ledger.
void KeptStates(Bytes input) {
  constexpr uint64_t kStep = 7;
  static const std::string& state =
      *new std::string(Folder() + "/kept/round-7/state.safetensors");
  static const bool made = std::filesystem::create_directories(
      std::filesystem::path(state).parent_path());
  Require(made, "a folder can be made");
  Input in(input);
  wire::CheckpointManifest manifest;
  if (const google::protobuf::LogSilencer silent;
      !google::protobuf::TextFormat::ParseFromString(
          std::string(Text(in.TakePiece())), &manifest)) {
    return;
  }
  Write("kept/round-7/state.safetensors", in.Rest());
  manifest.set_round(kStep);
  manifest.clear_files();
  wire::CheckpointFile& file = *manifest.add_files();
  file.set_name("state.safetensors");
  file.set_sha256(SystemFileOps().Sha256(state).value());
  file.set_size(SystemFileOps().Size(state).value());
  std::string text;
  google::protobuf::TextFormat::PrintToString(manifest, &text);
  Write("kept/round-7/manifest.textproto", std::as_bytes(std::span(text)));

  const KeptOptions options = {.folder = Folder() + "/kept",
                               .peer = {1},
                               .settings = "top 32\nsigma 200\n"};
  const auto ledger = PrivacyLedger::Open(options);
  Require(!ledger.ok() || (*ledger)->spent() == kStep, "the last entry counts");
  const auto kept = KeptState::Open(options);
  if (!kept.ok()) return;
  Require((*kept)->steps().contains(kStep), "it is whole");
  Thing thing;
  (void)(*kept)->GoTo(kStep, [&](StateVisitor& v) { thing.Visit(v); });
}

// A file is hashed in pieces of this size.
constexpr size_t kHashedAtOnce = 1 << 20;

}  // namespace

std::span<const Target> RunTargets() {
  static constexpr Target kTargets[] = {
      {"consensus", Consensus},
      {"datalens-config", DataLensConfig},
      {"kept-state", KeptStates, kHashedAtOnce}};
  return kTargets;
}

}  // namespace gossamer::fuzz
