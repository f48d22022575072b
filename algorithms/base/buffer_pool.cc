#include "algorithms/base/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace gossamer {
namespace {

constexpr size_t kVector = 64;
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

void BufferPool::Free::operator()(std::byte* p) const { std::free(p); }

// Large buffers are on huge pages, where the system gives them: every byte of
// them is streamed through, and a page of 4 KiB costs a look-up each time.
// Below two huge pages the rounding to whole ones would waste too much.
BufferPool::Buffer BufferPool::Allocate(size_t bytes) {
  const bool huge = bytes >= 2 * kHugePage;
  const size_t alignment = huge ? kHugePage : kVector;
  // std::aligned_alloc asks for a multiple of the alignment.
  const size_t capacity = (bytes + alignment - 1) / alignment * alignment;
  Buffer buffer;
  buffer.bytes.reset(
      static_cast<std::byte*>(std::aligned_alloc(alignment, capacity)));
  if (buffer.bytes == nullptr) return {};
  if (huge) madvise(buffer.bytes.get(), capacity, MADV_HUGEPAGE);
  buffer.capacity = capacity;
  return buffer;
}

std::shared_ptr<std::byte[]> BufferPool::Get(size_t bytes) {
  std::shared_ptr<std::byte[]> got = TryGet(bytes);
  if (got == nullptr) throw std::bad_alloc();
  return got;
}

std::shared_ptr<std::byte[]> BufferPool::TryGet(size_t bytes) {
  if (bytes < kSmallest) {
    return std::make_shared_for_overwrite<std::byte[]>(bytes);
  }
  Buffer buffer;
  {
    MutexLock lock(&mu_);
    // The buffer that was used last, since it is in the cache if any is; not
    // one that would waste more than it holds.
    const auto fit =
        std::find_if(free_.rbegin(), free_.rend(), [&](const Buffer& b) {
          return b.capacity >= bytes && b.capacity / 2 <= bytes;
        });
    if (fit != free_.rend()) {
      buffer = std::move(*fit);
      free_.erase(std::next(fit).base());
    }
  }
  if (buffer.bytes == nullptr) {
    buffer = Allocate(bytes);
    if (buffer.bytes == nullptr) return nullptr;
  }
  const size_t capacity = buffer.capacity;
  return std::shared_ptr<std::byte[]>(
      buffer.bytes.release(),
      // A weak reference: a buffer that outlives the pool is freed, and does
      // not keep the pool.
      [pool = weak_from_this(), capacity](std::byte* p) {
        Buffer back{std::unique_ptr<std::byte[], Free>(p), capacity};
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
