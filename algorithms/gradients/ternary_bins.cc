#include "algorithms/gradients/ternary_bins.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/codec/wire_layout.h"
#include "runtime/base/little_endian.h"

namespace gossamer {
namespace {

uint32_t EntryAt(std::span<const std::byte> bytes, size_t at, size_t width) {
  return width == 1 ? std::to_integer<uint32_t>(bytes[at])
                    : Get<uint16_t>(bytes, at);
}

uint32_t SignOf(size_t width) { return width == 1 ? 1u << 7 : 1u << 15; }

absl::Status Broken(const char* what) {
  return absl::DataLossError(
      absl::StrCat("an adacomp payload has ", what,
                   "; the sender is broken or hostile, or has another game or "
                   "gradient_codec"));
}

}  // namespace

TernaryBins::TernaryBins(const ParameterLayout& layout, size_t dense,
                         size_t conv, const Kernels& kernels)
    : kernels_(kernels) {
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
                            std::span<const float> gradient)
    : bytes_(format.fixed_bytes()), count_(format.floats() * sizeof(float)) {
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
                              std::span<const uint32_t> places,
                              const float* x) {
  assert(places.size() <= kMostOfABin && halvings <= kMostHalvings);
  bytes_[count_++] = static_cast<std::byte>(
      places.empty() ? 0 : halvings << 6 | places.size());
  const size_t width = layer.entry_bytes();
  size_t at = bytes_.size();
  bytes_.resize(at + places.size() * width);
  for (const uint32_t place : places) {
    const uint32_t entry = place | (x[place] < 0 ? SignOf(width) : 0);
    if (width == 1) {
      bytes_[at] = static_cast<std::byte>(entry);
    } else {
      Put(bytes_, at, static_cast<uint16_t>(entry));
    }
    at += width;
  }
}

Payload TernaryBins::Writer::Finish() {
  return Payload::FromVector(std::move(bytes_));
}

absl::StatusOr<Payload> TernaryBins::Accept(Payload payload) const {
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
    const auto scale = Get<float>(bytes, l * sizeof(float));
    if (std::signbit(scale)) return Broken("a negative scale");
    for (size_t b = 0; b < layer.bins(); ++b) {
      const auto head = std::to_integer<uint32_t>(bytes[count_at++]);
      const size_t count = head & kMostOfABin;
      if (count == 0 && head != 0) return Broken("a scale of no values");
      if (count > 0 && scale == 0) return Broken("values of no scale");
      if (bytes.size() - at < count * width) {
        return Broken("fewer places than it counts");
      }
      size_t least = 0;
      for (size_t i = 0; i < count; ++i, at += width) {
        const size_t place = EntryAt(bytes, at, width) & (SignOf(width) - 1);
        if (place < least || place >= layer.size(b)) {
          return Broken("places that do not rise or are beyond their bin");
        }
        least = place + 1;
      }
    }
  }
  if (at != bytes.size()) return Broken("more bytes than it counts places");
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
    const auto scale = Get<float>(payload, l * sizeof(float));
    for (size_t b = 0; b < layer.bins(); ++b) {
      const auto head = std::to_integer<uint32_t>(payload[count_at++]);
      const float value = std::ldexp(scale, -static_cast<int>(head >> 6));
      float* const bin = sum.data() + layer.extent.offset + b * layer.bin;
      for (size_t i = head & kMostOfABin; i > 0; --i, at += width) {
        const uint32_t entry = EntryAt(payload, at, width);
        const bool negative = (entry & SignOf(width)) != 0;
        bin[entry & (SignOf(width) - 1)] += negative ? -value : value;
      }
    }
  }
}

}  // namespace gossamer
