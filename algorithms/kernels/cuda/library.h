// The contents of libgossamer_cuda.so, for a program that opens it.
//
// The library is opened at run time, so that one package serves machines with
// and without a GPU.  It is of the same build as the program: the two share
// C++ types, and the sizes here catch a mixture.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_CUDA_LIBRARY_H_
#define GOSSAMER_ALGORITHMS_KERNELS_CUDA_LIBRARY_H_

#include <cstddef>

#include "algorithms/kernels/device_calls.h"
#include "algorithms/kernels/device_kernels.h"

namespace gossamer {

struct CudaLibrary {
  const char* version = nullptr;  // of gossamer
  size_t kernels_size = sizeof(DeviceKernels);
  size_t calls_size = sizeof(DeviceCalls);
  const DeviceKernels* kernels = nullptr;
  const DeviceCalls* calls = nullptr;
};

// The one function that the library exports, and its name.
using CudaLibraryFunction = const CudaLibrary*();
inline constexpr char kCudaLibraryFunction[] = "GossamerCudaLibrary";

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CUDA_LIBRARY_H_
