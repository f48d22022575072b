#include "algorithms/codec/codec.h"

#include <array>
#include <cassert>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/codec/wire_layout.h"

namespace gossamer {
namespace {

// What sets one codec apart from another.
struct Policy {
  std::string_view name;
  bool needs_replica;
  WireFormat format;
  WireFormat first_format;
  WireFormat resync_format;
};

// γ = 1 for all: each keeps at least 0.85 of what it codes, in the mean square
// (CHOCO diverges only for cruder compressors).
constexpr float kGamma = 1;

// An innovation codec begins in int8: in int4 the first messages, which carry
// whole parameters, would be off by a fourteenth of the block's largest.
constexpr std::array<Policy, 5> kPolicies = {{
    {"dense-f32", false, WireFormat::kDenseF32, WireFormat::kDenseF32,
     WireFormat::kDenseF32},
    {"dense-bf16", false, WireFormat::kDenseBf16, WireFormat::kDenseBf16,
     WireFormat::kDenseBf16},
    {"diff-int8", false, WireFormat::kInt8, WireFormat::kInt8,
     WireFormat::kInt8},
    {"innov-int8", true, WireFormat::kInt8, WireFormat::kInt8,
     WireFormat::kDenseF32},
    {"innov-int4", true, WireFormat::kInt4, WireFormat::kInt8,
     WireFormat::kDenseF32},
}};

class PieceCodec final : public Codec {
 public:
  PieceCodec(const Policy& policy, const ParameterLayout& layout,
             const Kernels& kernels)
      : policy_(policy),
        kernels_(kernels),
        size_(layout.size()),
        pieces_(SplitIntoPieces(layout)),
        layouts_{WireLayout(WireFormat::kDenseF32, pieces_),
                 WireLayout(WireFormat::kDenseBf16, pieces_),
                 WireLayout(WireFormat::kInt8, pieces_),
                 WireLayout(WireFormat::kInt4, pieces_)} {}

  std::string_view name() const override { return policy_.name; }
  bool needs_replica() const override { return policy_.needs_replica; }
  float gamma() const override { return kGamma; }
  WireFormat format() const override { return policy_.format; }
  WireFormat first_format() const override { return policy_.first_format; }
  WireFormat resync_format() const override { return policy_.resync_format; }

  size_t EncodedSize(WireFormat format) const override {
    const WireLayout* layout = LayoutOf(format);
    return layout != nullptr ? layout->size() : 0;
  }

  void Encode(WireFormat format, std::span<const float> x,
              std::span<float> replica,
              std::span<std::byte> out) const override {
    const WireLayout& layout = *LayoutOf(format);
    assert(x.size() == size_ && out.size() == layout.size());
    assert(replica.empty() || replica.size() == size_);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const auto& [offset, n] = pieces_[i].extent;
      const WireLayout::Place& place = layout.place(i);
      kernels_.encode(place.coding, x.subspan(offset, n),
                      replica.empty() ? replica : replica.subspan(offset, n),
                      out.data() + place.scales, out.data() + place.codes);
    }
  }

  absl::Status Validate(const Encoded& payload) const override {
    const WireLayout* layout = LayoutOf(payload.format);
    if (layout == nullptr) {
      return absl::DataLossError(absl::StrCat(
          "payload of unknown format ", static_cast<int>(payload.format),
          "; 1 to ", layouts_.size(), " are known"));
    }
    return layout->Validate(pieces_, payload.bytes, kernels_);
  }

  void Complete(const Encoded* mine, const Encoded* theirs, float c,
                std::span<float> difference,
                std::span<float> x) const override {
    assert(x.size() == size_);
    assert(difference.empty() || difference.size() == size_);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const auto& [offset, n] = pieces_[i].extent;
      CodedSpan parts[2];
      const Encoded* payloads[2] = {theirs, mine};
      const CodedSpan* given[2] = {};
      for (int k = 0; k < 2; ++k) {
        if (payloads[k] == nullptr) continue;
        parts[k] = LayoutOf(payloads[k]->format)->Part(i, payloads[k]->bytes);
        given[k] = &parts[k];
      }
      kernels_.apply(
          given[0], given[1], c,
          difference.empty() ? difference : difference.subspan(offset, n),
          x.subspan(offset, n));
    }
  }

 private:
  // Null for a format that is none.
  const WireLayout* LayoutOf(WireFormat format) const {
    for (const WireLayout& layout : layouts_) {
      if (layout.format() == format) return &layout;
    }
    return nullptr;
  }

  const Policy& policy_;
  const Kernels& kernels_;
  const size_t size_;
  const std::vector<Piece> pieces_;
  const std::array<WireLayout, 4> layouts_;
};

// Debian's Abseil has a string_view of its own.
constexpr auto kAppend = [](std::string* out, std::string_view name) {
  out->append(name);
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Codec>> Codec::Create(
    std::string_view name, const ParameterLayout& layout,
    const Kernels& kernels) {
  for (const Policy& policy : kPolicies) {
    if (policy.name == name) {
      return std::make_shared<const PieceCodec>(policy, layout, kernels);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown codec \"", std::string(name),
                   "\"; known: ", absl::StrJoin(Names(), ", ", kAppend)));
}

std::vector<std::string_view> Codec::Names() {
  std::vector<std::string_view> names;
  for (const Policy& policy : kPolicies) names.push_back(policy.name);
  return names;
}

}  // namespace gossamer
