// The order of all players' tensors in one flat vector of floats.
//
// It knows names, shapes and offsets; nothing of tensors, devices or values.

#ifndef GOSSAMER_ALGORITHMS_BASE_PARAMETER_LAYOUT_H_
#define GOSSAMER_ALGORITHMS_BASE_PARAMETER_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gossamer {

// A player of the game by its number; each owns one contiguous extent of the
// vector, in the order of their numbers.  A GAN has these two; a game of a
// caller's own has as many as it names.
enum class Player : uint8_t { kGenerator = 0, kDiscriminator = 1 };

inline constexpr size_t kMaxPlayers = 16;
inline constexpr size_t kMaxPlayerNameBytes = 64;

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
  ParameterLayout() : ParameterLayout(std::vector<Segment>()) {}
  // Lays the segments out in the given order: all of a player's before the next
  // one's, none of a player that has no name.  Offsets in `segments` are
  // ignored.
  explicit ParameterLayout(std::vector<Segment> segments,
                           std::vector<std::string> players = {
                               "generator", "discriminator"});

  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<std::string>& players() const { return players_; }
  size_t size() const { return size_; }
  // Empty, behind all others, of a player that the game does not have.
  Extent extent(Player player) const {
    const auto i = static_cast<size_t>(player);
    return i < extents_.size() ? extents_[i] : Extent{size_, 0};
  }
  // Names, shapes and order as 64 bits.  Two peers may mix only if theirs
  // agree.
  uint64_t fingerprint() const { return fingerprint_; }
  // A line a segment, "generator.conv1.weight 64,3,3,3": what the fingerprint
  // is of, for another peer to look for the difference.
  std::string Text() const;
  // The segment that holds the parameter at `index`.
  const Segment& At(size_t index) const;

 private:
  std::vector<Segment> segments_;
  std::vector<std::string> players_;
  std::vector<Extent> extents_;  // of each of them
  size_t size_ = 0;
  uint64_t fingerprint_ = 0;
};

// The first line in which two Text()s differ, in a sentence about "this peer"
// and `other`; empty if they are equal.
std::string FirstDifference(const std::string& own, const std::string& others,
                            const std::string& other);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_PARAMETER_LAYOUT_H_
