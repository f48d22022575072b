// One source for the scalar reference and for GPUs: a function with this mark
// is compiled for both.
//
// Such functions call each other, `constexpr` functions and C's mathematics
// only, so that nvcc, and a C++ compiler without it, make the same bits.  A GPU
// has no address of a constant of namespace scope: where a reference is taken,
// as by std::min, it is copied, `float{kMaxMagnitude}`.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_HOST_DEVICE_H_
#define GOSSAMER_ALGORITHMS_KERNELS_HOST_DEVICE_H_

#if defined(__CUDACC__)
#define GOSSAMER_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define GOSSAMER_HOST_DEVICE inline
#endif

#endif  // GOSSAMER_ALGORITHMS_KERNELS_HOST_DEVICE_H_
