#include "runtime/sim/virtual_loop.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace gossamer {

EventLoop::TimerId VirtualLoop::Add(absl::Time when, Callback fn) {
  const uint64_t id = callbacks_.Insert(std::move(fn));
  // Ids grow, so callbacks of one time run in the order of their posting, as on
  // a real loop.
  queue_.emplace_back(when, id);
  std::ranges::push_heap(queue_, std::greater());
  return TimerId{id};
}

EventLoop::TimerId VirtualLoop::RunAt(absl::Time when, Callback fn) {
  return Add(std::max(when, now_), std::move(fn));
}

bool VirtualLoop::Cancel(TimerId id) {
  // The callback is destroyed last: an object that it owns may call this loop.
  return callbacks_.Take(static_cast<uint64_t>(id)).has_value();
}

const std::pair<absl::Time, uint64_t>* VirtualLoop::Front() {
  constexpr size_t kFew = 64;
  // Cancelled entries stay in the heap until they are most of it, so that a
  // cancel costs no search.
  if (queue_.size() > 2 * callbacks_.size() + kFew) {
    std::erase_if(queue_, [this](const auto& due) {
      return callbacks_.Find(due.second) == nullptr;
    });
    std::ranges::make_heap(queue_, std::greater());
  }
  while (!queue_.empty() && callbacks_.Find(queue_.front().second) == nullptr) {
    std::ranges::pop_heap(queue_, std::greater());
    queue_.pop_back();
  }
  return queue_.empty() ? nullptr : &queue_.front();
}

bool VirtualLoop::Step() {
  const auto* front = Front();
  if (front == nullptr) return false;
  const auto [when, id] = *front;
  std::ranges::pop_heap(queue_, std::greater());
  queue_.pop_back();
  // Time passes here and nowhere else.
  now_ = when;
  std::optional<Callback> callback = callbacks_.Take(id);
  std::move (*callback)();
  return true;
}

// The bound turns a callback that posts itself for ever into a failed test.
bool VirtualLoop::Run(size_t max_steps) {
  for (size_t i = 0; i < max_steps; ++i) {
    if (!Step()) return true;
  }
  return pending() == 0;
}

void VirtualLoop::RunUntil(absl::Time time) {
  for (const auto* next = Front(); next != nullptr && next->first <= time;
       next = Front()) {
    Step();
  }
  now_ = std::max(now_, time);
}

bool VirtualLoop::RunUntil(absl::FunctionRef<bool()> condition,
                           absl::Duration limit) {
  const absl::Time end = now_ + limit;
  while (!condition()) {
    const auto* next = Front();
    if (next == nullptr || next->first > end) return false;
    Step();
  }
  return true;
}

VirtualPeerLoop::~VirtualPeerLoop() {
  pending_.ForEach(
      [this](const Entry& entry) { shared_->Cancel(entry.shared_id); });
  // A callback of this loop must not run once it is gone.
  shared_->Cancel(thaw_);
}

void VirtualPeerLoop::SetClock(absl::Duration offset, double rate) {
  clock_set_ = shared_->Now();
  offset_ = offset;
  rate_ = rate;
}

absl::Time VirtualPeerLoop::ToOwn(absl::Time shared) const {
  // Most clocks run true, and this way has no rounding.
  if (rate_ == 1) return shared + offset_;
  return clock_set_ + offset_ + (shared - clock_set_) * rate_;
}

absl::Time VirtualPeerLoop::ToShared(absl::Time own) const {
  if (rate_ == 1 || own == absl::InfiniteFuture()) return own - offset_;
  // A nanosecond late rather than early: a timer must find its time reached.
  return clock_set_ + (own - offset_ - clock_set_) / rate_ +
         absl::Nanoseconds(1);
}

EventLoop::TimerId VirtualPeerLoop::Add(absl::Time when, Callback fn) {
  const uint64_t id = pending_.Insert({std::move(fn), TimerId{}, when});
  const TimerId shared_id = shared_->RunAt(when, [this, id] { Fire(id); });
  pending_.Find(id)->shared_id = shared_id;
  return TimerId{id};
}

bool VirtualPeerLoop::Cancel(TimerId id) {
  const std::optional<Entry> entry = pending_.Take(static_cast<uint64_t>(id));
  if (!entry) return false;
  shared_->Cancel(entry->shared_id);
  overdue_.erase({entry->when, static_cast<uint64_t>(id)});
  return true;
}

void VirtualPeerLoop::Freeze(absl::Time until) {
  frozen_until_ = std::max(frozen_until_, until);
}

void VirtualPeerLoop::Fire(uint64_t id) {
  // Callbacks that became due in a freeze run before any that is due later,
  // also when freezes overlap.
  if (frozen_until_ > shared_->Now() || !overdue_.empty()) {
    overdue_.insert({pending_.Find(id)->when, id});
    ScheduleThaw();
    return;
  }
  std::optional<Entry> entry = pending_.Take(id);
  ++runs_;
  // The entry is out of the map by now: the callback may cancel or add others.
  std::move(entry->fn)();
}

void VirtualPeerLoop::ScheduleThaw() {
  if (thaw_ != TimerId{} || overdue_.empty()) return;
  thaw_ = shared_->RunAt(frozen_until_, [this] { Thaw(); });
}

void VirtualPeerLoop::Thaw() {
  thaw_ = TimerId{};
  // Another freeze may have begun meanwhile.
  if (frozen_until_ > shared_->Now() || overdue_.empty()) return ScheduleThaw();
  std::optional<Entry> entry = pending_.Take(overdue_.begin()->second);
  overdue_.erase(overdue_.begin());
  ScheduleThaw();
  ++runs_;
  std::move(entry->fn)();  // may destroy this
}

void VirtualCompute::Run(EventLoop::Callback work, EventLoop::Callback done) {
  // The work runs now and its owner hears of it later: nothing else may touch
  // what it uses in between, as with a real engine.
  std::move(work)();
  const absl::Duration duration = duration_(calls_++);
  loop_->RunAt(loop_->Now() + duration, std::move(done));
}

VirtualCompute::DurationOf VirtualCompute::Around(RngKey key,
                                                  absl::Duration mean,
                                                  double jitter) {
  return [key, mean, jitter](uint64_t call) {
    return mean * (1 + jitter * (2 * key.Uniform(call) - 1));
  };
}

}  // namespace gossamer
