// What a thread was at when a signal ended the process.
//
// An assertion, a crash or the end of somebody's patience leaves a signal's
// number and nothing else; with last words it says on standard error where it
// was.  Knows nothing of what the threads do.

#ifndef GOSSAMER_TESTS_SIMULATION_LAST_WORDS_H_
#define GOSSAMER_TESTS_SIMULATION_LAST_WORDS_H_

#include <signal.h>

#include <cstddef>
#include <memory>
#include <string_view>

namespace gossamer {

// Of the thread that makes it, one at a time there, and destroyed there.  The
// first one of a process changes what signals do that end it (SIGABRT, SIGBUS,
// SIGFPE, SIGILL, SIGSEGV, and SIGINT and SIGTERM unless they are ignored): it
// writes "SIGABRT in WORDS" and a newline to standard error, then ends as it
// would have.  Those are the words of the thread that the signal came to; if it
// has none, of every thread that has some, a line each.
class LastWords {
 public:
  static constexpr size_t kMostBytes = 256;
  static constexpr int kMostThreads = 256;  // more have none

  LastWords();
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  // From now on, in place of those before; cut to kMostBytes; "": none.
  void Set(std::string_view words);

 private:
  // A thread that has run out of its stack needs another one to say so.
  std::unique_ptr<char[]> stack_;
  stack_t stack_before_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_SIMULATION_LAST_WORDS_H_
