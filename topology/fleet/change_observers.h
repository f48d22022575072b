// Callbacks for the news that something may have changed, one per owner.
//
// This header knows nothing of what changes.  One thread.

#ifndef GOSSAMER_TOPOLOGY_FLEET_CHANGE_OBSERVERS_H_
#define GOSSAMER_TOPOLOGY_FLEET_CHANGE_OBSERVERS_H_

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace gossamer {

// One callback for each owner, so that two owners cannot replace each other's.
class ChangeObservers {
 public:
  // Adds the owner's callback, or replaces the one that it has set before.
  // Callbacks run in the order in which they were added.
  void Set(const void* owner, std::function<void()> on_change) {
    const auto it = Find(owner);
    if (it == observers_.end()) {
      observers_.emplace_back(owner, std::move(on_change));
    } else {
      it->second = std::move(on_change);
    }
  }
  void Remove(const void* owner) {
    const auto it = Find(owner);
    if (it != observers_.end()) observers_.erase(it);
  }
  // Calls all.  A callback may remove others: those are not called any more.
  void Notify() {
    const auto all = observers_;
    for (const auto& [owner, on_change] : all) {
      if (Find(owner) != observers_.end()) on_change();
    }
  }

 private:
  using Observer = std::pair<const void*, std::function<void()>>;
  std::vector<Observer>::iterator Find(const void* owner) {
    return std::ranges::find(observers_, owner, &Observer::first);
  }

  std::vector<Observer> observers_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_CHANGE_OBSERVERS_H_
