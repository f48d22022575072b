// The numbers in which a step computes: float32, or bfloat16 where torch's
// operations gain from it.
//
// Parameters, gradients and statistics are float32 either way.  Includes no
// torch.

#ifndef GOSSAMER_GAN_MODELS_PRECISION_H_
#define GOSSAMER_GAN_MODELS_PRECISION_H_

#include <string>

#include "absl/status/statusor.h"

namespace gossamer {

enum class Precision {
  kFloat32,
  kBf16,  // products of matrices and convolutions; sums of norms stay float32
};
// kInvalidArgument, naming the known ones.
absl::StatusOr<Precision> ParsePrecision(const std::string& name);

// Operations of the thread that made it compute in `precision` while it lives,
// on torch's CPU or on its CUDA devices.  A backward pass needs none: it takes
// the precision of what the forward pass has left.
class PrecisionScope {
 public:
  PrecisionScope(Precision precision, bool cuda);
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;
  ~PrecisionScope();

 private:
  const bool active_, cuda_;
};

// A part that has to be float32 in every step, as a power iteration is.
class Float32Scope {
 public:
  explicit Float32Scope(bool cuda);
  Float32Scope(const Float32Scope&) = delete;
  Float32Scope& operator=(const Float32Scope&) = delete;
  ~Float32Scope();

 private:
  const bool cuda_, was_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_PRECISION_H_
