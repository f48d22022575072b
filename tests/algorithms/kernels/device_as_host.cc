#include "tests/algorithms/kernels/device_as_host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "algorithms/kernels/reference_kernels.h"

namespace gossamer {
namespace {

struct Target {
  const DeviceKernels* kernels = nullptr;
  const DeviceCalls* calls = nullptr;
  DeviceStream* stream = nullptr;
  size_t misalign = 0;
};
Target target;

void Check(const char* error) {
  if (error == nullptr) return;
  std::fprintf(stderr, "device: %s\n", error);
  std::abort();
}

// A copy of the host's values in the device's memory; values that may be
// written come back when it ends.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(std::span<T> host) : host_(host) {
    const size_t offset = target.misalign * sizeof(T);
    // Not a byte more, so that the address sanitizer sees each beyond.
    Check(target.calls->allocate(
        std::max<size_t>(1, offset + host.size_bytes()), &memory_));
    data_ = reinterpret_cast<T*>(static_cast<std::byte*>(memory_) + offset);
    if (host.empty()) return;
    Check(target.calls->copy(target.stream,
                             const_cast<std::remove_const_t<T>*>(data_),
                             host.data(), host.size_bytes()));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() {
    if constexpr (!std::is_const_v<T>) {
      if (!host_.empty()) {
        Check(target.calls->copy(target.stream, host_.data(), data_,
                                 host_.size_bytes()));
      }
    }
    Check(target.calls->synchronize(target.stream));
    Check(target.calls->release(memory_));
  }

  T* data() const { return data_; }
  // An empty span has no address, as for `encode` without a replica.
  operator DeviceSpan<T>() const {  // NOLINT(google-explicit-constructor)
    return {host_.empty() ? nullptr : data_, host_.size()};
  }
  operator DeviceSpan<const T>() const  // NOLINT(google-explicit-constructor)
      requires(!std::is_const_v<T>) {
    return {host_.empty() ? nullptr : data_, host_.size()};
  }

 private:
  const std::span<T> host_;
  void* memory_ = nullptr;
  T* data_ = nullptr;
};
template <typename T>
OnDevice(std::span<T>) -> OnDevice<T>;

using Read = std::span<const float>;
using Write = std::span<float>;
using Bytes = std::span<const std::byte>;

// Runs a kernel on spans of which all go to the device.
template <typename Kernel, typename... T>
void RunOn(Kernel kernel, std::span<T>... spans) {
  [&](const auto&... there) { kernel(there...); }(OnDevice<T>(spans)...);
}

void Add(Read y, Write x) {
  RunOn([](auto&&... s) { target.kernels->add(target.stream, s...); }, y, x);
}
void Scale(float a, Write x) {
  RunOn([&](auto&&... s) { target.kernels->scale(target.stream, a, s...); }, x);
}
void Axpy(float a, Read y, Write x) {
  RunOn([&](auto&&... s) { target.kernels->axpy(target.stream, a, s...); }, y,
        x);
}
void CompensatedAxpy(float a, Read y, Write x, Write rest) {
  RunOn(
      [&](auto&&... s) {
        target.kernels->compensated_axpy(target.stream, a, s...);
      },
      y, x, rest);
}
void Ema(float weight, Read x, Write average) {
  RunOn([&](auto&&... s) { target.kernels->ema(target.stream, weight, s...); },
        x, average);
}
void Optimistic(float a, float b, Read g, Write previous, Write x) {
  RunOn(
      [&](auto&&... s) {
        target.kernels->optimistic(target.stream, a, b, s...);
      },
      g, previous, x);
}
void Adam(const AdamStep& step, Read g, Write m, Write v, Write x) {
  RunOn([&](auto&&... s) { target.kernels->adam(target.stream, step, s...); },
        g, m, v, x);
}
void OAdam(const AdamStep& step, Read g, Write m, Write v, Write previous,
           Write x) {
  RunOn([&](auto&&... s) { target.kernels->oadam(target.stream, step, s...); },
        g, m, v, previous, x);
}
bool AllWithin(float limit, Read x) {
  uint32_t outside = 0;
  {
    const OnDevice flag(std::span(&outside, 1));
    target.kernels->all_within(target.stream, limit, OnDevice(x), flag.data());
  }
  return outside == 0;
}
double SquaredNorm(Read x) {
  std::vector<double> sums(NormSumsOf(x.size()), -1.0);
  target.kernels->squared_norm(target.stream, OnDevice(x),
                               OnDevice(std::span(sums)));
  return sums[0];
}
void Sketch(Read x, uint64_t key, std::span<double> sums) {
  std::vector<double> all(SketchSumsOf(x.size()), -1.0);
  target.kernels->sketch(target.stream, OnDevice(x), key,
                         OnDevice(std::span(all)));
  std::copy_n(all.begin(), sums.size(), sums.begin());
}
void TransposedProduct(Read matrix, Read u, Write v) {
  RunOn(
      [](auto&&... s) {
        target.kernels->transposed_product(target.stream, s...);
      },
      matrix, u, v);
}
void Product(Read matrix, Read v, Write u) {
  RunOn([](auto&&... s) { target.kernels->product(target.stream, s...); },
        matrix, v, u);
}
void AddOuter(float a, Read u, Read v, Write matrix) {
  RunOn([&](auto&&... s) { target.kernels->add_outer(target.stream, a, s...); },
        u, v, matrix);
}
void ArgmaxAbs(size_t chunk, Read x, Read y, std::span<uint32_t> indices) {
  RunOn(
      [&](auto&&... s) {
        target.kernels->argmax_abs(target.stream, chunk, s...);
      },
      x, y, indices);
}
void Encode(Coding coding, Read x, Write replica, uint64_t key,
            std::byte* scales, std::byte* codes) {
  const OnDevice s(std::span(scales, ScaleBytes(coding, x.size())));
  const OnDevice c(std::span(codes, CodeBytes(coding, x.size())));
  target.kernels->encode(target.stream, coding, OnDevice(x), OnDevice(replica),
                         key, s.data(), c.data());
}

// A coded array of the host in the device's memory.
class CodedOnDevice {
 public:
  CodedOnDevice(size_t n, const CodedSpan& host)
      : scales_(Bytes(host.scales, ScaleBytes(host.coding, n))),
        codes_(Bytes(host.codes, CodeBytes(host.coding, n))),
        span_{host.coding, scales_.data(), codes_.data()} {}
  const CodedSpan& span() const { return span_; }

 private:
  const OnDevice<const std::byte> scales_, codes_;
  const CodedSpan span_;
};

void Apply(const CodedSpan* theirs, const CodedSpan* mine, float c,
           Write difference, Write x) {
  const size_t n = difference.empty() ? x.size() : difference.size();
  const CodedSpan none;
  const CodedOnDevice t(theirs != nullptr ? n : 0,
                        theirs != nullptr ? *theirs : none);
  const CodedOnDevice m(mine != nullptr ? n : 0,
                        mine != nullptr ? *mine : none);
  target.kernels->apply(target.stream, theirs != nullptr ? &t.span() : nullptr,
                        mine != nullptr ? &m.span() : nullptr, c,
                        OnDevice(difference), OnDevice(x));
}

bool ValidWithin(Coding coding, size_t n, Bytes codes, float largest) {
  uint32_t invalid = 0;
  {
    const OnDevice flag(std::span(&invalid, 1));
    target.kernels->valid_within(target.stream, coding, n,
                                 OnDevice(codes).data(), largest, flag.data());
  }
  return invalid == 0;
}

}  // namespace

void NormalizeOnDevice(std::span<const float> change, std::span<float> unit) {
  std::vector<double> sums(NormSumsOf(change.size()));
  uint32_t index = 0;
  const OnDevice there(change);
  const OnDevice squares{std::span(sums)};
  const OnDevice largest(std::span(&index, 1));
  target.kernels->squared_norm(target.stream, there, squares);
  target.kernels->argmax_abs(target.stream, change.size(), there, {}, largest);
  target.kernels->normalize(target.stream, there, squares.data(),
                            largest.data(), OnDevice(unit));
}

void ClipOnDevice(double limit, double n, double c, std::span<float> x) {
  std::vector<double> sums(NormSumsOf(x.size()));
  const OnDevice there(x);
  const OnDevice squares{std::span(sums)};
  target.kernels->squared_norm(target.stream, there, squares);
  target.kernels->clip(target.stream, limit, n, c, squares.data(), there);
}

bool ScalesAreValidOnDevice(size_t n, const CodedSpan& coded) {
  uint32_t invalid = 0;
  {
    const OnDevice flag(std::span(&invalid, 1));
    const CodedOnDevice there(n, coded);
    target.kernels->valid_scales(target.stream, n, there.span(), flag.data());
  }
  return invalid == 0;
}

uint32_t LargestScaleOnDevice(size_t n, const CodedSpan& coded) {
  uint32_t bits = 0;
  {
    const OnDevice flag(std::span(&bits, 1));
    const CodedOnDevice there(n, coded);
    target.kernels->largest_scale(target.stream, n, there.span(), flag.data());
  }
  return bits;
}

void SetMisalignment(size_t misalign) { target.misalign = misalign; }

const Kernels& DeviceAsHost(const DeviceKernels& kernels,
                            const DeviceCalls& calls) {
  target.kernels = &kernels;
  target.calls = &calls;
  static Kernels table;
  table = {
      .name = kernels.name,
      .add = Add,
      .scale = Scale,
      .axpy = Axpy,
      .compensated_axpy = CompensatedAxpy,
      .ema = Ema,
      .optimistic = Optimistic,
      .adam = Adam,
      .oadam = OAdam,
      .all_within = AllWithin,
      .squared_norm = SquaredNorm,
      .sketch = Sketch,
      .transposed_product = TransposedProduct,
      .product = Product,
      .add_outer = AddOuter,
      .argmax_abs = ArgmaxAbs,
      .indices_at_least = ReferenceKernels().indices_at_least,
      .encode = Encode,
      .apply = Apply,
      .valid_within = ValidWithin,
  };
  return table;
}

const DeviceCalls& FiberCalls() {
  // Calls that the comparison does not make are null.
  static constexpr DeviceCalls table = {
      .allocate = [](size_t bytes, void** memory) -> const char* {
        *memory = std::malloc(bytes);
        return nullptr;
      },
      .release = [](void* memory) -> const char* {
        std::free(memory);
        return nullptr;
      },
      .copy = [](DeviceStream*, void* to, const void* from,
                 size_t bytes) -> const char* {
        std::memcpy(to, from, bytes);
        return nullptr;
      },
      .synchronize = [](DeviceStream*) -> const char* { return nullptr; },
  };
  return table;
}

}  // namespace gossamer
