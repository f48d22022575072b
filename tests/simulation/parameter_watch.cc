#include "tests/simulation/parameter_watch.h"

#include <bit>
#include <cstring>

namespace gossamer::simulation {

bool ParameterWatch::Same() const {
  return std::memcmp(x_.data(), copy_.data(), x_.size_bytes()) == 0;
}

uint64_t ParameterWatch::Correct(const Correction& correction, bool negate) {
  const auto& [extent, codec, gamma] = correction.part;
  const auto [offset, size] = extent;
  const std::span<const float> difference = HostSpan(correction.difference);
  const float c = correction.c;
  const std::span<float> changed = std::span(copy_).subspan(offset, size);
  increment_.assign(size, 0.0f);
  if (difference.empty()) {
    const Encoded &m = correction.mine, &t = correction.theirs;
    codec->Complete(&m, &t, c, {}, increment_);
    codec->Complete(&m, &t, c, {}, changed);
  } else {
    for (size_t i = 0; i < size; ++i) {
      increment_[i] = c * difference[i];
      changed[i] += increment_[i];
    }
  }
  uint64_t hash = 0;
  for (const float v : increment_) {
    const float same_sign = (negate ? -v : v) + 0.0f;  // turns -0 into +0
    hash = (hash ^ std::bit_cast<uint32_t>(same_sign)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace gossamer::simulation
