// Values by ids that grow and are never given twice.
//
// The slots of a vector are used again, so no value needs an allocation.  This
// header knows nothing of the values.

#ifndef GOSSAMER_RUNTIME_BASE_SLOT_MAP_H_
#define GOSSAMER_RUNTIME_BASE_SLOT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gossamer {

// Holds at most 2^24 values at once and 2^40 in all.
template <typename T>
class SlotMap {
 public:
  // Returns an id that is never 0.
  uint64_t Insert(T value) {
    uint64_t slot = slots_.size();
    if (free_.empty()) {
      slots_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    const uint64_t id = ++sequence_ << kSlotBits | slot;
    slots_[slot].id = id;
    slots_[slot].value.emplace(std::move(value));
    return id;
  }
  // Returns null without such a value; valid until the next Insert().
  T* Find(uint64_t id) {
    const uint64_t slot = id & kSlotMask;
    // A free slot has id 0, which names no value.
    if (id == 0 || slot >= slots_.size() || slots_[slot].id != id) {
      return nullptr;
    }
    return &*slots_[slot].value;
  }
  // Removes a value.  The map no longer changes when the value is destroyed.
  std::optional<T> Take(uint64_t id) {
    T* found = Find(id);
    if (found == nullptr) return std::nullopt;
    std::optional<T> value(std::move(*found));
    const uint64_t slot = id & kSlotMask;
    slots_[slot].id = 0;
    slots_[slot].value.reset();
    free_.push_back(slot);
    return value;
  }
  size_t size() const { return slots_.size() - free_.size(); }
  template <typename F>
  void ForEach(F f) const {
    for (const Slot& slot : slots_) {
      if (slot.value) f(*slot.value);
    }
  }

 private:
  static constexpr int kSlotBits = 24;
  static constexpr uint64_t kSlotMask = (uint64_t{1} << kSlotBits) - 1;
  struct Slot {
    uint64_t id = 0;  // 0: free
    std::optional<T> value;
  };

  uint64_t sequence_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint64_t> free_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_SLOT_MAP_H_
