#include "runtime/base/buffer_pool.h"

#include <algorithm>
#include <utility>

namespace gossamer {

std::shared_ptr<std::byte[]> BufferPool::Get(size_t bytes) {
  if (bytes < kSmallest) {
    return std::make_shared_for_overwrite<std::byte[]>(bytes);
  }
  Buffer buffer;
  {
    MutexLock lock(&mu_);
    // Not one that would waste more than it holds.
    const auto fit = std::ranges::find_if(free_, [&](const Buffer& b) {
      return b.capacity >= bytes && b.capacity / 2 <= bytes;
    });
    if (fit != free_.end()) {
      buffer = std::move(*fit);
      free_.erase(fit);
    }
  }
  if (buffer.bytes == nullptr) {
    buffer = {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
  }
  const size_t capacity = buffer.capacity;
  return std::shared_ptr<std::byte[]>(
      buffer.bytes.release(),
      [pool = weak_from_this(), capacity](std::byte* p) {
        Buffer back{std::unique_ptr<std::byte[]>(p), capacity};
        if (const auto alive = pool.lock()) alive->GiveBack(std::move(back));
      });
}

void BufferPool::GiveBack(Buffer buffer) {
  Buffer oldest;  // destroyed without the lock
  MutexLock lock(&mu_);
  free_.push_back(std::move(buffer));
  if (free_.size() > kKept) {
    oldest = std::move(free_.front());
    free_.erase(free_.begin());
  }
}

}  // namespace gossamer
