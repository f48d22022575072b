#include "runtime/base/virtual_loop.h"

#include <algorithm>
#include <utility>

namespace gossamer {

EventLoop::TimerId VirtualLoop::Add(absl::Time when, Callback fn) {
  const uint64_t id = ++sequence_;
  queue_.emplace(std::pair(when, id), std::move(fn));
  times_.emplace(id, when);
  return TimerId{id};
}

EventLoop::TimerId VirtualLoop::RunAt(absl::Time when, Callback fn) {
  return Add(std::max(when, now_), std::move(fn));
}

bool VirtualLoop::Cancel(TimerId id) {
  const auto it = times_.find(static_cast<uint64_t>(id));
  if (it == times_.end()) return false;
  // The callback is destroyed last: what it owns may call back into this.
  auto node = queue_.extract(std::pair(it->second, it->first));
  times_.erase(it);
  return true;
}

bool VirtualLoop::Step() {
  if (queue_.empty()) return false;
  auto node = queue_.extract(queue_.begin());
  now_ = node.key().first;
  times_.erase(node.key().second);
  std::move(node.mapped())();
  return true;
}

bool VirtualLoop::Run(size_t max_steps) {
  for (size_t i = 0; i < max_steps; ++i) {
    if (!Step()) return true;
  }
  return queue_.empty();
}

void VirtualLoop::RunUntil(absl::Time time) {
  while (!queue_.empty() && queue_.begin()->first.first <= time) Step();
  now_ = std::max(now_, time);
}

bool VirtualLoop::RunUntil(absl::FunctionRef<bool()> condition,
                           absl::Duration limit) {
  const absl::Time end = now_ + limit;
  while (!condition()) {
    if (queue_.empty() || queue_.begin()->first.first > end) return false;
    Step();
  }
  return true;
}

VirtualPeerLoop::~VirtualPeerLoop() {
  for (const auto& [id, entry] : pending_) shared_->Cancel(entry.shared_id);
  shared_->Cancel(thaw_);
}

void VirtualPeerLoop::SetClock(absl::Duration offset, double rate) {
  clock_set_ = shared_->Now();
  offset_ = offset;
  rate_ = rate;
}

absl::Time VirtualPeerLoop::ToOwn(absl::Time shared) const {
  if (rate_ == 1) return shared + offset_;
  return clock_set_ + offset_ + (shared - clock_set_) * rate_;
}

absl::Time VirtualPeerLoop::ToShared(absl::Time own) const {
  if (rate_ == 1 || own == absl::InfiniteFuture()) return own - offset_;
  // A nanosecond late rather than early: a timer finds its time reached.
  return clock_set_ + (own - offset_ - clock_set_) / rate_ +
         absl::Nanoseconds(1);
}

EventLoop::TimerId VirtualPeerLoop::Add(absl::Time when, Callback fn) {
  const uint64_t id = next_id_++;
  const TimerId shared_id = shared_->RunAt(when, [this, id] { Fire(id); });
  pending_.emplace(id, Entry{std::move(fn), shared_id, when});
  return TimerId{id};
}

bool VirtualPeerLoop::Cancel(TimerId id) {
  auto node = pending_.extract(static_cast<uint64_t>(id));
  if (node.empty()) return false;
  shared_->Cancel(node.mapped().shared_id);
  overdue_.erase({node.mapped().when, node.key()});
  return true;
}

void VirtualPeerLoop::Freeze(absl::Time until) {
  frozen_until_ = std::max(frozen_until_, until);
}

void VirtualPeerLoop::Fire(uint64_t id) {
  // What became due in a freeze runs before anything that is due later, also
  // when freezes overlap.
  if (frozen_until_ > shared_->Now() || !overdue_.empty()) {
    overdue_.insert({pending_.at(id).when, id});
    ScheduleThaw();
    return;
  }
  auto node = pending_.extract(id);
  ++runs_;
  std::move(node.mapped().fn)();
}

void VirtualPeerLoop::ScheduleThaw() {
  if (thaw_ != TimerId{} || overdue_.empty()) return;
  thaw_ = shared_->RunAt(frozen_until_, [this] { Thaw(); });
}

void VirtualPeerLoop::Thaw() {
  thaw_ = TimerId{};
  if (frozen_until_ > shared_->Now() || overdue_.empty()) return ScheduleThaw();
  auto node = pending_.extract(overdue_.begin()->second);
  overdue_.erase(overdue_.begin());
  ScheduleThaw();
  ++runs_;
  std::move(node.mapped().fn)();  // may destroy this
}

void VirtualCompute::Run(EventLoop::Callback work, EventLoop::Callback done) {
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
