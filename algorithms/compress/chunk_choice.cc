#include "algorithms/compress/chunk_choice.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "algorithms/compress/wire_layout.h"

namespace gossamer {
namespace {

constexpr size_t kChunkBlock = 2048;

// Fields of `bits` ≤ 16 bits, one after the other.
uint32_t Field(std::span<const std::byte> from, size_t bits, size_t i) {
  uint32_t word = 0;
  const size_t at = i * bits;
  for (size_t b = 0; b < 3 && at / 8 + b < from.size(); ++b) {
    word |= std::to_integer<uint32_t>(from[at / 8 + b]) << (8 * b);
  }
  return word >> at % 8 & ((1u << bits) - 1);
}

void PutField(std::span<std::byte> to, size_t bits, size_t i, uint32_t value) {
  const size_t at = i * bits;
  const uint32_t word = value << at % 8;
  for (size_t b = 0; b < 3 && at / 8 + b < to.size(); ++b) {
    to[at / 8 + b] |= static_cast<std::byte>(word >> (8 * b) & 0xff);
  }
}

}  // namespace

ChunkChoice::ChunkChoice(const ParameterLayout& layout, size_t rate, bool flat)
    : rate_(rate), bits_(static_cast<size_t>(std::bit_width(rate - 1))) {
  assert(rate >= 2 && rate <= kMaxRate);
  if (flat && layout.size() > 0) {
    large_.push_back({0, layout.size()});
  } else {
    for (const Piece& piece : SplitIntoPieces(layout)) {
      (piece.quantized ? large_ : small_).push_back(piece.extent);
    }
  }
  const size_t block = std::max<size_t>(1, kChunkBlock / rate) * rate;
  for (const Extent& e : large_) {
    for (size_t at = 0; at < e.size; at += block) {
      const size_t size = std::min(block, e.size - at);
      blocks_.push_back(
          {{e.offset + at, size}, chosen_, (size + rate - 1) / rate});
      chosen_ += blocks_.back().count;
    }
  }
  for (const Extent& e : small_) small_floats_ += e.size;
}

size_t LargestChosenFrom(const ParameterLayout& layout, bool flat) {
  if (flat) return layout.size();
  size_t largest = 0;
  for (const Piece& piece : SplitIntoPieces(layout)) {
    if (piece.quantized) largest = std::max(largest, piece.extent.size);
  }
  return largest;
}

template <typename F>
void ChunkChoice::ForEachChunk(const F& f) const {
  size_t i = 0;
  for (const Extent& e : large_) {
    for (size_t at = 0; at < e.size; at += rate_) {
      f(i++, e.offset + at, std::min(rate_, e.size - at));
    }
  }
}

void ChunkChoice::ChooseIn(const Block& block, const Kernels& kernels,
                           std::span<const float> x, std::span<const float> y,
                           std::span<uint32_t> indices) const {
  assert(indices.size() == chosen_);
  const auto& [offset, size] = block.extent;
  const auto chosen = indices.subspan(block.first, block.count);
  kernels.argmax_abs(rate_, x.subspan(offset, size),
                     y.empty() ? y : y.subspan(offset, size), chosen);
  for (uint32_t& index : chosen) index += static_cast<uint32_t>(offset);
}

void ChunkChoice::Choose(const Kernels& kernels, std::span<const float> x,
                         std::span<const float> y,
                         std::span<uint32_t> indices) const {
  for (const Block& block : blocks_) ChooseIn(block, kernels, x, y, indices);
}

void ChunkChoice::Pack(std::span<const uint32_t> indices,
                       std::span<std::byte> out) const {
  assert(indices.size() == chosen_ && out.size() == bytes());
  ForEachChunk([&](size_t i, size_t offset, size_t) {
    PutField(out, bits_, i, indices[i] - static_cast<uint32_t>(offset));
  });
}

absl::Status ChunkChoice::Check(std::span<const std::byte> packed) const {
  if (packed.size() != bytes()) {
    return absl::DataLossError(absl::StrCat(
        "a choice of ", chosen_, " values has ", packed.size(), " bytes, not ",
        bytes(), "; all need the same game and gradient_codec"));
  }
  size_t outside = chosen_;
  ForEachChunk([&](size_t i, size_t, size_t size) {
    if (Field(packed, bits_, i) >= size) outside = i;
  });
  if (outside < chosen_) {
    return absl::DataLossError(
        absl::StrCat("choice ", outside, " of ", chosen_,
                     " is beyond its chunk; the sender is broken or hostile"));
  }
  const size_t used = chosen_ * bits_ % 8;
  if (used != 0 && std::to_integer<uint32_t>(packed.back()) >> used != 0) {
    return absl::DataLossError(
        "a choice ends in bits that belong to no index; the sender is broken "
        "or hostile");
  }
  return absl::OkStatus();
}

void ChunkChoice::Unpack(std::span<const std::byte> packed,
                         std::span<uint32_t> indices) const {
  ForEachChunk([&](size_t i, size_t offset, size_t) {
    indices[i] = static_cast<uint32_t>(offset) + Field(packed, bits_, i);
  });
}

}  // namespace gossamer
