// Deferred copies that several threads share.  Add() registers a copy; any
// thread may do pieces of it; Finish() completes all and must return before a
// source changes.
//
// This header knows nothing of what the values are.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_DEFERRED_COPY_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_DEFERRED_COPY_H_

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

namespace gossamer {

class DeferredCopy {
 public:
  // The values of a piece, which one thread copies: a thread that waits for
  // another, of a lower priority perhaps, waits for no more than one.
  static constexpr size_t kPiece = size_t{1} << 17;

  // Before any other call.  `to` has as many values; both stay where they are
  // until all is copied.
  void Add(std::span<const float> from, float* to);
  // Copies the pieces that nobody has begun.  Any threads at once.
  void Help();
  // The same, and waits for the pieces that others have begun: all is copied.
  void Finish();

 private:
  struct Piece {
    std::span<const float> from;
    float* to = nullptr;
  };
  std::vector<Piece> pieces_;
  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> copied_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_DEFERRED_COPY_H_
