// Numbers as little-endian bytes, as all formats of this project have them.
//
// This header knows no format.  Callers check lengths.

#ifndef GOSSAMER_ALGORITHMS_BASE_LITTLE_ENDIAN_H_
#define GOSSAMER_ALGORITHMS_BASE_LITTLE_ENDIAN_H_

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

namespace gossamer {

static_assert(std::endian::native == std::endian::little);

template <typename T>
void Put(std::span<std::byte> out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

template <typename T>
T Get(std::span<const std::byte> in, size_t at) {
  T value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return value;
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_LITTLE_ENDIAN_H_
