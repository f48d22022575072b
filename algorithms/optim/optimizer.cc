#include "algorithms/optim/optimizer.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/optim/adam.h"
#include "algorithms/optim/gradient_descent.h"

namespace gossamer {
namespace {

absl::Status OutOfRange(const char* parameter, double value,
                        const char* range) {
  return absl::InvalidArgumentError(absl::StrCat(
      "optimizer: ", parameter, " is ", value, ", must be ", range));
}

// Debian's Abseil has a string_view of its own.
constexpr auto kAppend = [](std::string* out, std::string_view name) {
  out->append(name);
};

// Ranges are those of float: steps are computed in it.
absl::Status CheckSpec(const OptimizerSpec& spec) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  constexpr double kSmallest = std::numeric_limits<float>::min();
  if (!(spec.learning_rate > 0 && spec.learning_rate <= kLargest / 2)) {
    return OutOfRange("learning_rate", spec.learning_rate,
                      "positive and finite");
  }
  for (const auto& [name, beta] :
       {std::pair("beta1", spec.beta1), std::pair("beta2", spec.beta2)}) {
    if (!(beta >= 0 && static_cast<float>(beta) < 1)) {
      return OutOfRange(name, beta, "in [0, 1)");
    }
  }
  if (!(spec.epsilon >= kSmallest && spec.epsilon <= kLargest)) {
    return OutOfRange("epsilon", spec.epsilon, "positive and finite");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(
    const OptimizerSpec& spec, size_t size, const Kernels& kernels) {
  GOSSAMER_RETURN_IF_ERROR(CheckSpec(spec));
  if (spec.make != nullptr) return spec.make(spec, size, kernels);
  if (spec.name == "sgd") {
    return std::make_unique<Sgd>(spec.learning_rate, kernels);
  }
  if (spec.name == "ogda") {
    return std::make_unique<Ogda>(spec.learning_rate, size, kernels);
  }
  if (spec.name == "osg") {
    return std::make_unique<Osg>(spec.learning_rate, size, kernels);
  }
  if (spec.name == "adam") return std::make_unique<Adam>(spec, size, kernels);
  if (spec.name == "oadam") return std::make_unique<OAdam>(spec, size, kernels);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown optimizer \"", spec.name,
                   "\"; known: ", absl::StrJoin(Names(), ", ", kAppend)));
}

std::vector<std::string_view> Optimizer::Names() {
  return {"sgd", "ogda", "osg", "adam", "oadam"};
}

}  // namespace gossamer
