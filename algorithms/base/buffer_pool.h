// Buffers of megabytes, used again.
//
// A fresh one costs a page fault and a cleared page every 4 KiB, about as much
// as copying into it.  This header knows nothing of what is in them.

#ifndef GOSSAMER_ALGORITHMS_BASE_BUFFER_POOL_H_
#define GOSSAMER_ALGORITHMS_BASE_BUFFER_POOL_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "algorithms/base/mutex.h"

namespace gossamer {

// Any thread.  Keeps the last kKept buffers given back.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static constexpr size_t kKept = 4;
  // Smaller ones are the allocator's business.
  static constexpr size_t kSmallest = size_t{64} << 10;

  // `bytes` bytes of no particular value, given back when released.
  std::shared_ptr<std::byte[]> Get(size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // The same, but null if the system has no such memory: for sizes that another
  // machine has named.
  std::shared_ptr<std::byte[]> TryGet(size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  struct Buffer {
    std::unique_ptr<std::byte[], Free> bytes;
    size_t capacity = 0;
  };
  // The buffer has no bytes if there is no memory.
  static Buffer Allocate(size_t bytes);
  void GiveBack(Buffer buffer) ABSL_LOCKS_EXCLUDED(mu_);

  Mutex mu_;
  std::vector<Buffer> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_BUFFER_POOL_H_
