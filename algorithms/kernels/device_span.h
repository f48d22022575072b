// Memory that may be a device's: a span that says where it lies.
//
// Host code cannot read one: it has no element access, only its parts.  Knows
// nothing of how memory is taken, copied or freed (device_kernels.h has the
// calls).

#ifndef GOSSAMER_ALGORITHMS_KERNELS_DEVICE_SPAN_H_
#define GOSSAMER_ALGORITHMS_KERNELS_DEVICE_SPAN_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gossamer {

struct Device {
  enum Kind : uint8_t { kHost, kCuda };
  friend bool operator==(const Device&, const Device&) = default;

  Kind kind = kHost;
  int index = 0;  // among those of its kind
};

template <typename T>
struct DeviceSpan {
  T* data = nullptr;
  size_t size = 0;
  Device device = {};

  bool empty() const { return size == 0; }
  DeviceSpan subspan(size_t offset, size_t count) const {
    return {data + offset, count, device};
  }
  // Implicit, as of std::span: what may be written may be read.
  template <typename U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>)
  operator DeviceSpan<U>() const {  // NOLINT(google-explicit-constructor)
    return {data, size, device};
  }
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_DEVICE_SPAN_H_
