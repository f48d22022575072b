// `gossamer checkpoint` from outside, on a run's folder that the test makes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/testing/cli_program.h"

namespace gossamer {
namespace checkpoint_command_test {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckpointCommand : public Cli {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path() + "/run");
    Write("run/config.textproto",
          "name: \"run\" peers: 2 game { bilinear {} }");
    for (int id = 1; id <= 2; ++id) {
      for (uint64_t round : {10, 20}) {
        Checkpoint c;
        c.id = {.run_id = "run",
                .peer_id = static_cast<uint64_t>(id),
                .round = round,
                .layout_fingerprint = 0xabc,
                .configuration_hash = 0xdef};
        c.floats["parameters"] = {1, 2, static_cast<float>(round)};
        ASSERT_TRUE(CheckpointStore(Folder(id), 2).Save(c).ok());
      }
    }
  }
  std::string Folder(int id) const {
    return absl::StrCat(folder_.path(), "/run/peer-", id, "/checkpoints");
  }
  std::string State(int id, int round) const {
    return absl::StrCat(Folder(id), "/round-", round, "/state.safetensors");
  }
};

TEST_F(CheckpointCommand, EveryCheckpointIsListed) {
  const Result r = Run("checkpoint list --run run --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = ordered_json::parse(r.out);
  EXPECT_EQ(json["common_round"], 20);
  ASSERT_EQ(json["checkpoints"].size(), 4u);
  const auto& last = json["checkpoints"][3];
  EXPECT_EQ(last["peer"], 2);
  EXPECT_EQ(last["round"], 20);
  EXPECT_EQ(last["whole"], true);
  EXPECT_EQ(last["layout"], "0000000000000abc");
  EXPECT_EQ(last["configuration"], "0000000000000def");
  EXPECT_EQ(last["bytes"], std::filesystem::file_size(State(2, 20)));
  EXPECT_THAT(Run("checkpoint list --run run").out,
              AllOf(HasSubstr("   2        20"),
                    HasSubstr("all peers have round 20; --resume")));
  EXPECT_EQ(Run("checkpoint verify --run run").code, 0);
}

TEST_F(CheckpointCommand, ACheckpointWithOneFlippedBitIsReported) {
  std::fstream file(State(2, 20),
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

TEST_F(CheckpointCommand, VerifyingARunWithoutCheckpointsFails) {
  for (int id = 1; id <= 2; ++id) {
    std::filesystem::remove_all(Folder(id));
  }
  EXPECT_EQ(Run("checkpoint list --run run").code, 0);
  const Result r = Run("checkpoint verify --run run");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, HasSubstr("run has no checkpoint"));
}

TEST_F(CheckpointCommand, ACheckpointSetAsideIsListedAndRestored) {
  EXPECT_THAT(Run("checkpoint restore --run run").err,
              HasSubstr("nothing is set aside"));
  for (int id = 1; id <= 2; ++id) {
    ASSERT_EQ(CheckpointStore(Folder(id), 2).SetAsideAfter(10).value(), 20u);
  }
  auto json = ordered_json::parse(Run("checkpoint list --run run --json").out);
  EXPECT_EQ(json["common_round"], 10);
  ASSERT_EQ(json["checkpoints"].size(), 4u);
  EXPECT_EQ(json["checkpoints"][0]["set_aside"], false);
  EXPECT_EQ(json["checkpoints"][3]["round"], 20);
  EXPECT_EQ(json["checkpoints"][3]["set_aside"], true);
  EXPECT_EQ(json["checkpoints"][3]["whole"], true);
  EXPECT_THAT(Run("checkpoint list --run run").out,
              AllOf(HasSubstr("set aside, whole"),
                    HasSubstr("gossamer checkpoint restore --run run")));
  // A machine that runs one of the peers has no such file.
  std::filesystem::remove(folder_.path() + "/run/config.textproto");
  const Result r = Run("checkpoint restore --run run --json");
  ASSERT_EQ(r.code, 0) << r.err;
  json = ordered_json::parse(r.out);
  EXPECT_EQ(json["common_round"], 20);
  EXPECT_EQ(json["checkpoints"][3]["set_aside"], false);
}

TEST_F(CheckpointCommand, CheckpointsAreRestoredForAllPeersOrNone) {
  for (int id = 1; id <= 2; ++id) {
    ASSERT_EQ(CheckpointStore(Folder(id), 2).SetAsideAfter(10).value(), 20u);
  }
  const std::string aside = Folder(2) + "/set-aside-round-20";
  std::filesystem::rename(aside, Folder(2) + "/set-aside-round-21");
  EXPECT_THAT(Run("checkpoint restore --run run").err,
              HasSubstr("of round 20, 21; choose with --round"));
  EXPECT_EQ(Run("checkpoint restore --run run --round 22").code, 2);
  std::filesystem::rename(Folder(2) + "/set-aside-round-21", aside);
  std::filesystem::resize_file(aside + "/state.safetensors", 9);
  const Result r = Run("checkpoint restore --run run --round 20");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, HasSubstr("has 9 bytes"));
  EXPECT_TRUE(std::filesystem::exists(Folder(1) + "/set-aside-round-20"));
  // The damage is reported, but the newest common checkpoint is whole.
  const Result verify = Run("checkpoint verify --run run");
  EXPECT_EQ(verify.code, 0);
  EXPECT_THAT(verify.err, HasSubstr("1 not whole"));
  EXPECT_THAT(verify.out, HasSubstr("set aside, "));
}

TEST_F(CheckpointCommand, WrongCommandLinesAreRefused) {
  EXPECT_EQ(Run("checkpoint").code, 2);
  EXPECT_EQ(Run("checkpoint list").code, 2);
  EXPECT_THAT(Run("checkpoint list --run nowhere").err,
              HasSubstr("nowhere: not a run's folder"));
  const Result r = Run("checkpoint export --run run --out x.safetensors");
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("did not train a GAN"));
}

}  // namespace checkpoint_command_test
}  // namespace gossamer
