#include "algorithms/base/parameter_layout.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "algorithms/base/rng.h"

namespace gossamer {

ParameterLayout::ParameterLayout(std::vector<Segment> segments)
    : segments_(std::move(segments)) {
  // Names, players and shapes in order; offsets follow from these.
  RngKey hash(0);
  Player last = Player::kGenerator;
  for (Segment& s : segments_) {
    assert(s.player >= last && "generator segments come first");
    if (s.player != last) {
      extents_[static_cast<size_t>(s.player)].offset = size_;
      last = s.player;
    }
    size_t n = 1;
    hash = hash.Fold(s.name).Fold(static_cast<uint64_t>(s.player));
    for (int64_t d : s.shape) {
      n *= static_cast<size_t>(d);
      hash = hash.Fold(static_cast<uint64_t>(d));
    }
    s.extent = {size_, n};
    size_ += n;
    extents_[static_cast<size_t>(s.player)].size += n;
  }
  // An empty extent of the discriminator lies behind the generator's, so that
  // extents always cover the vector in order.
  if (extents_[1].size == 0) extents_[1].offset = size_;
  fingerprint_ = hash.Bits(0);
}

const Segment& ParameterLayout::At(size_t index) const {
  assert(index < size_);
  // Offsets rise, so the segment is the one before the first that begins behind
  // `index`.
  auto it = std::upper_bound(
      segments_.begin(), segments_.end(), index,
      [](size_t i, const Segment& s) { return i < s.extent.offset; });
  return *std::prev(it);
}

}  // namespace gossamer
