#include "algorithms/compress/ternary_bins.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/little_endian.h"
#include "algorithms/compress/wire_layout.h"

namespace gossamer {
namespace {

// The two widths are two loops each, without a branch for a value: signs, of
// which a processor cannot foresee any, go from bit to bit.
template <size_t kWidth>
constexpr uint32_t kSign = kWidth == 1 ? 1u << 7 : 1u << 15;
constexpr uint32_t kFloatSign = 1u << 31;

template <size_t kWidth>
uint32_t EntryAt(std::span<const std::byte> bytes, size_t at) {
  if constexpr (kWidth == 1) return std::to_integer<uint32_t>(bytes[at]);
  return Get<uint16_t>(bytes, at);
}

// True if `count` indices from `at` on rise and are below `size`.
template <size_t kWidth>
bool Rise(std::span<const std::byte> bytes, size_t at, size_t count,
          size_t size) {
  uint32_t least = 0;
  bool rise = true;
  for (size_t i = 0; i < count; ++i, at += kWidth) {
    const uint32_t index = EntryAt<kWidth>(bytes, at) & (kSign<kWidth> - 1);
    rise &= index >= least;
    least = index + 1;
  }
  return rise && least <= size;
}

template <size_t kWidth>
void AddTo(float* bin, std::span<const std::byte> bytes, size_t at,
           size_t count, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  for (size_t i = 0; i < count; ++i, at += kWidth) {
    const uint32_t entry = EntryAt<kWidth>(bytes, at);
    const uint32_t sign = (entry & kSign<kWidth>)*(kFloatSign / kSign<kWidth>);
    bin[entry & (kSign<kWidth> - 1)] += std::bit_cast<float>(bits ^ sign);
  }
}

template <size_t kWidth>
void Take(std::byte* to, std::span<const uint32_t> indices, float value,
          float* x) {
  const auto bits = std::bit_cast<uint32_t>(value);
  for (const uint32_t index : indices) {
    const uint32_t sign = std::bit_cast<uint32_t>(x[index]) & kFloatSign;
    x[index] -= std::bit_cast<float>(bits | sign);
    const uint32_t entry = index | sign / (kFloatSign / kSign<kWidth>);
    to[0] = static_cast<std::byte>(entry);
    if constexpr (kWidth == 2) to[1] = static_cast<std::byte>(entry >> 8);
    to += kWidth;
  }
}

absl::Status Broken(const char* what) {
  return absl::DataLossError(
      absl::StrCat("an adacomp payload has ", what,
                   "; the sender is broken or hostile, or has another game or "
                   "gradient_codec"));
}

}  // namespace

TernaryBins::TernaryBins(const ParameterLayout& layout, size_t dense,
                         size_t conv, bool flat, const Kernels& kernels)
    : kernels_(kernels) {
  if (flat && layout.size() > 0) {
    layers_.push_back({{0, layout.size()}, dense});
    bins_ = layers_.back().bins();
    return;
  }
  for (const Piece& piece : SplitIntoPieces(layout)) {
    if (!piece.quantized) {
      small_.push_back(piece.extent);
      small_floats_ += piece.extent.size;
      continue;
    }
    const Segment& segment = layout.At(piece.extent.offset);
    layers_.push_back({piece.extent, segment.shape.size() >= 4 ? conv : dense});
    bins_ += layers_.back().bins();
  }
}

TernaryBins::Writer::Writer(const TernaryBins& format,
                            std::span<const float> scales,
                            std::span<const float> gradient, size_t most)
    : bytes_(format.fixed_bytes() + most),
      count_(format.floats() * sizeof(float)),
      end_(format.fixed_bytes()) {
  size_t at = 0;
  const auto put = [&](float value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
    at += sizeof(value);
  };
  for (const float scale : scales) put(scale);
  for (const Extent& e : format.small()) {
    for (size_t i = 0; i < e.size; ++i) {
      const float value = gradient.empty() ? 0.0f : gradient[e.offset + i];
      put(std::clamp(value, -kMaxMagnitude, kMaxMagnitude));
    }
  }
}

void TernaryBins::Writer::Bin(const BinnedLayer& layer, uint32_t halvings,
                              std::span<const uint32_t> indices, float value,
                              float* x) {
  assert(indices.size() <= kMaxPerBin && halvings <= kMaxHalvings);
  bytes_[count_++] = static_cast<std::byte>(
      indices.empty() ? 0 : halvings << 6 | indices.size());
  const size_t size = indices.size() * layer.entry_bytes();
  assert(size <= bytes_.size() - end_);
  const auto take = layer.entry_bytes() == 1 ? Take<1> : Take<2>;
  take(bytes_.data() + end_, indices, value, x);
  end_ += size;
}

SharedBytes TernaryBins::Writer::Finish() {
  bytes_.resize(end_);
  return SharedBytes::FromVector(std::move(bytes_));
}

absl::StatusOr<SharedBytes> TernaryBins::Accept(SharedBytes payload) const {
  const std::span<const std::byte> bytes = payload.bytes();
  if (bytes.size() < fixed_bytes() || bytes.empty()) {
    return Broken("too few bytes");
  }
  const auto values = bytes.first(floats() * sizeof(float));
  if (!kernels_.valid(Coding::kF32, floats(), values)) {
    return Broken("a value that is not finite or too large");
  }
  size_t count_at = values.size(), at = fixed_bytes();
  for (size_t l = 0; l < layers_.size(); ++l) {
    const BinnedLayer& layer = layers_[l];
    const size_t width = layer.entry_bytes();
    const auto rise = width == 1 ? Rise<1> : Rise<2>;
    const auto scale = Get<float>(bytes, l * sizeof(float));
    if (std::signbit(scale)) return Broken("a negative scale");
    for (size_t b = 0; b < layer.bins(); ++b) {
      const auto head = std::to_integer<uint32_t>(bytes[count_at++]);
      const size_t count = head & kMaxPerBin;
      if (count == 0 && head != 0) return Broken("a scale of no values");
      if (count > 0 && scale == 0) return Broken("values of no scale");
      if (bytes.size() - at < count * width) {
        return Broken("fewer indices than it counts");
      }
      if (!rise(bytes, at, count, layer.size(b))) {
        return Broken("indices that do not rise or are beyond their bin");
      }
      at += count * width;
    }
  }
  if (at != bytes.size()) return Broken("more bytes than it counts indices");
  return payload;
}

void TernaryBins::Add(std::span<const std::byte> payload,
                      std::span<float> sum) const {
  size_t value_at = layers_.size() * sizeof(float);
  for (const Extent& e : small_) {
    for (size_t i = 0; i < e.size; ++i, value_at += sizeof(float)) {
      sum[e.offset + i] += Get<float>(payload, value_at);
    }
  }
  size_t count_at = value_at, at = fixed_bytes();
  for (size_t l = 0; l < layers_.size(); ++l) {
    const BinnedLayer& layer = layers_[l];
    const size_t width = layer.entry_bytes();
    const auto add = width == 1 ? AddTo<1> : AddTo<2>;
    std::array<float, kMaxHalvings + 1> values = {
        Get<float>(payload, l * sizeof(float))};
    for (size_t i = 1; i < values.size(); ++i) values[i] = values[i - 1] / 2;
    float* bin = sum.data() + layer.extent.offset;
    for (size_t b = layer.bins(); b > 0; --b, bin += layer.bin) {
      const auto head = std::to_integer<uint32_t>(payload[count_at++]);
      const size_t count = head & kMaxPerBin;
      add(bin, payload, at, count, values[head >> 6]);
      at += count * width;
    }
  }
}

}  // namespace gossamer
