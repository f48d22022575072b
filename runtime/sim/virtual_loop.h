// Virtual time: many peers in one thread, in the same order in every run.
//
// A VirtualLoop is the queue of a whole test.  A VirtualPeerLoop is one peer's
// part of it, so that a peer can be frozen, or destroyed with all callbacks
// that it has left.  This header knows nothing of networks: SimNetwork makes
// faults on links.  One thread only.

#ifndef GOSSAMER_RUNTIME_SIM_VIRTUAL_LOOP_H_
#define GOSSAMER_RUNTIME_SIM_VIRTUAL_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "algorithms/base/rng.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/slot_map.h"

namespace gossamer {

// Runs callbacks in the order of (time, sequence of registration).  Time passes
// only between callbacks.
class VirtualLoop final : public EventLoop {
 public:
  explicit VirtualLoop(absl::Time start = absl::FromUnixSeconds(1'000'000'000))
      : now_(start) {}

  absl::Time Now() const override { return now_; }
  void Post(Callback fn) override { Add(now_, std::move(fn)); }
  TimerId RunAt(absl::Time when, Callback fn) override;
  bool Cancel(TimerId id) override;

  // Runs the next callback, at its time.  Returns false if there is none.
  bool Step();
  // Runs until nothing is pending or `max_steps` callbacks have run; returns
  // true if nothing is pending.  Periodic timers never end by themselves: bound
  // those runs by time instead.
  bool Run(size_t max_steps = 100'000'000);
  // Runs all callbacks up to and at `time`, then lets the clock show `time`.
  void RunUntil(absl::Time time);
  void RunFor(absl::Duration duration) { RunUntil(now_ + duration); }
  // Runs until `condition` holds, checked after each callback.  Returns false
  // if it does not within `limit`.
  bool RunUntil(absl::FunctionRef<bool()> condition, absl::Duration limit);
  size_t pending() const { return callbacks_.size(); }

 private:
  TimerId Add(absl::Time when, Callback fn);

  // Drops cancelled entries from the queue's front, and all of them once they
  // are most of the queue.  Returns null if nothing is pending.
  const std::pair<absl::Time, uint64_t>* Front();

  absl::Time now_;
  SlotMap<Callback> callbacks_;
  // A heap with the first to run in front; cancelled entries are in it too.
  std::vector<std::pair<absl::Time, uint64_t>> queue_;
};

// The loop of one peer.  Destroying it drops the callbacks that have not run.
// It may be destroyed inside one of its own callbacks.
class VirtualPeerLoop final : public EventLoop {
 public:
  explicit VirtualPeerLoop(VirtualLoop* shared) : shared_(shared) {}
  ~VirtualPeerLoop() override;
  VirtualPeerLoop(const VirtualPeerLoop&) = delete;
  VirtualPeerLoop& operator=(const VirtualPeerLoop&) = delete;

  absl::Time Now() const override { return ToOwn(shared_->Now()); }
  void Post(Callback fn) override { Add(shared_->Now(), std::move(fn)); }
  TimerId RunAt(absl::Time when, Callback fn) override {
    return Add(ToShared(when), std::move(fn));
  }
  bool Cancel(TimerId id) override;

  // Freezes the peer like a stopped process.  Nothing runs before `until` of
  // the shared clock; then all callbacks that became due meanwhile run, in
  // order.  Of two calls the later time counts.
  void Freeze(absl::Time until);
  absl::Time frozen_until() const { return frozen_until_; }
  // Gives the peer a clock of its own, off by `offset` now and running `rate`
  // times as fast as the shared one.  Called before anything is scheduled.
  void SetClock(absl::Duration offset, double rate);
  // Returns the number of callbacks that have run here.
  uint64_t runs() const { return runs_; }
  VirtualLoop* shared() const { return shared_; }

 private:
  struct Entry {
    Callback fn;
    TimerId shared_id;
    absl::Time when;
  };
  TimerId Add(absl::Time shared_when, Callback fn);
  absl::Time ToOwn(absl::Time shared) const;
  absl::Time ToShared(absl::Time own) const;
  void Fire(uint64_t id);
  void ScheduleThaw();
  void Thaw();

  VirtualLoop* const shared_;
  absl::Time clock_set_;  // in time of the shared clock
  absl::Duration offset_;
  double rate_ = 1;
  uint64_t runs_ = 0;
  absl::Time frozen_until_ = absl::InfinitePast();
  SlotMap<Entry> pending_;
  std::set<std::pair<absl::Time, uint64_t>> overdue_;  // due while frozen
  TimerId thaw_{};
};

// A compute engine that takes virtual time: `work` runs inside Run(), `done`
// runs on the loop `duration(i)` later; i = 0, 1, ... counts the calls.
class VirtualCompute final : public ComputeEngine {
 public:
  using DurationOf = absl::AnyInvocable<absl::Duration(uint64_t call)>;
  // `loop` outlives the engine.
  VirtualCompute(EventLoop* loop, DurationOf duration)
      : loop_(loop), duration_(std::move(duration)) {}
  void Run(EventLoop::Callback work, EventLoop::Callback done) override;

  // Returns durations uniform in mean · [1 − jitter, 1 + jitter], 0 <= jitter
  // <= 1.
  static DurationOf Around(RngKey key, absl::Duration mean, double jitter);

 private:
  EventLoop* const loop_;
  DurationOf duration_;
  uint64_t calls_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SIM_VIRTUAL_LOOP_H_
