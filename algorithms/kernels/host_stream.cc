#include "algorithms/kernels/host_stream.h"

#include <algorithm>
#include <span>

#include "algorithms/kernels/coded_bytes.h"
#include "algorithms/kernels/values.h"

namespace gossamer {
namespace {

const Kernels& TableOf(DeviceStream* stream) {
  return *reinterpret_cast<const Kernels*>(stream);
}

// The device's form of an argument of the host, and the way back.
template <typename T>
struct Argument {
  using Device = T;
  static T Host(T value) { return value; }
};
template <typename T>
struct Argument<std::span<T>> {
  using Device = DeviceSpan<T>;
  static std::span<T> Host(DeviceSpan<T> span) { return HostSpan(span); }
};

// The device's form of a function of Kernels whose results lie in spans.
template <auto kMember, typename Function = decltype(kMember)>
struct Form;
template <auto kMember, typename... P>
struct Form<kMember, void (*Kernels::*)(P...)> {
  static void Call(DeviceStream* stream, typename Argument<P>::Device... p) {
    (TableOf(stream).*kMember)(Argument<P>::Host(p)...);
  }
};
template <auto kMember>
constexpr auto kForm = Form<kMember>::Call;

// The other functions return a value on the host, or are of devices alone.

void Clip(DeviceStream* stream, double limit, double n, double c,
          const double* squares, DeviceSpan<float> x) {
  const float factor = ClipFactor(limit, n, c, *squares);
  if (factor != 1) TableOf(stream).scale(factor, HostSpan(x));
}

void AllWithin(DeviceStream* stream, float limit, DeviceSpan<const float> x,
               uint32_t* outside) {
  if (!TableOf(stream).all_within(limit, HostSpan(x))) *outside = 1;
}

void SquaredNorm(DeviceStream* stream, DeviceSpan<const float> x,
                 DeviceSpan<double> sums) {
  HostSpan(sums)[0] = TableOf(stream).squared_norm(HostSpan(x));
}

void Sketch(DeviceStream* stream, DeviceSpan<const float> x, uint64_t key,
            DeviceSpan<double> sums) {
  TableOf(stream).sketch(HostSpan(x), key,
                         HostSpan(sums).first(kSketchBuckets));
}

void Normalize(DeviceStream*, DeviceSpan<const float> change,
               const double* squares, const uint32_t* index,
               DeviceSpan<float> unit) {
  const std::span<const float> from = HostSpan(change);
  const std::span<float> to = HostSpan(unit);
  const double scale = UnitScale(*squares, from[*index]);
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<float>(from[i] * scale);
  }
}

void ValidWithin(DeviceStream* stream, Coding coding, size_t n,
                 const std::byte* codes, float largest, uint32_t* invalid) {
  const std::span<const std::byte> bytes(codes, CodeBytes(coding, n));
  if (!TableOf(stream).valid_within(coding, n, bytes, largest)) *invalid = 1;
}

void ValidScales(DeviceStream*, size_t n, const CodedSpan& coded,
                 uint32_t* invalid) {
  const size_t bytes = ScaleBytes(coded.coding, n);
  bool valid = PaddingIsZero(coded.coding, n, coded.codes);
  for (size_t i = 0; i < bytes; i += 2) {
    valid &= ScaleIsValid(coded.coding, coded.scales + i);
  }
  if (!valid) *invalid = 1;
}

void LargestScale(DeviceStream*, size_t n, const CodedSpan& coded,
                  uint32_t* bits) {
  for (size_t i = 0; i < ScaleBytes(coded.coding, n); i += 2) {
    *bits = std::max<uint32_t>(*bits, LoadAs<uint16_t>(coded.scales + i));
  }
}

}  // namespace

DeviceStream* HostStream(const Kernels& table) {
  return reinterpret_cast<DeviceStream*>(const_cast<Kernels*>(&table));
}

const DeviceKernels& HostDeviceKernels() {
  static constexpr DeviceKernels table = {
      .name = "host",
      .add = kForm<&Kernels::add>,
      .scale = kForm<&Kernels::scale>,
      .axpy = kForm<&Kernels::axpy>,
      .compensated_axpy = kForm<&Kernels::compensated_axpy>,
      .ema = kForm<&Kernels::ema>,
      .optimistic = kForm<&Kernels::optimistic>,
      .adam = kForm<&Kernels::adam>,
      .oadam = kForm<&Kernels::oadam>,
      .clip = Clip,
      .all_within = AllWithin,
      .squared_norm = SquaredNorm,
      .sketch = Sketch,
      .transposed_product = kForm<&Kernels::transposed_product>,
      .product = kForm<&Kernels::product>,
      .add_outer = kForm<&Kernels::add_outer>,
      .normalize = Normalize,
      .argmax_abs = kForm<&Kernels::argmax_abs>,
      .encode = kForm<&Kernels::encode>,
      .apply = kForm<&Kernels::apply>,
      .valid_within = ValidWithin,
      .valid_scales = ValidScales,
      .largest_scale = LargestScale,
  };
  return table;
}

}  // namespace gossamer
