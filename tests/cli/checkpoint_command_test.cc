// `gossamer checkpoint` on a run's folder made by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/cli/cli_program.h"

namespace gossamer {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckpointCommand : public Cli {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path() + "/run");
    Write("run/config.textproto",
          "name: \"run\" peers: 2 game { bilinear {} }");
    for (int rank = 0; rank < 2; ++rank) {
      for (uint64_t round : {10, 20}) {
        Checkpoint c;
        c.id = {.run_id = "run",
                .peer_id = static_cast<uint64_t>(rank) + 1,
                .round = round,
                .layout_fingerprint = 0xabc,
                .configuration_hash = 0xdef};
        c.floats["parameters"] = {1, 2, static_cast<float>(round)};
        ASSERT_TRUE(CheckpointStore(Folder(rank), 2).Save(c).ok());
      }
    }
  }
  std::string Folder(int rank) const {
    return absl::StrCat(folder_.path(), "/run/peer-", rank, "/checkpoints");
  }
  std::string State(int rank, int round) const {
    return absl::StrCat(Folder(rank), "/round-", round, "/state.safetensors");
  }
};

TEST_F(CheckpointCommand, ListsWhatIsThere) {
  const Result r = Run("checkpoint list --run run --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out);
  EXPECT_EQ(json["common_round"], 20);
  ASSERT_EQ(json["checkpoints"].size(), 4u);
  const auto& last = json["checkpoints"][3];
  EXPECT_EQ(last["rank"], 1);
  EXPECT_EQ(last["round"], 20);
  EXPECT_EQ(last["whole"], true);
  EXPECT_EQ(last["layout"], "0000000000000abc");
  EXPECT_EQ(last["configuration"], "0000000000000def");
  EXPECT_EQ(last["bytes"], std::filesystem::file_size(State(1, 20)));
  EXPECT_THAT(Run("checkpoint list --run run").out,
              AllOf(HasSubstr("   1        20"),
                    HasSubstr("all peers have round 20; --resume")));
  EXPECT_EQ(Run("checkpoint verify --run run").code, 0);
}

TEST_F(CheckpointCommand, OneFlippedBitIsTold) {
  std::fstream file(State(1, 20),
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x7f');
  file.close();
  const Result r = Run("checkpoint verify --run run --json");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, HasSubstr("1 of 4 checkpoints are not whole"));
  const auto json = ordered_json::parse(r.out);
  EXPECT_EQ(json["common_round"], 10);
  EXPECT_EQ(json["checkpoints"][3]["whole"], false);
  EXPECT_THAT(std::string(json["checkpoints"][3]["problem"]),
              HasSubstr("SHA-256"));
  EXPECT_EQ(Run("checkpoint list --run run").code, 0);
}

TEST_F(CheckpointCommand, NothingAtAllIsNotWell) {
  for (int rank = 0; rank < 2; ++rank) {
    std::filesystem::remove_all(Folder(rank));
  }
  EXPECT_EQ(Run("checkpoint list --run run").code, 0);
  const Result r = Run("checkpoint verify --run run");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, HasSubstr("run has no checkpoint"));
}

TEST_F(CheckpointCommand, WrongCallsAreTold) {
  EXPECT_EQ(Run("checkpoint").code, 2);
  EXPECT_EQ(Run("checkpoint list").code, 2);
  EXPECT_THAT(Run("checkpoint list --run nowhere").err,
              HasSubstr("nowhere: not a run's folder"));
  const Result r = Run("checkpoint export --run run --out x.safetensors");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("did not train a GAN"));
}

}  // namespace
}  // namespace gossamer
