// Straight-line code over callbacks: a minimal coroutine.
//
// A Task starts at once and resumes inside the call that completes what it
// awaits, on that loop.  There is no scheduler and no lock: tasks and what
// they await belong to one event loop.

#ifndef GOSSAMER_RUNTIME_BASE_TASK_H_
#define GOSSAMER_RUNTIME_BASE_TASK_H_

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace gossamer {

// The single result of one asynchronous operation.  The producer calls Set()
// once; at most one coroutine awaits it.  Copies share the result.
template <typename T>
class Pending {
  struct Slot {
    std::optional<T> value;
    std::coroutine_handle<> waiter;
  };

 public:
  Pending() : slot_(std::make_shared<Slot>()) {}

  void Set(T value) {
    const std::shared_ptr<Slot> keep = slot_;  // resume() may destroy *this
    keep->value.emplace(std::move(value));
    if (keep->waiter) std::exchange(keep->waiter, nullptr).resume();
  }
  bool ready() const { return slot_->value.has_value(); }
  const T& value() const { return *slot_->value; }

  // Clears the waiter if its coroutine is destroyed while it waits.
  struct Awaiter {
    explicit Awaiter(std::shared_ptr<Slot> s) : slot(std::move(s)) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    ~Awaiter() {
      if (suspended) slot->waiter = nullptr;
    }
    bool await_ready() const { return slot->value.has_value(); }
    void await_suspend(std::coroutine_handle<> h) {
      slot->waiter = h;
      suspended = true;
    }
    T await_resume() {
      suspended = false;
      return std::move(*slot->value);
    }
    std::shared_ptr<Slot> slot;
    bool suspended = false;
  };
  Awaiter operator co_await() const { return Awaiter(slot_); }

 private:
  std::shared_ptr<Slot> slot_;
};

// A coroutine whose result is published to a Pending.  Destroying a Task that
// has not finished destroys the coroutine where it is suspended.
template <typename T>
class Task {
 public:
  struct promise_type {
    // This is no aggregate: GCC would initialise `result` from the coroutine's
    // first parameter if that is a Pending<T>.
    promise_type() = default;
    Pending<T> result;
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    // The result is published only when the coroutine is suspended for good, so
    // that the waiter that it resumes may destroy this Task.
    struct Publish {
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> h) noexcept {
        Pending<T> result = h.promise().result;
        result.Set(std::move(*h.promise().returned));
      }
      void await_resume() noexcept {}
    };
    std::optional<T> returned;
    Publish final_suspend() noexcept { return {}; }
    void return_value(T v) { returned.emplace(std::move(v)); }
    void unhandled_exception() { std::terminate(); }
  };

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool valid() const { return static_cast<bool>(handle_); }
  bool done() const { return handle_ && handle_.promise().result.ready(); }
  // Called only once done().
  const T& value() const { return handle_.promise().result.value(); }
  // co_await this; the Task must outlive the wait.
  Pending<T> result() const { return handle_.promise().result; }

 private:
  explicit Task(std::coroutine_handle<promise_type> h) : handle_(h) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_TASK_H_
