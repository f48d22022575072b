// The versions of a protocol that one end speaks, and what two ends agree on.
//
// This header knows nothing of which protocol.

#ifndef GOSSAMER_ALGORITHMS_BASE_VERSION_RANGE_H_
#define GOSSAMER_ALGORITHMS_BASE_VERSION_RANGE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace gossamer {

// Both included.  A release that changes a protocol raises `newest`, and
// `oldest` once it no longer speaks that one: fleets go over one by one.
struct VersionRange {
  uint32_t oldest = 0;
  uint32_t newest = 0;

  // The range that another end reports; zero for `oldest` stands for `newest`
  // alone.
  static constexpr VersionRange Stated(uint32_t oldest, uint32_t newest) {
    return {oldest == 0 ? newest : oldest, newest};
  }
  constexpr bool Contains(uint32_t version) const {
    return oldest <= version && version <= newest;
  }
  // The newest that both speak.
  constexpr std::optional<uint32_t> Agree(VersionRange other) const {
    const uint32_t version = std::min(newest, other.newest);
    if (!Contains(version) || !other.Contains(version)) return std::nullopt;
    return version;
  }
  // "3", "3 to 5".
  std::string Text() const {
    return oldest == newest ? absl::StrCat(newest)
                            : absl::StrCat(oldest, " to ", newest);
  }
  friend bool operator==(VersionRange, VersionRange) = default;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_VERSION_RANGE_H_
