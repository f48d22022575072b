// Immutable, reference-counted bytes: encoded once, sent and kept by
// reference, decoded in place.
//
// This header knows nothing of what the bytes mean or where they came from.

#ifndef GOSSAMER_ALGORITHMS_BASE_SHARED_BYTES_H_
#define GOSSAMER_ALGORITHMS_BASE_SHARED_BYTES_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gossamer {

// A span of bytes together with its owner.  Copies share the bytes, which no
// holder changes, so any number of edges may send one payload.
class SharedBytes {
 public:
  SharedBytes() = default;
  // `owner` keeps `bytes` alive: a vector, a pooled buffer, a received slice.
  SharedBytes(std::span<const std::byte> bytes,
              std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  static SharedBytes FromVector(std::vector<std::byte> v) {
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(v));
    const std::span<const std::byte> bytes(*owner);
    return SharedBytes(bytes, std::move(owner));
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_SHARED_BYTES_H_
