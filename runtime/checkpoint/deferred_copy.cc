#include "runtime/checkpoint/deferred_copy.h"

#include <algorithm>

namespace gossamer {

void DeferredCopy::Add(std::span<const float> from, float* to) {
  while (!from.empty()) {
    const size_t n = std::min(from.size(), kPiece);
    pieces_.push_back({from.first(n), to});
    from = from.subspan(n);
    to += n;
  }
}

void DeferredCopy::Help() {
  while (true) {
    const size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= pieces_.size()) return;
    std::ranges::copy(pieces_[i].from, pieces_[i].to);
    copied_.fetch_add(1, std::memory_order_release);
    copied_.notify_all();
  }
}

void DeferredCopy::Finish() {
  Help();
  for (size_t copied = copied_.load(std::memory_order_acquire);
       copied < pieces_.size();
       copied = copied_.load(std::memory_order_acquire)) {
    copied_.wait(copied, std::memory_order_acquire);
  }
}

}  // namespace gossamer
