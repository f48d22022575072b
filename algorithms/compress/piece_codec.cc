#include "algorithms/compress/piece_codec.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/ids.h"
#include "algorithms/compress/options.h"
#include "algorithms/compress/wire_layout.h"

namespace gossamer {
namespace {

// Nullopt: no format of edges that codes values by itself.
std::optional<Coding> CodingOf(WireFormat format, uint16_t kept) {
  switch (format) {
    case WireFormat::kDenseF32:
      return Coding::kF32;
    case WireFormat::kDenseBf16:
      return Coding::kBf16;
    case WireFormat::kInt8:
      return Coding::kInt8;
    case WireFormat::kInt4:
      return Coding::kInt4;
    case WireFormat::kLm2:
      return Coding::kLm2;
    case WireFormat::kSign:
      return Coding::kSign;
    case WireFormat::kTopK:
      return Coding::TopK(kept);
    case WireFormat::kUnit:
      return Coding::kUnit;
    default:
      return std::nullopt;
  }
}

using Layouts = std::vector<std::optional<WireLayout>>;

Layouts LayoutsOf(std::span<const Piece> pieces, uint16_t kept) {
  Layouts layouts(kLastWireFormat);
  for (int format = 1; format <= kLastWireFormat; ++format) {
    const auto coding = CodingOf(static_cast<WireFormat>(format), kept);
    if (!coding) continue;
    layouts[static_cast<size_t>(format) - 1].emplace(
        absl::StrCat("format ", format), pieces, *coding,
        HasBlocks(*coding) ? Coding::kBf16 : *coding);
  }
  return layouts;
}

// Fragment i of P of `size` parameters.  Cut where blocks and chunks would end
// anyway, if the fragments are large enough for that.
Extent FragmentExtent(size_t size, int fragments, int i) {
  const auto cut = [&](size_t k) {
    const size_t at = size * k / static_cast<size_t>(fragments);
    return k < static_cast<size_t>(fragments) ? at / kBlockSize * kBlockSize
                                              : size;
  };
  const auto k = static_cast<size_t>(i);
  return {cut(k), cut(k + 1) - cut(k)};
}

class PieceCodec final : public Codec {
 public:
  PieceCodec(std::string_view name, const PiecePolicy& policy, Extent extent,
             std::vector<Piece> pieces, const DeviceQueue& queue)
      : name_(name),
        policy_(policy),
        queue_(queue),
        extent_(extent),
        pieces_(std::move(pieces)),
        layouts_(LayoutsOf(pieces_, policy.kept)) {
    if (policy.fragments == 1) return;
    PiecePolicy whole = policy;
    whole.fragments = 1;
    for (int i = 0; i < policy.fragments; ++i) {
      const Extent part = FragmentExtent(size(), policy.fragments, i);
      fragments_.push_back(std::make_unique<PieceCodec>(
          name, whole, part, PiecesWithin(pieces_, part), queue));
    }
  }

  size_t size() const override { return extent_.size; }
  int parts() const override { return std::max<int>(1, fragments_.size()); }
  CodecPart part(int i) const override {
    if (fragments_.empty()) return Codec::part(i);
    const PieceCodec* const fragment = fragments_[static_cast<size_t>(i)].get();
    return {fragment->extent_, fragment};
  }
  DueParts Due(uint64_t round) const override {
    return {DuePart(round, parts())};
  }

  std::string_view name() const override { return name_; }
  const DeviceQueue& queue() const override { return queue_; }
  EdgeMemory memory() const override { return policy_.memory; }
  float gamma() const override { return policy_.gamma; }
  float largest_gamma() const override { return policy_.largest_gamma; }
  WireFormat format() const override { return policy_.format; }
  WireFormat first_format() const override { return policy_.first_format; }
  WireFormat resync_format() const override { return policy_.resync_format; }
  std::span<const WireFormat> choices() const override {
    return policy_.choices;
  }
  float RelativeGamma(WireFormat format) const override {
    return policy_.relative_gamma == nullptr ? 1.0f
                                             : policy_.relative_gamma(format);
  }

  size_t EncodedSize(WireFormat format) const override {
    const WireLayout* const layout = LayoutOf(format);
    size_t largest =
        layout != nullptr && fragments_.empty() ? layout->size() : 0;
    for (const auto& fragment : fragments_) {
      largest = std::max(largest, fragment->EncodedSize(format));
    }
    return largest;
  }

  void Encode(WireFormat format, DeviceSpan<const float> x,
              DeviceSpan<float> memory, uint64_t key,
              DeviceSpan<std::byte> out) const override {
    const WireLayout& layout = *LayoutOf(format);
    assert(fragments_.empty());
    assert(x.size == size() && out.size == layout.size());
    assert(memory.empty() || memory.size == size());
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const auto& [offset, n] = pieces_[i].extent;
      const WireLayout::Place& place = layout.place(i);
      queue_.Run(&DeviceKernels::encode, CodingAt(place.coding, key),
                 x.subspan(offset, n),
                 memory.empty() ? memory : memory.subspan(offset, n), 0,
                 out.data + place.scales, out.data + place.codes);
    }
  }

  absl::Status Validate(const Encoded& payload) const override {
    const WireLayout* layout = LayoutOf(payload.format);
    if (layout == nullptr) {
      return absl::DataLossError(absl::StrCat(
          "payload of unknown format ", static_cast<int>(payload.format),
          "; both ends need the same codec and version"));
    }
    return layout->Validate(pieces_, payload.bytes, queue_.host_kernels());
  }

  float MagnitudeBound(const Encoded& payload, float limit) const override {
    const float step = policy_.unit.StepOf(RoundOf(payload.key));
    return LayoutOf(payload.format)
        ->MagnitudeBound(pieces_, payload.bytes, step, limit,
                         queue_.host_kernels());
  }

  void Complete(const Encoded* mine, const Encoded* theirs, float c,
                DeviceSpan<float> difference,
                DeviceSpan<float> x) const override {
    assert(x.size == size());
    assert(difference.empty() || difference.size == size());
    const Encoded* const payloads[2] = {theirs, mine};
    const auto bytes_of = [](const Encoded* payload) {
      return payload == nullptr ? std::span<const std::byte>() : payload->bytes;
    };
    const DeviceCopy<std::byte> bytes[2] = {{queue_, bytes_of(theirs)},
                                            {queue_, bytes_of(mine)}};
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const auto& [offset, n] = pieces_[i].extent;
      CodedSpan parts[2];
      const CodedSpan* given[2] = {};
      for (int k = 0; k < 2; ++k) {
        if (payloads[k] == nullptr) continue;
        parts[k] = LayoutOf(payloads[k]->format)->Part(i, bytes[k].data());
        parts[k].coding = CodingAt(parts[k].coding, payloads[k]->key);
        given[k] = &parts[k];
      }
      queue_.Run(
          &DeviceKernels::apply, given[0], given[1], c,
          difference.empty() ? difference : difference.subspan(offset, n),
          x.subspan(offset, n));
    }
  }

 private:
  Coding CodingAt(Coding coding, uint64_t key) const {
    return coding.kind == Coding::kUnit
               ? Coding::Unit(policy_.unit.StepOf(RoundOf(key)))
               : coding;
  }
  // Null for a format that is none.
  const WireLayout* LayoutOf(WireFormat format) const {
    const size_t index = static_cast<size_t>(format) - 1;
    return index < layouts_.size() && layouts_[index] ? &*layouts_[index]
                                                      : nullptr;
  }

  const std::string name_;
  const PiecePolicy policy_;
  const DeviceQueue queue_;
  const Extent extent_;              // in the vector that it is a fragment of
  const std::vector<Piece> pieces_;  // offsets from that of extent_
  const Layouts layouts_;            // format f at f − 1
  std::vector<std::unique_ptr<const PieceCodec>> fragments_;  // none: whole
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Codec>> MakePieceCodec(
    std::string_view name, const PiecePolicy& policy,
    const ParameterLayout& layout, const DeviceQueue& queue) {
  const size_t least = kBlockSize * static_cast<size_t>(policy.fragments);
  if (policy.fragments > 1 && layout.size() > 0 && layout.size() < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec \"", std::string(name), "\": ", policy.fragments,
                     " fragments of ", layout.size(),
                     " parameters; a fragment has ", kBlockSize, " at least"));
  }
  // An edge announces a payload's bytes in 32 bits, of two such codecs in one
  // for gradient tracking.
  constexpr size_t kMaxValues = size_t{1} << 29;
  const size_t fragments = static_cast<size_t>(policy.fragments);
  if (layout.size() / fragments >= kMaxValues) {
    return absl::InvalidArgumentError(absl::StrCat(
        "codec \"", std::string(name), "\": payloads of ",
        layout.size() / fragments, " parameters; they have less than ",
        kMaxValues, ": write ", std::string(SplitCompressorText(name).name),
        ":fragments=", layout.size() / kMaxValues + 1));
  }
  return std::make_shared<const PieceCodec>(
      name, policy, Extent{0, layout.size()},
      SplitIntoPieces(layout, policy.least), queue);
}

}  // namespace gossamer
