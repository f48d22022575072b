// The two methods of the primal-dual rule share the rule, its step size of
// mixing and the settings that it refuses.
//
// The rule is a gradient step that a dual variable corrects for what sets this
// peer's game apart from the others'.  This header knows nothing of codecs or
// rounds.

#ifndef GOSSAMER_ALGORITHMS_METHOD_COLD_H_
#define GOSSAMER_ALGORITHMS_METHOD_COLD_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "algorithms/kernels/device_queue.h"
#include "algorithms/method/method.h"
#include "algorithms/optim/optimizer.h"

namespace gossamer {

std::unique_ptr<Optimizer> MakeCold(const OptimizerSpec& spec, size_t size,
                                    const DeviceQueue& queue);
double GammaOfCold(std::string_view codec);
void CheckCold(const MethodSettings& settings, Problems& problems);

// The codec of Dyna-COLD, whose step shrinks whatever is sent.
inline constexpr std::string_view kShrinking = "dyna";

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_METHOD_COLD_H_
