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
}

EventLoop::TimerId VirtualPeerLoop::RunAt(absl::Time when, Callback fn) {
  const uint64_t id = next_id_++;
  const TimerId shared_id = shared_->RunAt(when, [this, id] { Fire(id); });
  pending_.emplace(id, Entry{std::move(fn), shared_id});
  return TimerId{id};
}

bool VirtualPeerLoop::Cancel(TimerId id) {
  auto node = pending_.extract(static_cast<uint64_t>(id));
  if (node.empty()) return false;
  shared_->Cancel(node.mapped().shared_id);
  return true;
}

void VirtualPeerLoop::Freeze(absl::Time until) {
  frozen_until_ = std::max(frozen_until_, until);
}

void VirtualPeerLoop::Fire(uint64_t id) {
  const auto it = pending_.find(id);
  if (frozen_until_ > Now()) {
    it->second.shared_id =
        shared_->RunAt(frozen_until_, [this, id] { Fire(id); });
    return;
  }
  auto node = pending_.extract(it);
  std::move(node.mapped().fn)();
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
