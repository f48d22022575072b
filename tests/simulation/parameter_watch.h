// One peer's parameters, followed change by change.
//
// They may change by a local step on the compute engine, by a correction that
// an edge tells of, and by a restored checkpoint.  A copy is changed by exactly
// what is told, and must stay equal bit for bit.  Knows nothing of who tells.

#ifndef GOSSAMER_TESTS_SIMULATION_PARAMETER_WATCH_H_
#define GOSSAMER_TESTS_SIMULATION_PARAMETER_WATCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/compress/codec.h"
#include "algorithms/edge/codec_side.h"

namespace gossamer::simulation {

class ParameterWatch {
 public:
  // `x` outlives it.
  explicit ParameterWatch(std::span<const float> x)
      : x_(x), copy_(x.begin(), x.end()) {}

  bool Same() const;
  // A step or a checkpoint has changed them.
  void Accept() { copy_.assign(x_.begin(), x_.end()); }
  // A correction has, of an edge with this codec.  Returns a hash of its bits,
  // with the signs turned if `negate`: equal for opposite corrections.
  uint64_t Correct(const Codec& whole, ExchangeId id, const EdgeMessage& mine,
                   const EdgeMessage& theirs, float c,
                   std::span<const float> difference, bool negate);

 private:
  const std::span<const float> x_;
  std::vector<float> copy_;
  std::vector<float> increment_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_PARAMETER_WATCH_H_
