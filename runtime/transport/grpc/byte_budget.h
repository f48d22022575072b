// A limit on the bytes that all connections of a process hold together, and the
// shares that are taken out of it.
//
// Internal to transport/grpc; loop only.  This header knows nothing of what the
// bytes are for.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_BYTE_BUDGET_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_BYTE_BUDGET_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace gossamer {

class ByteBudget {
 public:
  explicit ByteBudget(size_t most) : most_(most) {}
  size_t most() const { return most_; }
  size_t used() const { return used_; }
  size_t left() const { return most_ - used_; }

  // The bytes that one holder has taken.  Its destructor gives them all back.
  class Share {
   public:
    explicit Share(std::shared_ptr<ByteBudget> of) : of_(std::move(of)) {}
    ~Share() { Clear(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Returns false, and takes nothing, if fewer than `bytes` are left.
    bool Take(size_t bytes) {
      if (bytes > of_->left()) return false;
      of_->used_ += bytes;
      held_ += bytes;
      return true;
    }
    void Give(size_t bytes) {
      bytes = std::min(bytes, held_);
      of_->used_ -= bytes;
      held_ -= bytes;
    }
    void Clear() { Give(held_); }
    size_t held() const { return held_; }
    const ByteBudget& budget() const { return *of_; }

   private:
    const std::shared_ptr<ByteBudget> of_;
    size_t held_ = 0;
  };

 private:
  const size_t most_;
  size_t used_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_BYTE_BUDGET_H_
