#include "algorithms/compress/wire_layout.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/kernels/coded_bytes.h"

namespace gossamer {
namespace {

bool ScalesValid(Coding coding, std::span<const std::byte> scales) {
  bool valid = true;
  for (size_t i = 0; i < scales.size(); i += 2) {
    valid &= ScaleIsValid(coding, &scales[i]);
  }
  return valid;
}

float LargestScale(std::span<const std::byte> scales) {
  uint16_t largest = 0;  // they are not negative
  for (size_t i = 0; i < scales.size(); i += 2) {
    uint16_t bits;
    std::memcpy(&bits, &scales[i], sizeof(bits));
    largest = std::max(largest, bits);
  }
  return std::bit_cast<float>(uint32_t{largest} << 16);
}

}  // namespace

std::vector<Piece> SplitIntoPieces(const ParameterLayout& layout,
                                   size_t least) {
  std::vector<Piece> pieces;
  for (const Segment& segment : layout.segments()) {
    if (segment.extent.size == 0) continue;
    const bool quantized =
        segment.shape.size() > 1 && segment.extent.size >= least;
    if (!quantized && !pieces.empty() && !pieces.back().quantized) {
      pieces.back().extent.size += segment.extent.size;
    } else {
      pieces.push_back({segment.extent, quantized});
    }
  }
  return pieces;
}

std::vector<Piece> PiecesWithin(std::span<const Piece> pieces, Extent extent) {
  std::vector<Piece> within;
  const size_t end = extent.offset + extent.size;
  for (const auto& [piece, quantized] : pieces) {
    const size_t from = std::max(piece.offset, extent.offset);
    const size_t to = std::min(piece.offset + piece.size, end);
    if (from < to) {
      within.push_back({{from - extent.offset, to - from}, quantized});
    }
  }
  return within;
}

WireLayout::WireLayout(std::string name, std::span<const Piece> pieces,
                       Coding quantized, Coding others)
    : name_(std::move(name)), places_(pieces.size()) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    places_[i].coding = pieces[i].quantized ? quantized : others;
    places_[i].scales = size_;
    size_ += ScaleBytes(places_[i].coding, pieces[i].extent.size);
  }
  // Quantized codes, then the rest; without blocks there are no pieces of the
  // second kind, so that values lie in the order of the vector.
  for (const bool first : {true, false}) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      if ((pieces[i].quantized || !HasBlocks(quantized)) != first) continue;
      places_[i].codes = size_;
      size_ += CodeBytes(places_[i].coding, pieces[i].extent.size);
    }
  }
}

absl::Status WireLayout::Validate(std::span<const Piece> pieces,
                                  std::span<const std::byte> payload,
                                  const Kernels& kernels) const {
  if (payload.size() != size_) {
    return absl::DataLossError(
        absl::StrCat("payload of ", name_, " has ", payload.size(),
                     " bytes, this layout needs ", size_));
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [coding, scales, codes] = places_[i];
    const size_t n = pieces[i].extent.size;
    const auto code_bytes = payload.subspan(codes, CodeBytes(coding, n));
    const char* fault = nullptr;
    if (!ScalesValid(coding, payload.subspan(scales, ScaleBytes(coding, n)))) {
      fault = "a scale that is negative, not finite or too large";
    } else if (!kernels.valid(coding, n, code_bytes)) {
      fault = pieces[i].quantized && HasBlocks(coding)
                  ? "a code or an index out of range"
                  : "a value that is not finite or too large";
    } else if (!PaddingIsZero(coding, n, code_bytes.data())) {
      fault = "padding that is not zero";
    }
    if (fault != nullptr) {
      return absl::DataLossError(absl::StrCat(
          "payload of ", name_, " has ", fault, " in parameters [",
          pieces[i].extent.offset, ", ", pieces[i].extent.offset + n,
          "); the sender is broken or hostile"));
    }
  }
  return absl::OkStatus();
}

float WireLayout::MagnitudeBound(std::span<const Piece> pieces,
                                 std::span<const std::byte> payload, float step,
                                 float limit, const Kernels& kernels) const {
  float bound = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [coding, scales, codes] = places_[i];
    const size_t n = pieces[i].extent.size;
    if (n == 0) continue;
    float largest = static_cast<float>(LargestCode(coding));
    if (HasScales(coding)) {
      largest *= LargestScale(payload.subspan(scales, ScaleBytes(coding, n)));
    } else if (HasBlocks(coding)) {
      largest *= step;
    } else {
      const auto values = payload.subspan(codes, CodeBytes(coding, n));
      largest = kernels.valid_within(coding, n, values, limit)
                    ? limit
                    : std::numeric_limits<float>::infinity();
    }
    bound = std::max(bound, largest);
  }
  return bound;
}

}  // namespace gossamer
