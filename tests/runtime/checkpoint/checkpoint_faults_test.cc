// Every system call of a save and of a load fails in turn, is cut short, or is
// never reached because the process is killed before it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <iostream>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/testing/failing_calls.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace checkpoint_faults_test {

using Effect = CallFault::Effect;
using ::testing::ElementsAre;

Checkpoint CheckpointOf(uint64_t round, float version = 0) {
  Checkpoint c;
  c.id = {.run_id = "r", .peer_id = 3, .round = round};
  c.floats["x"].assign(3000, static_cast<float>(round) / 3 + version);
  c.floats["y"] = {version};
  c.bytes["edge"] = {std::byte{9}, std::byte{8}};
  c.counters["steps"] = round;
  return c;
}

bool Same(const Checkpoint& a, const Checkpoint& b) {
  return a.id == b.id && a.floats == b.floats && a.bytes == b.bytes &&
         a.counters == b.counters;
}

constexpr char kNeeds[] =
    "needs an x86-64 machine on which a process may trace its children; in a "
    "container: --cap-add SYS_PTRACE";

// The state before a save, and the state that it leaves.
struct Scene {
  const char* name;
  std::vector<uint64_t> before;  // rounds of whole checkpoints
  uint64_t saved;                // is of another version than that of `before`
};

std::ostream& operator<<(std::ostream& out, const Scene& scene) {
  return out << scene.name;
}

constexpr int kKept = 2;
enum Result { kSaved = 0, kError = 1, kErrorWithoutPath = 2 };

class CheckpointFaults : public ::testing::TestWithParam<Scene> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(CanTraceCalls()) << kNeeds;
    // An fsync in /dev/shm costs no time.
    if (std::filesystem::exists("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 1);
  }

  // Makes one save with one fault, and checks what must hold whatever its
  // outcome.
  CallOutcome Try(const CallFault& fault) {
    const TemporaryFolder root;
    const std::string folder = root.path() + "/peer-3/checkpoints";
    const Scene& scene = GetParam();
    CheckpointStore store(folder, kKept);
    for (uint64_t round : scene.before) {
      EXPECT_TRUE(store.Save(CheckpointOf(round)).ok());
    }
    const Checkpoint next = CheckpointOf(scene.saved, 1);
    const CallOutcome outcome = RunWithFault(fault, [&] {
      const absl::Status status = CheckpointStore(folder, kKept).Save(next);
      if (status.ok()) return kSaved;
      return absl::StartsWith(status.message(), root.path())
                 ? kError
                 : kErrorWithoutPath;
    });
    EXPECT_NE(outcome.rc, kErrorWithoutPath);
    // A file for which there was no room is removed, and so not synced.
    if (outcome.rc == kSaved && fault.error != ENOSPC) {
      EXPECT_EQ(outcome.unsynced, 0);
    }
    if (scene.before.empty() && fault.call == FileCall::kSync && fault.n <= 2 &&
        outcome.rc == kError) {
      // Otherwise the next save would find the folder with a name that is not
      // durable.
      EXPECT_FALSE(std::filesystem::exists(root.path() + "/peer-3"));
    }
    // The list includes the checkpoint that was to go.
    const auto list = store.List();
    EXPECT_TRUE(list.ok()) << list.status();
    for (const StoredCheckpoint& stored : *list) {
      EXPECT_TRUE(stored.integrity.ok()) << stored.integrity;
    }
    const auto newest = store.LoadNewest();
    if (outcome.rc == kSaved) {
      EXPECT_TRUE(newest.ok() && Same(*newest, next));
    } else if (!scene.before.empty()) {
      EXPECT_TRUE(newest.ok() &&
                  (Same(*newest, next) ||
                   Same(*newest, CheckpointOf(scene.before.back()))));
    } else {
      EXPECT_TRUE(absl::IsNotFound(newest.status()) || Same(*newest, next));
    }
    EXPECT_TRUE(store.Save(next).ok());
    EXPECT_TRUE(Same(store.LoadNewest().value(), next));
    // The folder has no other entries than the kept ones.
    for (const auto& e : std::filesystem::directory_iterator(folder)) {
      EXPECT_TRUE(
          store.Load(std::stoull(e.path().filename().string().substr(6))).ok())
          << e.path();
    }
    return outcome;
  }

  // Tries the fault at every n-th call that there is.
  int TryAll(CallFault fault, const std::function<void(CallOutcome)>& check) {
    for (fault.n = 1;; ++fault.n) {
      SCOPED_TRACE(fault);
      const CallOutcome outcome = Try(fault);
      if (HasFailure() || !outcome.reached) return fault.n - 1;
      check(outcome);
    }
  }
};

TEST_P(CheckpointFaults, AKillBetweenAnyTwoCallsLosesNothing) {
  const int calls = TryAll({.effect = Effect::kKill}, [](CallOutcome outcome) {
    EXPECT_EQ(outcome.rc, std::nullopt);
  });
  EXPECT_GT(calls, 30);
  std::cout << calls << " calls\n";
}

TEST_P(CheckpointFaults, AnErrorOfAnyCallIsReportedOrHarmless) {
  for (const int error : {EIO, EINTR}) {
    TryAll({.error = error}, [](CallOutcome outcome) {
      EXPECT_NE(outcome.rc, std::nullopt);  // any exit is fine, but no abort
    });
  }
}

TEST_P(CheckpointFaults, ASaveReportsEveryFailedWriteSyncAndRename) {
  for (const FileCall call : {FileCall::kWrite, FileCall::kSync,
                              FileCall::kRename, FileCall::kMakeFolder}) {
    if (call == FileCall::kMakeFolder && GetParam().before.empty()) continue;
    for (const int error : {EIO, ENOSPC}) {
      // With two before, one of them makes room.
      const bool may_save = error == ENOSPC && GetParam().before.size() > 1;
      const int calls = TryAll(
          {.call = call, .error = error}, [may_save](CallOutcome outcome) {
            EXPECT_TRUE(outcome.rc == kError ||
                        (may_save && outcome.rc == kSaved));
          });
      EXPECT_GE(calls, 1);
    }
  }
}

TEST_P(CheckpointFaults, InterruptedAndShortCallsGoOn) {
  const auto saved = [](CallOutcome o) { EXPECT_EQ(o.rc, kSaved); };
  for (const FileCall call :
       {FileCall::kWrite, FileCall::kSync, FileCall::kClose}) {
    TryAll({.call = call, .error = EINTR}, saved);
  }
  EXPECT_GE(TryAll({.call = FileCall::kWrite, .effect = Effect::kShort}, saved),
            5);
  TryAll({.call = FileCall::kRead, .effect = Effect::kShort}, saved);
}

INSTANTIATE_TEST_SUITE_P(Scenes, CheckpointFaults,
                         ::testing::Values(Scene{"AFirstOne", {}, 10},
                                           Scene{"ALaterOne", {5, 10}, 20},
                                           Scene{"TheSameRound", {10, 20}, 20}),
                         [](const auto& info) { return info.param.name; });

// A disk that cannot be read is no reason to end, or to invent a state.
TEST(CheckpointLoad, AFailedCallGivesAnErrorOrAnOlderRound) {
  ASSERT_TRUE(CanTraceCalls()) << kNeeds;
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 2);
  for (uint64_t round : {10, 20}) {
    ASSERT_TRUE(store.Save(CheckpointOf(round)).ok());
  }
  for (const CallFault::Effect effect : {Effect::kError, Effect::kShort}) {
    CallFault fault = {.effect = effect, .error = EIO};
    if (effect == Effect::kShort) fault.call = FileCall::kRead;
    for (bool reached = true; reached;) {
      ++fault.n;
      SCOPED_TRACE(fault);
      const CallOutcome outcome = RunWithFault(fault, [&] {
        const auto newest = store.LoadNewest();
        if (!newest.ok()) return 0;
        return Same(*newest, CheckpointOf(newest->id.round)) ? 10 : 1;
      });
      reached = outcome.reached;
      ASSERT_TRUE(outcome.rc == 0 || outcome.rc == 10);
      if (effect == Effect::kShort) {
        EXPECT_EQ(outcome.rc, 10);
      }
    }
  }
}

}  // namespace checkpoint_faults_test
}  // namespace gossamer
