// The kernels of a device: the functions of kernels.h on a device's memory and
// on a stream.
//
// Every call enqueues its work and returns; a result lands in memory that the
// caller names, and an event on the stream says when.  Bits are those of the
// host's tables.  This header knows nothing of CUDA's headers, so that programs
// are built without them; the table comes from libgossamer_cuda.so.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_DEVICE_KERNELS_H_
#define GOSSAMER_ALGORITHMS_KERNELS_DEVICE_KERNELS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "algorithms/kernels/coding.h"
#include "algorithms/kernels/device_calls.h"
#include "algorithms/kernels/device_span.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// The doubles that squared_norm of n values needs, at least one.
constexpr size_t NormSumsOf(size_t n) {
  return std::max<size_t>(1, (n + 4095) / 4096);
}

// The doubles that `sketch` of n values needs.
constexpr size_t SketchSumsOf(size_t n) {
  constexpr size_t kPart = kSketchBuckets * kSketchRows;
  return kSketchBuckets * std::max<size_t>(1, (n + kPart - 1) / kPart);
}

// A function with a name in Kernels does the same, with the same requirements;
// the others are for devices only.  Spans and pointers are of the stream's
// device unless said otherwise.
// `indices_at_least` is missing: its output has no size that is known before it
// ends, and its one caller, AdaComp, compresses gradients on the host.
struct DeviceKernels {
  std::string_view name;  // "CUDA", "fibers"

  void (*add)(DeviceStream* stream, DeviceSpan<const float> y,
              DeviceSpan<float> x);
  void (*scale)(DeviceStream* stream, float a, DeviceSpan<float> x);
  void (*axpy)(DeviceStream* stream, float a, DeviceSpan<const float> y,
               DeviceSpan<float> x);
  void (*compensated_axpy)(DeviceStream* stream, float a,
                           DeviceSpan<const float> y, DeviceSpan<float> x,
                           DeviceSpan<float> rest);
  void (*ema)(DeviceStream* stream, float weight, DeviceSpan<const float> x,
              DeviceSpan<float> average);
  void (*optimistic)(DeviceStream* stream, float a, float b,
                     DeviceSpan<const float> g, DeviceSpan<float> previous,
                     DeviceSpan<float> x);
  void (*adam)(DeviceStream* stream, const AdamStep& step,
               DeviceSpan<const float> g, DeviceSpan<float> m,
               DeviceSpan<float> v, DeviceSpan<float> x);
  void (*oadam)(DeviceStream* stream, const AdamStep& step,
                DeviceSpan<const float> g, DeviceSpan<float> m,
                DeviceSpan<float> v, DeviceSpan<float> previous,
                DeviceSpan<float> x);
  // x ← x · ClipFactor(limit, n, c, *squares): `squares` is what squared_norm
  // of x has left in the device's memory.
  void (*clip)(DeviceStream* stream, double limit, double n, double c,
               const double* squares, DeviceSpan<float> x);

  // *outside becomes 1 if a |x| is above `limit` or a NaN, and is else left as
  // it is, so that one flag, cleared first, gathers many calls.
  void (*all_within)(DeviceStream* stream, float limit,
                     DeviceSpan<const float> x, uint32_t* outside);
  // `sums` has NormSumsOf(x.size) values; the result is the first of them, the
  // others are lost.
  void (*squared_norm)(DeviceStream* stream, DeviceSpan<const float> x,
                       DeviceSpan<double> sums);
  // `sums` has SketchSumsOf(x.size) values; the first kSketchBuckets are the
  // result, the others are lost.
  void (*sketch)(DeviceStream* stream, DeviceSpan<const float> x, uint64_t key,
                 DeviceSpan<double> sums);

  void (*transposed_product)(DeviceStream* stream,
                             DeviceSpan<const float> matrix,
                             DeviceSpan<const float> u, DeviceSpan<float> v);
  void (*product)(DeviceStream* stream, DeviceSpan<const float> matrix,
                  DeviceSpan<const float> v, DeviceSpan<float> u);
  void (*add_outer)(DeviceStream* stream, float a, DeviceSpan<const float> u,
                    DeviceSpan<const float> v, DeviceSpan<float> matrix);
  // unit ← change · UnitScale(*squares, change[*index]): what squared_norm and
  // `argmax_abs` have left in the device's memory.
  void (*normalize)(DeviceStream* stream, DeviceSpan<const float> change,
                    const double* squares, const uint32_t* index,
                    DeviceSpan<float> unit);

  void (*argmax_abs)(DeviceStream* stream, size_t chunk,
                     DeviceSpan<const float> x, DeviceSpan<const float> y,
                     DeviceSpan<uint32_t> indices);

  void (*encode)(DeviceStream* stream, Coding coding, DeviceSpan<const float> x,
                 DeviceSpan<float> replica, uint64_t key, std::byte* scales,
                 std::byte* codes);
  // The pointers of `theirs` and `mine` are the device's; the two themselves
  // are the host's, and are read before the call returns.
  void (*apply)(DeviceStream* stream, const CodedSpan* theirs,
                const CodedSpan* mine, float c, DeviceSpan<float> difference,
                DeviceSpan<float> x);
  // *invalid becomes 1 where the host's table returns false, and is else left
  // as it is.
  void (*valid_within)(DeviceStream* stream, Coding coding, size_t n,
                       const std::byte* codes, float largest,
                       uint32_t* invalid);
  // The same of scales and padding, which the host checks by itself where it
  // can look at the bytes (coded_bytes.h).
  void (*valid_scales)(DeviceStream* stream, size_t n, const CodedSpan& coded,
                       uint32_t* invalid);
  // *bits becomes the larger of itself and the largest scale, as its bf16.
  void (*largest_scale)(DeviceStream* stream, size_t n, const CodedSpan& coded,
                        uint32_t* bits);
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_DEVICE_KERNELS_H_
