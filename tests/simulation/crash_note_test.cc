// A process that a signal ends writes the words of the thread that got it, of a
// fault, an abort or an exhausted stack, and otherwise those of all threads.

#include "tests/simulation/crash_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>

namespace gossamer {
namespace crash_note_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::KilledBySignal;
using ::testing::Not;

// Another thread that has set its words and waits.
class Bystander {
 public:
  explicit Bystander(const std::string& words)
      : thread_([this, words] {
          CrashNote last;
          last.Set(words);
          said_.count_down();
          over_.wait();
        }) {
    said_.wait();
  }
  ~Bystander() {
    over_.count_down();
    thread_.join();
  }

 private:
  std::latch said_{1}, over_{1};
  std::thread thread_;
};

class CrashNoteDeathTest : public ::testing::Test {
 protected:
  CrashNoteDeathTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const rlimit none = {};
    ::setrlimit(RLIMIT_CORE, &none);
  }
};

// Each call keeps its part of the stack, so that the recursion is not optimized
// away.
int Descend(int depth) {
  std::array<volatile char, 4096> page;
  page[depth % 4096] = static_cast<char>(depth);
  return depth < 0 ? 0 : Descend(depth + 1) + page[depth % 4096];
}

TEST_F(CrashNoteDeathTest, AThreadThatAbortsWritesItsLastWords) {
  EXPECT_EXIT(
      {
        CrashNote last;
        last.Set("seed 6");
        last.Set("seed 7\n  replay: it");
        std::abort();
      },
      KilledBySignal(SIGABRT), EndsWith("SIGABRT in seed 7\n  replay: it\n"));
}

TEST_F(CrashNoteDeathTest, OnlyTheThreadThatGotTheSignalWritesItsWords) {
  EXPECT_EXIT(
      {
        Bystander other("seed 8");
        CrashNote last;
        last.Set("seed 7");
        std::abort();
      },
      KilledBySignal(SIGABRT),
      AllOf(HasSubstr("SIGABRT in seed 7\n"), Not(HasSubstr("seed 8"))));
}

// A fault dies of the fault, or of the sanitizer that catches it.
TEST_F(CrashNoteDeathTest, AThreadThatOverflowsItsStackWritesItsLastWords) {
  EXPECT_DEATH(
      {
        CrashNote last;
        last.Set("seed 7");
        std::exit(Descend(0));
      },
      HasSubstr("SIGSEGV in seed 7\n"));
}

// A timeout sends its signal to the process, and a thread without words gets
// it.
TEST_F(CrashNoteDeathTest, ASignalFromOutsideWritesTheWordsOfEveryThread) {
  EXPECT_EXIT(
      {
        Bystander one("seed 7");
        Bystander two("seed 8");
        std::raise(SIGTERM);
      },
      KilledBySignal(SIGTERM),
      AllOf(HasSubstr("SIGTERM in seed 7\n"),
            HasSubstr("SIGTERM in seed 8\n")));
}

TEST_F(CrashNoteDeathTest, WordsAreCutAndEndWithTheirThread) {
  EXPECT_EXIT(
      {
        { Bystander gone("seed 9"); }
        CrashNote last;
        last.Set(std::string(2 * CrashNote::kMaxBytes, 'x'));
        std::abort();
      },
      KilledBySignal(SIGABRT),
      EndsWith("SIGABRT in " + std::string(CrashNote::kMaxBytes, 'x') + "\n"));
  EXPECT_EXIT(
      {
        { Bystander gone("seed 9"); }
        std::raise(SIGTERM);
      },
      KilledBySignal(SIGTERM), Not(HasSubstr("seed 9")));
}

TEST_F(CrashNoteDeathTest, AnIgnoredSignalStaysIgnored) {
  EXPECT_EXIT(
      {
        std::signal(SIGINT, SIG_IGN);
        CrashNote last;
        last.Set("seed 7");
        std::raise(SIGINT);
        std::exit(3);
      },
      ExitedWithCode(3), Not(HasSubstr("seed 7")));
}

}  // namespace crash_note_test
}  // namespace gossamer
