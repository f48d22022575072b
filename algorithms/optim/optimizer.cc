#include "algorithms/optim/optimizer.h"

#include <limits>
#include <utility>

#include "algorithms/base/status_macros.h"
#include "algorithms/optim/adam.h"
#include "algorithms/optim/gradient_descent.h"

namespace gossamer {

// Ranges are those of float: steps are computed in it.
Problems ProblemsOf(const OptimizerSpec& spec) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  constexpr double kSmallest = std::numeric_limits<float>::min();
  Problems problems;
  if (spec.make == nullptr) {
    problems.OneOf("optimizer", spec.name, Optimizer::Names());
  }
  if (!(spec.learning_rate > 0 && spec.learning_rate <= kLargest / 2)) {
    problems.Refuse("learning_rate", "is ", spec.learning_rate,
                    "; it must be above 0 and finite");
  }
  for (const auto& [name, beta] :
       {std::pair("beta1", spec.beta1), std::pair("beta2", spec.beta2)}) {
    if (!(beta >= 0 && static_cast<float>(beta) < 1)) {
      problems.Refuse(name, "is ", beta, "; it must be 0 or more and below 1");
    }
  }
  if (!(spec.epsilon >= kSmallest && spec.epsilon <= kLargest)) {
    problems.Refuse("epsilon", "is ", spec.epsilon,
                    "; it must be above 0 and finite");
  }
  return problems;
}

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(
    const OptimizerSpec& spec, size_t size, const DeviceQueue& queue) {
  GOSSAMER_RETURN_IF_ERROR(ProblemsOf(spec).ToStatus());
  if (spec.make != nullptr) return spec.make(spec, size, queue);
  if (spec.name == "sgd") {
    return std::make_unique<Sgd>(spec.learning_rate, queue);
  }
  if (spec.name == "ogda") {
    return std::make_unique<Ogda>(spec.learning_rate, size, queue);
  }
  if (spec.name == "osg") {
    return std::make_unique<Osg>(spec.learning_rate, size, queue);
  }
  if (spec.name == "adam") return std::make_unique<Adam>(spec, size, queue);
  return std::make_unique<OAdam>(spec, size, queue);  // of Names, the last
}

std::vector<std::string_view> Optimizer::Names() {
  return {"sgd", "ogda", "osg", "adam", "oadam"};
}

}  // namespace gossamer
