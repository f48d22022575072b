// A line on standard error that says at which work a thread was when a signal
// ended the process.
//
// An assertion, a crash or a timeout leaves a signal's number and nothing else.
// This header knows nothing of the threads' work.

#ifndef GOSSAMER_TESTS_SIMULATION_CRASH_NOTE_H_
#define GOSSAMER_TESTS_SIMULATION_CRASH_NOTE_H_

#include <signal.h>

#include <cstddef>
#include <memory>
#include <string_view>

namespace gossamer {

// The last words of the thread that makes it; a thread has one at a time and
// destroys it itself.  The first one of a process takes over the signals that
// end a process (SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, and SIGINT and
// SIGTERM unless they are ignored).  Such a signal writes "SIGABRT in WORDS"
// and a newline to standard error, then ends the process as it would have.
// WORDS are those of the thread that got the signal; if it has none, every
// thread that has some writes a line.
class CrashNote {
 public:
  static constexpr size_t kMaxBytes = 256;
  static constexpr int kMaxThreads = 256;  // further threads have none

  CrashNote();
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

  // Sets the words, cut to kMaxBytes, in place of those before; "" for none.
  void Set(std::string_view words);

 private:
  // A signal stack: a thread that has exhausted its own stack needs it.
  std::unique_ptr<char[]> stack_;
  stack_t stack_before_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_SIMULATION_CRASH_NOTE_H_
