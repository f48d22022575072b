#include "tests/simulation/crash_note.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace gossamer {
namespace {

// A signal that ends the process, and the action that it had before.
struct Signal {
  int number;
  std::string_view name;
  bool fault;  // an instruction causes it, and would cause it again
  struct sigaction before;
};
std::array<Signal, 7> signals = {{{SIGABRT, "SIGABRT", false, {}},
                                  {SIGBUS, "SIGBUS", true, {}},
                                  {SIGFPE, "SIGFPE", true, {}},
                                  {SIGILL, "SIGILL", true, {}},
                                  {SIGSEGV, "SIGSEGV", true, {}},
                                  {SIGINT, "SIGINT", false, {}},
                                  {SIGTERM, "SIGTERM", false, {}}}};

// A handler reads a slot, and may neither lock nor allocate.
struct Slot {
  std::atomic<bool> taken = false;
  std::atomic<size_t> size = 0;  // 0: no words
  std::array<char, CrashNote::kMaxBytes> text;
};
std::array<Slot, CrashNote::kMaxThreads> slots;
constinit thread_local Slot* own = nullptr;

constexpr size_t kStackBytes = 64 * 1024;

void Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void Tell(const Signal& signal, const Slot& slot) {
  const size_t size = slot.size;
  if (size == 0) return;
  // One write, so that the lines of two threads do not mix.
  constexpr std::string_view kIn = " in ";
  std::array<char, 16 + CrashNote::kMaxBytes> line;
  char* end = std::ranges::copy(signal.name, line.begin()).out;
  end = std::ranges::copy(kIn, end).out;
  end = std::copy_n(slot.text.begin(), size, end);
  *end++ = '\n';
  Write({line.data(), static_cast<size_t>(end - line.data())});
}

void Handle(int number, siginfo_t* info, void*) {
  const int error = errno;
  const Signal& signal = *std::ranges::find(signals, number, &Signal::number);
  if (own != nullptr && own->size != 0) {
    Tell(signal, *own);
  } else {
    for (const Slot& slot : slots) Tell(signal, slot);
  }
  ::sigaction(number, &signal.before, nullptr);
  // A fault recurs by itself, with the address that a debugger asks for.
  if (!signal.fault || info->si_code <= 0) ::raise(number);
  errno = error;
}

void Install() {
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  for (Signal& signal : signals) {
    ::sigaction(signal.number, nullptr, &signal.before);
    if (signal.before.sa_handler == SIG_IGN) continue;
    ::sigaction(signal.number, &action, nullptr);
  }
}

}  // namespace

CrashNote::CrashNote() : stack_(std::make_unique<char[]>(kStackBytes)) {
  static std::once_flag installed;
  std::call_once(installed, Install);
  stack_t stack = {};
  stack.ss_sp = stack_.get();
  stack.ss_size = kStackBytes;
  ::sigaltstack(&stack, &stack_before_);
  for (Slot& slot : slots) {
    if (slot.taken.exchange(true)) continue;
    own = &slot;
    return;
  }
}

CrashNote::~CrashNote() {
  ::sigaltstack(&stack_before_, nullptr);
  if (own == nullptr) return;
  own->size = 0;
  own->taken = false;
  own = nullptr;
}

void CrashNote::Set(std::string_view words) {
  if (own == nullptr) return;
  own->size = 0;
  const size_t size = std::min(words.size(), own->text.size());
  std::copy_n(words.begin(), size, own->text.begin());
  own->size = size;
}

}  // namespace gossamer
