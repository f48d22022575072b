#include "tests/algorithms/kernels/cuda_fibers.h"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace fibers {
namespace {

constexpr size_t kStackSize = 64 << 10;
constexpr uint32_t kLanes = 32;

// A place to go on from.  The first way to a stack is that of ucontext.h; from
// then on a jump is enough, and saves the system calls for signal masks.
struct Context {
  ucontext_t first;
  jmp_buf later;
  bool begun = false;
  void* sanitizer = nullptr;  // what the thread sanitizer knows it by
};

// A thread of a block, and of each block after it.
struct Fiber {
  Context context;
  std::unique_ptr<char[]> stack;
  uint32_t thread = 0;
  bool done = true;
  // The operation that the fiber waits in, and its arguments.
  Wait wait = Wait::kNothing;
  uint32_t mask = 0, from = 0;
  uint64_t value = 0;
};

[[noreturn]] void Die(const char* what, const Fiber& fiber) {
  std::fprintf(stderr, "thread %u: %s\n", fiber.thread, what);
  std::abort();
}

// A block of threads: one runs at a time, until it waits or ends.
class Block {
 public:
  void Run(const Place& place, const std::function<void()>& kernel) {
    place_ = place;
    kernel_ = &kernel;
    const uint32_t n = place.threads.x;
    if (fibers_.size() < n) fibers_.resize(n);
    for (uint32_t i = 0; i < n; ++i) Prepare(fibers_[i], i);
    // Each pass takes all threads from one barrier to the next.
    while (Pass(n)) {
    }
  }

  const Place& place() const { return place_; }

  // Of the fiber that runs.
  uint64_t Meet(Wait what, uint32_t mask, uint64_t value, uint32_t from) {
    Fiber& fiber = *running_;
    fiber.wait = what;
    fiber.mask = mask;
    fiber.value = value;
    fiber.from = from;
    Leave(fiber);
    return fiber.value;
  }

 private:
  void Prepare(Fiber& fiber, uint32_t thread) {
    fiber.thread = thread;
    fiber.done = false;
    fiber.wait = Wait::kNothing;
    if (fiber.stack != nullptr) return;
    fiber.stack.reset(new char[kStackSize]);
    ucontext_t& first = fiber.context.first;
    ::getcontext(&first);
    first.uc_stack.ss_sp = fiber.stack.get();
    first.uc_stack.ss_size = kStackSize;
    first.uc_link = nullptr;
    ::makecontext(&first, Entry, 0);
  }

  static void Entry();

  void Begin() {
#if defined(__SANITIZE_ADDRESS__)
    // A fiber is always entered from the host's stack.
    __sanitizer_finish_switch_fiber(nullptr, &host_stack_, &host_stack_size_);
#endif
    Fiber& fiber = *running_;
    for (;;) {
      (*kernel_)();
      fiber.done = true;
      Leave(fiber);
    }
  }

  void Resume(Fiber& fiber) {
    running_ = &fiber;
    fiber.wait = Wait::kNothing;
    place_.thread.x = fiber.thread;
    Switch(host_, fiber.context, fiber.stack.get(), kStackSize);
  }

  void Leave(Fiber& fiber) {
    Switch(fiber.context, host_, host_stack_, host_stack_size_);
  }

  static void Switch(Context& from, Context& to, const void* stack,
                     size_t size) {
#if defined(__SANITIZE_ADDRESS__)
    // The sanitizer has to be told of each change of stacks, and takes a jump
    // for one within a stack.
    void* kept = nullptr;
    __sanitizer_start_switch_fiber(&kept, stack, size);
    ::swapcontext(&from.first, &to.first);
    __sanitizer_finish_switch_fiber(kept, nullptr, nullptr);
#elif defined(__SANITIZE_THREAD__)
    from.sanitizer = __tsan_get_current_fiber();
    if (to.sanitizer == nullptr) to.sanitizer = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(to.sanitizer, 0);
    ::swapcontext(&from.first, &to.first);
#else
    from.begun = true;
    if (_setjmp(from.later) != 0) return;
    if (to.begun) _longjmp(to.later, 1);
    ::setcontext(&to.first);
#endif
  }

  // False once all threads have ended.
  bool Pass(uint32_t n) {
    uint32_t live = 0, at_barrier = 0;
    const uint32_t warps = (n + kLanes - 1) / kLanes;
    for (uint32_t w = 0; w < warps; ++w) {
      // In every other block the last warp is the first, so that a barrier that
      // is missing shows whichever way it is needed.
      const uint32_t first =
          (place_.block.x % 2 == 0 ? w : warps - 1 - w) * kLanes;
      const uint32_t end = std::min(first + kLanes, n);
      while (RunWarp(first, end)) {
      }
      for (uint32_t i = first; i < end; ++i) {
        live += !fibers_[i].done;
        at_barrier += !fibers_[i].done && fibers_[i].wait == Wait::kBarrier;
      }
    }
    for (uint32_t i = 0; i < n; ++i) {
      Fiber& fiber = fibers_[i];
      if (fiber.done) continue;
      if (at_barrier != n) {
        Die("waits at a barrier that other threads do not reach", fiber);
      }
      fiber.wait = Wait::kNothing;
    }
    return live > 0;
  }

  // Runs the lanes of a warp until each has ended or waits; then lets those
  // that meet go on.  False if none do.
  bool RunWarp(uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; ++i) {
      Fiber& fiber = fibers_[i];
      if (!fiber.done && fiber.wait == Wait::kNothing) Resume(fiber);
    }
    bool any = false;
    uint64_t brought[kLanes] = {};
    for (uint32_t i = first; i < end; ++i) {
      brought[i - first] = fibers_[i].value;
    }
    for (uint32_t i = first; i < end; ++i) {
      Fiber& fiber = fibers_[i];
      if (fiber.done || fiber.wait == Wait::kBarrier) continue;
      any = true;
      fiber.value = Together(fiber, first, end, brought);
    }
    if (!any) return false;
    for (uint32_t i = first; i < end; ++i) {
      if (fibers_[i].wait != Wait::kBarrier) {
        fibers_[i].wait = Wait::kNothing;
      }
    }
    return true;
  }

  // A lane's result from the lanes of its mask, which must all be there.
  uint64_t Together(const Fiber& fiber, uint32_t first, uint32_t end,
                    const uint64_t* brought) const {
    uint64_t votes = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((fiber.mask >> lane & 1) == 0) continue;
      const bool there = first + lane < end && !fibers_[first + lane].done;
      if (!there || fibers_[first + lane].wait != fiber.wait ||
          fibers_[first + lane].mask != fiber.mask) {
        Die("waits for lanes of its warp that are not there", fiber);
      }
      votes |= uint64_t{brought[lane] != 0} << lane;
    }
    if (fiber.wait == Wait::kVote) return votes;
    if (fiber.wait == Wait::kShuffle && (fiber.mask >> fiber.from & 1) == 0) {
      Die("takes a value from a lane that is not in its mask", fiber);
    }
    return brought[fiber.from];
  }

  std::deque<Fiber> fibers_;  // contexts keep their addresses
  Fiber* running_ = nullptr;
  Place place_ = {};
  const std::function<void()>* kernel_ = nullptr;
  Context host_;
  const void* host_stack_ = nullptr;
  size_t host_stack_size_ = 0;
};

Block& TheBlock() {
  static auto& block = *new Block;
  return block;
}

void Block::Entry() { TheBlock().Begin(); }

}  // namespace

const Place& Here() { return TheBlock().place(); }

uint64_t Meet(Wait what, uint32_t mask, uint64_t value, uint32_t from) {
  return TheBlock().Meet(what, mask, value, from);
}

void Barrier() { TheBlock().Meet(Wait::kBarrier, 0, 0, 0); }

void Run(gossamer::DeviceStream*, size_t blocks, uint32_t threads,
         const std::function<void()>& kernel) {
  for (uint32_t b = 0; b < blocks; ++b) {
    TheBlock().Run({.thread = {0},
                    .block = {b},
                    .threads = {threads},
                    .blocks = {static_cast<uint32_t>(blocks)}},
                   kernel);
  }
}

}  // namespace fibers
