// What is read from files: checkpoints, data, configurations, logs.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "algorithms/gossip/saved_edge.h"
#include "gan_models/data/cifar_files.h"
#include "runtime/base/safetensors.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/lab/scenario.h"
#include "runtime/peer/decisions.h"
#include "runtime/peer/run_config.h"
#include "runtime/plan/matrix_text.h"
#include "tests/fuzz/fuzz.h"
#include "topology/graph.h"

namespace gossamer::fuzz {
namespace {

// One folder a process, in memory if that is to be had.
const std::string& Folder() {
  static const std::string* const folder = [] {
    const char* const where = std::filesystem::exists("/dev/shm")
                                  ? "/dev/shm/gossamer-fuzz-XXXXXX"
                                  : "/tmp/gossamer-fuzz-XXXXXX";
    std::string name = where;
    Require(::mkdtemp(name.data()) != nullptr, "a folder can be made");
    std::atexit([] { std::filesystem::remove_all(Folder()); });
    return new std::string(name);
  }();
  return *folder;
}

void Write(const std::string& name, Bytes bytes) {
  std::ofstream(Folder() + "/" + name, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

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

// The manifest, after two bytes of length, then the tensors.
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

// As the test batch and as the train batches of a tiny CIFAR-10.
void Cifar(Bytes input) {
  for (const char* name :
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
    Write(name, input);
  }
  Write("batches.meta.txt", input.first(std::min<size_t>(input.size(), 200)));
  for (const char* format : {"cifar-10", "emoji-32"}) {
    const auto images = ReadImages(format, Folder(), {});
    if (!images.ok()) continue;
    Require(images->train.pixels.size() == images->train.size() * kImageBytes,
            "every label has an image");
  }
}

void Config(Bytes input) {
  const auto config = ParseRunConfig(Text(input), "fuzz");
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
  Require(scenario->hosts.size() <= kMostLabHosts, "a lab has bounds");
}

void Matrix(Bytes input) {
  const auto matrix = ParseNetworkMatrix(Text(input), "fuzz");
  if (!matrix.ok()) return;
  Require(matrix->names.size() == matrix->rtt_ms.size() &&
              matrix->names.size() == matrix->mbit.size(),
          "a matrix is square");
}

void DecisionLog(Bytes input) { (void)Decisions::Replay(Text(input)); }

void EdgeList(Bytes input) { (void)ParseEdgeList(std::string(Text(input)), 8); }

}  // namespace

std::span<const Target> FileTargets() {
  static constexpr Target kTargets[] = {{"safetensors", Tensors},
                                        {"checkpoint", CheckpointFolder},
                                        {"cifar", Cifar},
                                        {"config", Config},
                                        {"config-override", ConfigOverride},
                                        {"scenario", ScenarioFile},
                                        {"matrix", Matrix},
                                        {"decisions", DecisionLog},
                                        {"edge-list", EdgeList}};
  return kTargets;
}

}  // namespace gossamer::fuzz
