// A stream of draws under one key, of which scenarios are made.
//
// This header knows nothing of the meaning of a draw.  A new kind of draw gets
// a key of its own, so that the older draws of a seed stay as they are.

#ifndef GOSSAMER_TESTS_SIMULATION_DRAWS_H_
#define GOSSAMER_TESTS_SIMULATION_DRAWS_H_

#include <cstdint>
#include <initializer_list>
#include <iterator>

#include "algorithms/base/rng.h"

namespace gossamer::simulation {

class Draws {
 public:
  explicit Draws(RngKey key) : key_(key) {}
  bool Chance(double p) { return key_.Uniform(next_++) < p; }
  double Between(double low, double high) {
    return low + (high - low) * key_.Uniform(next_++);
  }
  int Int(int low, int high) {  // with both ends
    return low + static_cast<int>(key_.Below(
                     static_cast<uint64_t>(high - low + 1), next_++));
  }
  template <typename T>
  T Of(std::initializer_list<T> choices) {
    return *std::next(choices.begin(),
                      Int(0, static_cast<int>(choices.size()) - 1));
  }

 private:
  const RngKey key_;
  uint64_t next_ = 0;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_DRAWS_H_
