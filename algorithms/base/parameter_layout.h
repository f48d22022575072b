// The order of both players' tensors in one flat vector of floats.
//
// It knows names, shapes and offsets; nothing of tensors, devices or values.

#ifndef GOSSAMER_ALGORITHMS_BASE_PARAMETER_LAYOUT_H_
#define GOSSAMER_ALGORITHMS_BASE_PARAMETER_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gossamer {

// The two players of the game; each owns one contiguous extent of the vector,
// the generator first.
enum class Player : uint8_t { kGenerator = 0, kDiscriminator = 1 };

// A contiguous part of a flat vector.
struct Extent {
  size_t offset = 0;  // in floats
  size_t size = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// One tensor of a player: its name, its shape and its place in the flat vector.
struct Segment {
  std::string name;  // "generator.conv1.weight"
  Player player = Player::kGenerator;
  std::vector<int64_t> shape;  // row-major; {} is a scalar
  Extent extent;               // set by ParameterLayout
};

// The order of all tensors in the flat vector.  It is fixed when it is made;
// peers compare it by its fingerprint, and codecs cut payloads along its
// segments.
class ParameterLayout {
 public:
  ParameterLayout() = default;
  // Lays the segments out in the given order; all of the generator's must come
  // before the discriminator's.  Offsets in `segments` are ignored.
  explicit ParameterLayout(std::vector<Segment> segments);

  const std::vector<Segment>& segments() const { return segments_; }
  size_t size() const { return size_; }
  Extent extent(Player player) const {
    return extents_[static_cast<size_t>(player)];
  }
  // Names, shapes and order as 64 bits.  Two peers may mix only if theirs
  // agree.
  uint64_t fingerprint() const { return fingerprint_; }
  // The segment that holds the parameter at `index`.
  const Segment& At(size_t index) const;

 private:
  std::vector<Segment> segments_;
  Extent extents_[2];
  size_t size_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_PARAMETER_LAYOUT_H_
