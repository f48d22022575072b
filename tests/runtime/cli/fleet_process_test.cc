// Processes of a fleet: how they end, the signals that reach the parent, and
// the folder of a run.

#include "runtime/cli/fleet_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/cli/run_folder.h"
#include "runtime/config/run_config.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace fleet_process_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr absl::Duration kLong = absl::Seconds(60);

std::vector<ProcessExit> WaitForOne(ProcessGroup& group,
                                    SignalWaiter& signals) {
  for (;;) {
    std::vector<ProcessExit> exits = group.Reap();
    if (!exits.empty()) return exits;
    if (signals.Wait(kLong)) return {};  // a child's end is no signal
  }
}

TEST(ProcessGroup, ReportsHowProcessesEnd) {
  SignalWaiter signals;
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  ProcessGroup group;
  ASSERT_TRUE(
      group.Start({"five", {"/bin/sh", "-c", "echo hi; exit 5"}, log}).ok());
  auto exits = WaitForOne(group, signals);
  ASSERT_THAT(exits, SizeIs(1));
  EXPECT_EQ(exits[0].name, "five");
  EXPECT_EQ(exits[0].Describe(), "ended with code 5");
  EXPECT_EQ(Tail(log, 5), "hi");
  ASSERT_TRUE(group.Start({"dead", {"/bin/sh", "-c", "kill -9 $$"}, log}).ok());
  exits = WaitForOne(group, signals);
  ASSERT_THAT(exits, SizeIs(1));
  EXPECT_EQ(exits[0].Describe(), "was killed by signal 9 (Killed)");
}

TEST(ProcessGroup, EndsItsProcessesWithItself) {
  SignalWaiter signals;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  {
    ProcessGroup group;
    // The child holds the pipe's write end as its stdout.
    const std::string write_end = "/proc/" + std::to_string(::getpid()) +
                                  "/fd/" + std::to_string(ends[1]);
    ASSERT_TRUE(
        group.Start({"sleeper", {"/bin/sleep", "1000"}, write_end}).ok());
    ::close(ends[1]);
    EXPECT_EQ(group.running(), 1u);
  }
  // The pipe ends only when no process has it open.
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

TEST(ProcessGroup, SignalsAreTheParentsOwn) {
  SignalWaiter signals;
  const TemporaryFolder folder;
  ProcessGroup group;
  ASSERT_TRUE(group.Start({"waiter", {"/bin/sleep", "1000"}, ""}).ok());
  ::kill(::getpid(), SIGINT);
  EXPECT_EQ(signals.Wait(kLong), SIGINT);
  ::kill(::getpid(), SIGINT);
  EXPECT_EQ(signals.Wait(kLong), std::nullopt) << "an echo";
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(signals.Wait(kLong), SIGTERM);
  EXPECT_THAT(group.Reap(), SizeIs(0));
  group.Signal(SIGTERM);
  EXPECT_TRUE(group.WaitAll(signals, kLong));
}

// A process that goes on after the grace is killed and named; one that ends in
// time is not.
TEST(ProcessGroup, SaysWhoHadToBeKilled) {
  SignalWaiter signals;
  const TemporaryFolder folder;
  ProcessGroup group;
  const auto start = [&](const std::string& name, const std::string& command) {
    const std::string log = folder.path() + "/" + name;
    ASSERT_TRUE(
        group.Start({name, {"/bin/sh", "-c", command + "; wait"}, log}).ok());
    for (int i = 0; i < 5000 && Tail(log, 1) != "up"; ++i) {
      signals.Wait(absl::Milliseconds(5));
    }
  };
  start("deaf", "trap '' TERM; sleep 1000 & echo up");
  start("good", "trap 'kill $!; exit 0' TERM; sleep 1000 & echo up");
  const std::string said = group.End(signals, absl::Milliseconds(300));
  EXPECT_THAT(said, StartsWith("deaf was killed, "));
  EXPECT_THAT(said, HasSubstr(" after being asked to end"));
  EXPECT_EQ(group.running(), 0u);
  start("deaf too", "trap '' TERM; sleep 1000 & echo up");
  ::kill(::getpid(), SIGINT);
  EXPECT_THAT(group.End(signals, kLong), StartsWith("deaf too was killed, "))
      << "a signal ends the wait";
  EXPECT_EQ(group.End(signals, kLong), "");
  EXPECT_EQ(group.Kill(kLong), "");
}

TEST(ProcessGroup, NamesAProgramThatIsNotThere) {
  ProcessGroup group;
  const absl::Status status = group.Start({"x", {"/no/such/program"}, ""});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/program"));
}

TEST(Tail, IsTheEndOfAFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  std::ofstream file(path);
  for (int i = 1; i <= 5000; ++i) file << "line " << i << "\n";
  file.close();
  EXPECT_EQ(Tail(path, 2), "line 4999\nline 5000");
  EXPECT_EQ(Tail(folder.path() + "/none", 2), "");
}

class RunFolderTest : public ::testing::Test {
 protected:
  void SaveCheckpoint(uint64_t id, uint64_t round) {
    std::vector<float> x = {1, 2};
    const auto checkpoint =
        TakeCheckpoint({.run_id = "r", .round = round},
                       [&](StateVisitor& v) { v.Floats(kParametersName, x); });
    ASSERT_TRUE(CheckpointStore(folder_.PeerPath(id) + "/checkpoints", 9)
                    .Save(*checkpoint)
                    .ok());
  }

  const TemporaryFolder temporary_;
  const RunFolder folder_{temporary_.path() + "/runs/x"};
};

TEST_F(RunFolderTest, KeepsTheConfiguration) {
  EXPECT_FALSE(folder_.Exists());
  EXPECT_FALSE(folder_.LoadConfig().ok());
  const auto config = ParseRunConfig("rounds: 7", "c");
  ASSERT_TRUE(folder_.Create(*config, "{}").ok());
  EXPECT_TRUE(folder_.Exists());
  EXPECT_EQ(ToTextProto(*folder_.LoadConfig()), ToTextProto(*config));
}

TEST_F(RunFolderTest, FindsTheNewestRoundOfAll) {
  EXPECT_EQ(folder_.NewestCommonRound(2), 0u);
  for (uint64_t round : {10, 20, 30}) SaveCheckpoint(1, round);
  EXPECT_EQ(folder_.NewestCommonRound(2), 0u);
  for (uint64_t round : {10, 20}) SaveCheckpoint(2, round);
  EXPECT_EQ(folder_.NewestCommonRound(2), 20u);
  EXPECT_THAT(*folder_.StateFiles(),
              ElementsAre(HasSubstr("peer-1/checkpoints/round-20/state."),
                          HasSubstr("peer-2/checkpoints/round-20/state.")));
  EXPECT_THAT(*folder_.StateFile(1), HasSubstr("round-30"));
  EXPECT_EQ(folder_.StateFile(5).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RunFolderTest, FindsTheNewestSamples) {
  EXPECT_EQ(folder_.NewestSamples(), "");
  for (const std::string name : {"round-9.png", "round-100.png", "x.png"}) {
    std::filesystem::create_directories(folder_.PeerPath(1) + "/samples");
    std::ofstream(folder_.PeerPath(1) + "/samples/" + name) << "x";
  }
  EXPECT_THAT(folder_.NewestSamples(), HasSubstr("peer-1/samples/round-100"));
}

TEST_F(RunFolderTest, ConsensusOfALaterIncarnationCounts) {
  ASSERT_TRUE(folder_.Create(*ParseRunConfig("", "c"), "{}").ok());
  std::ofstream(folder_.ConsensusPath())
      << ConsensusLine({.round = 10, .distance = 1e-3}) << "\n"
      << ConsensusLine({.round = 20, .distance = 1e-4}) << "\n"
      << ConsensusLine({12, 1e-5, {{"student", 2e-6}, {"discriminator", 8e-6}}})
      << "\n{\"rou";
  const std::vector<Consensus> samples = folder_.ReadConsensus();
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_TRUE(samples[0].players.empty());
  EXPECT_EQ(samples[1].round, 12u);
  EXPECT_EQ(samples[1].distance, 1e-5);
  ASSERT_THAT(samples[1].players, SizeIs(2));
  EXPECT_EQ(samples[1].players[0].player, "student");
  EXPECT_EQ(samples[1].players[1].value, 8e-6);
}

}  // namespace fleet_process_test
}  // namespace gossamer
