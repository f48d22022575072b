// Memory that may be a device's: a span that says where it lies.
//
// Host code cannot read one: it has no element access, only its parts, and
// HostSpan for memory that is the host's.  This header knows nothing of how
// memory is taken, copied or freed (device_queue.h).

#ifndef GOSSAMER_ALGORITHMS_KERNELS_DEVICE_SPAN_H_
#define GOSSAMER_ALGORITHMS_KERNELS_DEVICE_SPAN_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
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
  DeviceSpan() = default;
  DeviceSpan(T* begin, size_t count, Device where = {})
      : data(begin), size(count), device(where) {}
  // Implicit, as what a std::span can see is memory of the host.
  template <typename Range>
  requires(!std::same_as<std::remove_cvref_t<Range>, DeviceSpan> &&
           std::convertible_to<Range, std::span<T>>)
      DeviceSpan(Range&& range) {  // NOLINT(google-explicit-constructor)
    const std::span<T> host(range);
    data = host.data();
    size = host.size();
  }

  bool empty() const { return size == 0; }
  DeviceSpan subspan(size_t offset, size_t count) const {
    return {data + offset, count, device};
  }
  DeviceSpan first(size_t count) const { return {data, count, device}; }
  // Implicit, as of std::span: what may be written may be read.
  template <typename U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>)
  operator DeviceSpan<U>() const {  // NOLINT(google-explicit-constructor)
    return {data, size, device};
  }

  T* data = nullptr;
  size_t size = 0;
  Device device = {};
};

// The same memory for host code to read; ends the program if it is a device's,
// where a read would end it without a reason.
template <typename T>
std::span<T> HostSpan(DeviceSpan<T> span) {
  if (span.device.kind != Device::kHost) {
    std::fprintf(
        stderr,
        "HostSpan: %zu values lie in the memory of cuda:%d, which host "
        "code cannot read; copy them with DeviceQueue::ToHost\n",
        span.size, span.device.index);
    std::abort();
  }
  return {span.data, span.size};
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_DEVICE_SPAN_H_
