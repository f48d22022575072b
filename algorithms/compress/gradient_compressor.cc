#include "algorithms/compress/gradient_compressor.h"

namespace gossamer {

bool GradientCompressor::Accepts(std::span<const float> gradient) const {
  return HostKernels().valid(Coding::kF32, gradient.size(),
                             std::as_bytes(gradient));
}

}  // namespace gossamer
