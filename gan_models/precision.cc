#include "gan_models/precision.h"

#include <ATen/autocast_mode.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

at::DeviceType TypeOf(bool cuda) { return cuda ? at::kCUDA : at::kCPU; }

}  // namespace

absl::StatusOr<Precision> ParsePrecision(const std::string& name) {
  if (name == "float32") return Precision::kFloat32;
  if (name == "bf16") return Precision::kBf16;
  return absl::InvalidArgumentError(absl::StrCat(
      "step.precision \"", name, "\" is not known; known: float32, bf16"));
}

PrecisionScope::PrecisionScope(Precision precision, bool cuda)
    : active_(precision == Precision::kBf16), cuda_(cuda) {
  if (!active_) return;
  at::autocast::set_autocast_dtype(TypeOf(cuda_), at::kBFloat16);
  at::autocast::set_autocast_enabled(TypeOf(cuda_), true);
  at::autocast::increment_nesting();
}

PrecisionScope::~PrecisionScope() {
  if (!active_) return;
  // Copies of weights in bfloat16 are those of one pass: the next step has
  // other weights.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(TypeOf(cuda_), false);
}

Float32Scope::Float32Scope(bool cuda)
    : cuda_(cuda), was_(at::autocast::is_autocast_enabled(TypeOf(cuda))) {
  if (was_) at::autocast::set_autocast_enabled(TypeOf(cuda_), false);
}

Float32Scope::~Float32Scope() {
  if (was_) at::autocast::set_autocast_enabled(TypeOf(cuda_), true);
}

}  // namespace gossamer
