// Files of a run's folder beside checkpoints and logs: the fleet's consensus
// distance, and the ledger of what a student has spent.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/state.h"
#include "google/protobuf/text_format.h"
#include "proto/checkpoint.pb.h"
#include "runtime/base/protobuf_errors.h"
#include "runtime/checkpoint/file_ops.h"
#include "runtime/checkpoint/privacy_ledger.h"
#include "runtime/cli/run_folder.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

namespace gossamer::fuzz {
namespace {

void Consensus(Bytes input) {
  Write("consensus.jsonl", input);
  const auto samples = RunFolder(Folder()).ReadConsensus();
  std::string lines;
  for (const auto& sample : samples) {
    Require(std::isfinite(sample.distance), "JSON has no other numbers");
    absl::StrAppend(&lines, ConsensusLine(sample), "\n");
  }
  Write("consensus.jsonl", std::as_bytes(std::span(lines)));
  const auto again = RunFolder(Folder()).ReadConsensus();
  Require(again.size() == samples.size(), "lines say the same once more");
  for (size_t i = 0; i < again.size(); ++i) {
    Require(again[i].round == samples[i].round &&
                again[i].distance == samples[i].distance &&
                again[i].players.size() == samples[i].players.size(),
            "lines say the same once more");
    Require(i == 0 || again[i].round > again[i - 1].round, "rounds ascend");
  }
}

// The last entry of a ledger as its own manifest says that it is: whose, after
// two bytes of length, and its tensors, whose checksum is made right.
void Ledger(Bytes input) {
  constexpr uint64_t kStep = 7;
  static const std::string& state =
      *new std::string(Folder() + "/kept/round-7/state.safetensors");
  static const bool made = std::filesystem::create_directories(
      std::filesystem::path(state).parent_path());
  Require(made, "a folder can be made");
  Input in(input);
  wire::CheckpointManifest manifest;
  SilenceProtobuf();
  if (!google::protobuf::TextFormat::ParseFromString(
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
  (void)google::protobuf::TextFormat::PrintToString(manifest, &text);
  Write("kept/round-7/manifest.textproto", std::as_bytes(std::span(text)));

  const auto ledger = PrivacyLedger::Open(
      Folder() + "/kept", {.run_id = "datalens",
                           .peer_id = 1,
                           .configuration_hash = 18242925705062088453u});
  Require(!ledger.ok() || (*ledger)->spent() == kStep, "the last entry counts");
}

// A file is hashed in pieces of this size.
constexpr size_t kHashedAtOnce = 1 << 20;

}  // namespace

std::span<const Target> RunTargets() {
  static constexpr Target kTargets[] = {
      {"consensus", Consensus}, {"privacy-ledger", Ledger, kHashedAtOnce}};
  return kTargets;
}

}  // namespace gossamer::fuzz
