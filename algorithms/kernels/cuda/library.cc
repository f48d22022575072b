#include "algorithms/kernels/cuda/library.h"

#include "algorithms/kernels/cuda/calls.h"
#include "algorithms/kernels/cuda/kernels.h"

extern "C" __attribute__((visibility("default"))) const gossamer::CudaLibrary*
GossamerCudaLibrary() {
  static const gossamer::CudaLibrary library = {
      .version = GOSSAMER_VERSION,
      .kernels = &gossamer::CudaKernels(),
      .calls = &gossamer::CudaCalls(),
  };
  return &library;
}
