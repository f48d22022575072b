// Keyed, counter-based randomness.
//
// A random value is a function of what it is for, never of how many values
// were drawn before it: fold the run's seed with the peer, the round and a
// purpose, then draw by index.  So neither thread timing nor the order of
// arrivals can change a run, and no generator state needs a checkpoint.  The
// distributions live here because neither std:: nor absl:: promises stable
// ones.  Not for secrets.

#ifndef GOSSAMER_ALGORITHMS_BASE_RNG_H_
#define GOSSAMER_ALGORITHMS_BASE_RNG_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gossamer {

// A place in a tree of random values.  A key has no state: each of its draws is
// a function of the key and an index, and Fold() makes keys whose draws are
// independent of it.
class RngKey {
 public:
  explicit constexpr RngKey(uint64_t seed) : bits_(Mix(seed + kGolden)) {}
  friend bool operator==(const RngKey&, const RngKey&) = default;

  [[nodiscard]] constexpr RngKey Fold(uint64_t data) const {
    return RngKey(Mix(bits_ ^ Mix(data + kGolden)), Raw());
  }
  // For purposes: Fold("latent").  FNV-1a, so that names hash alike everywhere.
  [[nodiscard]] constexpr RngKey Fold(std::string_view name) const {
    uint64_t h = 0xcbf29ce484222325u;
    for (char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    return Fold(h);
  }

  // The i-th draw under this key: 64 bits, uniform in [0, 1), uniform in
  // [0, n), standard normal.
  constexpr uint64_t Bits(uint64_t i) const {
    return Mix(bits_ + (i + 1) * 0xd1342543de82ef95u);
  }
  constexpr double Uniform(uint64_t i) const {
    return static_cast<double>(Bits(i) >> 11) * 0x1.0p-53;
  }
  constexpr uint64_t Below(uint64_t n, uint64_t i) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(Bits(i)) * n >>
                                 64);
  }
  double Gaussian(uint64_t i) const;

  // Fills with standard normals, draw i in out[i].
  void FillGaussian(std::span<float> out) const;
  // A uniformly random permutation of 0 .. n-1.
  std::vector<int> Permutation(int n) const;

 private:
  struct Raw {};
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  constexpr RngKey(uint64_t bits, Raw) : bits_(bits) {}
  // The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
  static constexpr uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t bits_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_RNG_H_
