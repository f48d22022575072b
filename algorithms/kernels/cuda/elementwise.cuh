// Optimizer steps, sums, norms and products of matrices on a GPU.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_CUDA_ELEMENTWISE_CUH_
#define GOSSAMER_ALGORITHMS_KERNELS_CUDA_ELEMENTWISE_CUH_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "algorithms/kernels/cuda/launch.cuh"
#include "algorithms/kernels/values.h"

namespace gossamer::cuda {

// Four neighbouring values, which a GPU reads and writes at once where they are
// aligned: the width that reaches a memory's bandwidth.
struct Four {
  float v[4];
};
__device__ inline Four LoadFour(bool aligned, const float* from) {
  if (aligned) {
    const float4 f = *reinterpret_cast<const float4*>(from);
    return {{f.x, f.y, f.z, f.w}};
  }
  return {{from[0], from[1], from[2], from[3]}};
}
__device__ inline void StoreFour(bool aligned, const Four& four, float* to) {
  if (aligned) {
    *reinterpret_cast<float4*>(to) =
        make_float4(four.v[0], four.v[1], four.v[2], four.v[3]);
    return;
  }
  for (int j = 0; j < 4; ++j) to[j] = four.v[j];
}
// A span that an operation only reads.
__device__ inline void StoreFour(bool, const Four&, const float*) {}

template <typename Op, size_t... kI, typename... T>
__device__ void ForFours(const Op& op, std::index_sequence<kI...>, bool aligned,
                         size_t n, T*... p) {
  for (size_t i = 4 * Thread(); i + 4 <= n; i += 4 * Threads()) {
    Four fours[] = {LoadFour(aligned, p + i)...};
    for (int j = 0; j < 4; ++j) op(fours[kI].v[j]...);
    (StoreFour(aligned, fours[kI], p + i), ...);
  }
  const size_t rest = n / 4 * 4 + Thread();
  if (rest < n) op(p[rest]...);
}

template <typename Op, typename... T>
__global__ void ForEachValue(Op op, bool aligned, size_t n, T*... p) {
  ForFours(op, std::index_sequence_for<T...>(), aligned, n, p...);
}

template <typename Op, typename... T>
void ForEach(DeviceStream* stream, Op op, DeviceSpan<T>... spans) {
  const size_t n = std::min({spans.size...});
  const bool aligned =
      ((reinterpret_cast<uintptr_t>(spans.data) % sizeof(float4) == 0) && ...);
  // At least three threads, for the last values.
  Launch(ForEachValue<Op, T...>, stream, n == 0 ? 0 : n / 4 + 4, op, aligned, n,
         spans.data...);
}

using Read = DeviceSpan<const float>;
using Write = DeviceSpan<float>;

inline void Add(DeviceStream* stream, Read y, Write x) {
  ForEach(stream, AddValue{}, y, x);
}
inline void Scale(DeviceStream* stream, float a, Write x) {
  ForEach(stream, ScaleValue{a}, x);
}
inline void Axpy(DeviceStream* stream, float a, Read y, Write x) {
  ForEach(stream, AxpyValue{a}, y, x);
}
inline void CompensatedAxpy(DeviceStream* stream, float a, Read y, Write x,
                            Write rest) {
  ForEach(stream, CompensatedAxpyValue{a}, y, x, rest);
}
inline void Ema(DeviceStream* stream, float weight, Read x, Write average) {
  ForEach(stream, EmaValue{weight}, x, average);
}
inline void Optimistic(DeviceStream* stream, float a, float b, Read g,
                       Write previous, Write x) {
  ForEach(stream, OptimisticValue{a, b}, g, previous, x);
}
inline void Adam(DeviceStream* stream, const AdamStep& step, Read g, Write m,
                 Write v, Write x) {
  ForEach(stream, AdamValue{step}, g, m, v, x);
}
inline void OAdam(DeviceStream* stream, const AdamStep& step, Read g, Write m,
                  Write v, Write previous, Write x) {
  ForEach(stream, OAdamValue{step}, g, m, v, previous, x);
}

__global__ void FindOutside(float limit, size_t n, const float* x,
                            uint32_t* outside) {
  bool found = false;
  const auto look = [&](float value) { found |= !Within(limit, value); };
  const bool aligned = reinterpret_cast<uintptr_t>(x) % sizeof(float4) == 0;
  ForFours(look, std::index_sequence<0>(), aligned, n, x);
  // Threads that write at once write the same.
  if (found) *outside = 1;
}
inline void AllWithin(DeviceStream* stream, float limit, Read x,
                      uint32_t* outside) {
  // At least three threads, for the last values.
  Launch(FindOutside, stream, x.empty() ? 0 : x.size / 4 + 4, limit, x.size,
         x.data, outside);
}

// Half a warp takes a chunk: its lanes are the partial sums.
__global__ void SquaresOfChunks(size_t n, const float* x, double* sums) {
  constexpr size_t kChunk = 4096, kLanes = 16;
  const size_t lane = threadIdx.x % kLanes;
  const size_t chunks = (n + kChunk - 1) / kChunk;
  // The two halves of a warp stay together, as shuffles need all lanes.
  for (size_t first = 2 * Warp(); first < chunks; first += 2 * WarpsInAll()) {
    const size_t chunk = first + Lane() / kLanes;
    const size_t begin = chunk * kChunk;
    const size_t end = begin + kChunk < n ? begin + kChunk : n;
    double sum = 0;
    for (size_t i = begin + lane; i < end; i += kLanes) {
      const double value = x[i];
      sum += value * value;
    }
    for (uint32_t d = kLanes / 2; d > 0; d /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, d);
    }
    if (lane == 0 && chunk < chunks) sums[chunk] = sum;
  }
}
// One block: in each pass the sums that are left, `apart` from each other, are
// added to their neighbours.
__global__ void AddPairwise(size_t n, double* sums) {
  if (n == 0 && threadIdx.x == 0) sums[0] = 0;
  for (size_t apart = 1; apart < n; apart *= 2) {
    for (size_t i = 2 * apart * threadIdx.x; i + apart < n;
         i += 2 * apart * blockDim.x) {
      sums[i] += sums[i + apart];
    }
    __syncthreads();
  }
}
inline void SquaredNorm(DeviceStream* stream, Read x, DeviceSpan<double> sums) {
  const size_t chunks = (x.size + 4095) / 4096;
  Launch(SquaresOfChunks, stream, (chunks + 1) / 2 * kWarp, x.size, x.data,
         sums.data);
  Launch(AddPairwise, stream, 1, chunks, sums.data);
}

// A block takes a part, and each of its threads a bucket, to which one value of
// every row belongs.
__global__ void SketchParts(size_t n, const float* x, uint64_t key,
                            double* sums) {
  static_assert(kThreads == kSketchBuckets);
  const size_t rows = (n + kSketchBuckets - 1) / kSketchBuckets;
  for (size_t part = blockIdx.x; part * kSketchRows < rows; part += gridDim.x) {
    const size_t first = part * kSketchRows;
    const size_t end = first + kSketchRows < rows ? first + kSketchRows : rows;
    double sum = 0;
    for (size_t r = first; r < end; ++r) {
      const auto row = static_cast<uint32_t>(r);
      const uint32_t column =
          (threadIdx.x - SketchRotation(key, row)) % uint32_t{kSketchBuckets};
      const size_t i = r * kSketchBuckets + column;
      if (i >= n) continue;
      const uint32_t signs = SketchSigns(key, row, column / 32);
      sum += Signed(signs >> column % 32 & 1, x[i]);
    }
    sums[part * kSketchBuckets + threadIdx.x] = sum;
  }
}
// One block: the parts are added in order.
__global__ void AddSketchParts(size_t parts, double* sums) {
  double sum = 0;
  for (size_t part = 0; part < parts; ++part) {
    sum += sums[part * kSketchBuckets + threadIdx.x];
  }
  sums[threadIdx.x] = sum;
}
inline void Sketch(DeviceStream* stream, Read x, uint64_t key,
                   DeviceSpan<double> sums) {
  constexpr size_t kPart = kSketchBuckets * kSketchRows;
  const size_t parts = (x.size + kPart - 1) / kPart;
  Launch(SketchParts, stream, parts * kThreads, x.size, x.data, key, sums.data);
  Launch(AddSketchParts, stream, 1, parts, sums.data);
}

// A thread takes a column: rows are added in order.
__global__ void ColumnSums(size_t rows, size_t columns, const float* matrix,
                           const float* u, float* v) {
  for (size_t c = Thread(); c < columns; c += Threads()) {
    float sum = 0;
    for (size_t r = 0; r < rows; ++r) {
      AxpyValue{u[r]}(matrix[r * columns + c], sum);
    }
    v[c] = sum;
  }
}
inline void TransposedProduct(DeviceStream* stream, Read matrix, Read u,
                              Write v) {
  Launch(ColumnSums, stream, v.size, u.size, v.size, matrix.data, u.data,
         v.data);
}

// A warp takes a row.
__global__ void RowSums(size_t rows, size_t columns, const float* matrix,
                        const float* v, float* u) {
  constexpr uint32_t kLanes = 16;
  const size_t whole = columns / kLanes * kLanes;
  for (size_t r = Warp(); r < rows; r += WarpsInAll()) {
    const float* row = matrix + r * columns;
    float lanes = 0;
    for (size_t i = 0; i < whole; i += kWarp) {
      // The last sixteen may be alone: then the upper lanes add no product.
      const bool both = i + kWarp <= whole;
      const size_t at = i + Lane();
      const float product = at < whole ? row[at] * v[at] : 0;
      const float upper = __shfl_xor_sync(kAllLanes, product, kLanes);
      lanes += product;
      if (both) lanes += upper;
    }
    const size_t at = whole + Lane();
    const float product = at < columns ? row[at] * v[at] : 0;
    float sum = 0;
    for (size_t i = 0; i < columns - whole; ++i) {
      sum += __shfl_sync(kAllLanes, product, static_cast<int>(i));
    }
    for (uint32_t i = 0; i < kLanes; ++i) {
      sum += __shfl_sync(kAllLanes, lanes, static_cast<int>(i));
    }
    if (Lane() == 0) u[r] = sum;
  }
}
inline void Product(DeviceStream* stream, Read matrix, Read v, Write u) {
  Launch(RowSums, stream, u.size * kWarp, u.size, v.size, matrix.data, v.data,
         u.data);
}

__global__ void AddOuterProduct(float a, size_t rows, size_t columns,
                                const float* u, const float* v, float* matrix) {
  for (size_t i = Thread(); i < rows * columns; i += Threads()) {
    AxpyValue{a * u[i / columns]}(v[i % columns], matrix[i]);
  }
}
inline void AddOuter(DeviceStream* stream, float a, Read u, Read v,
                     Write matrix) {
  Launch(AddOuterProduct, stream, (matrix.size + 3) / 4, a, u.size, v.size,
         u.data, v.data, matrix.data);
}

__global__ void ScaleToUnit(size_t n, const float* change,
                            const double* squares, const uint32_t* index,
                            float* unit) {
  const double scale = UnitScale(*squares, change[*index]);
  for (size_t i = Thread(); i < n; i += Threads()) {
    unit[i] = static_cast<float>(change[i] * scale);
  }
}
inline void Normalize(DeviceStream* stream, Read change, const double* squares,
                      const uint32_t* index, Write unit) {
  Launch(ScaleToUnit, stream, unit.size, unit.size, change.data, squares, index,
         unit.data);
}

__global__ void ScaleToLimit(size_t n, double limit, double divisor, double c,
                             const double* squares, float* x) {
  const float factor = ClipFactor(limit, divisor, c, *squares);
  for (size_t i = Thread(); i < n; i += Threads()) x[i] *= factor;
}
inline void Clip(DeviceStream* stream, double limit, double n, double c,
                 const double* squares, Write x) {
  Launch(ScaleToLimit, stream, x.size, x.size, limit, n, c, squares, x.data);
}

// `group` lanes, a power of two up to a warp, take a chunk.
__global__ void ArgmaxAbsOfChunks(uint32_t group, size_t chunk, size_t n,
                                  const float* x, const float* y,
                                  uint32_t* indices) {
  const size_t chunks = (n + chunk - 1) / chunk;
  const uint32_t lane = Lane() % group;
  const size_t per_warp = kWarp / group;
  for (size_t first = Warp() * per_warp; first < chunks;
       first += WarpsInAll() * per_warp) {
    const size_t at = (first + Lane() / group) * chunk;
    const size_t end = at + chunk < n ? at + chunk : n;
    // No magnitude is below this, and NaN is never larger.
    float largest = -1;
    auto index = static_cast<uint32_t>(at);
    for (size_t k = at + lane; k < end; k += group) {
      const float magnitude = fabsf(y == nullptr ? x[k] : x[k] + y[k]);
      if (!(magnitude > largest)) continue;
      largest = magnitude;
      index = static_cast<uint32_t>(k);
    }
    for (uint32_t d = group / 2; d > 0; d /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, largest, d);
      const uint32_t there = __shfl_xor_sync(kAllLanes, index, d);
      // Of equal ones the first.
      if (other > largest || (other == largest && there < index)) {
        largest = other;
        index = there;
      }
    }
    if (lane == 0 && at < n) indices[at / chunk] = index;
  }
}
inline void ArgmaxAbs(DeviceStream* stream, size_t chunk, Read x, Read y,
                      DeviceSpan<uint32_t> indices) {
  uint32_t group = 1;
  while (group < kWarp && group < chunk) group *= 2;
  Launch(ArgmaxAbsOfChunks, stream, indices.size * group, group, chunk, x.size,
         x.data, y.data, indices.data);
}

}  // namespace gossamer::cuda

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CUDA_ELEMENTWISE_CUH_
