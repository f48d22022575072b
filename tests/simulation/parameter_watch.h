// One peer's parameters, followed change by change.
//
// A local step on the compute engine may change them, a correction that an edge
// reports, and a restored checkpoint.  A copy gets exactly the reported changes
// and must stay equal bit for bit.  This header knows nothing of the sources of
// the reports.

#ifndef GOSSAMER_TESTS_SIMULATION_PARAMETER_WATCH_H_
#define GOSSAMER_TESTS_SIMULATION_PARAMETER_WATCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/compress/codec.h"
#include "algorithms/edge/edge_codec_state.h"

namespace gossamer::simulation {

class ParameterWatch {
 public:
  // `x` outlives it.
  explicit ParameterWatch(std::span<const float> x)
      : x_(x), copy_(x.begin(), x.end()) {}

  bool Same() const;
  // A step or a checkpoint has changed them.
  void Accept() { copy_.assign(x_.begin(), x_.end()); }
  // A correction has changed them.  Returns a hash of its bits, with the signs
  // turned if `negate`: opposite corrections have equal hashes.
  uint64_t Correct(const Correction& correction, bool negate);

 private:
  const std::span<const float> x_;
  std::vector<float> copy_;
  std::vector<float> increment_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_PARAMETER_WATCH_H_
