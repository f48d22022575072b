#include "algorithms/compress/codec.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/codec_options.h"
#include "algorithms/compress/elias_packer.h"
#include "algorithms/compress/masked_average.h"
#include "algorithms/compress/power_gossip.h"
#include "algorithms/compress/wire_layout.h"
#include "algorithms/compress/zstd_packer.h"

namespace gossamer {
namespace {

constexpr size_t kMostOptions = 8;
using GammaOf = float (*)(const CodecOptions&);

// What sets one codec apart from another.
struct Policy {
  std::string_view name;
  EdgeMemory memory;
  WireFormat format;
  WireFormat first_format;
  WireFormat resync_format;
  GammaOf gamma;
  GammaOf largest_gamma;
  std::array<std::string_view, kMostOptions> options = {};
};

// What keeps at least 0.85 of what it codes, in the mean square, mixes stably
// with γ = 1; CHOCO diverges only for cruder compressors.  So does what is
// stateless and deterministic: its error is one of x, not of differences.
float One(const CodecOptions&) { return 1; }

// Keeps 0.5 to 0.64.
float GammaOfSign(const CodecOptions&) { return 0.6f; }

// Half of where rings of eight begin to diverge; on complete graphs 2.5k/4096
// is too much already.
float GammaOfTopK(const CodecOptions& options) {
  return std::min(1.0f, 2.0f * options.kept / kChunkSize);
}

// 1/(1 + ω), ω the largest E‖Q(v) − v‖² / ‖v‖² of any bucket of B values v: a
// value a fraction t of a step above a level adds t(1−t) steps² of variance.
// Maximum norm: one value of s steps and B of t = 1/(1 + √(1 + B/s²)) each.
// Euclidean: B of s/√B, or as many of 1/2 as make up the norm.
float GammaOfQsgd(const CodecOptions& options) {
  const double b = options.bucket, s = options.levels;
  if (options.norm == Coding::kMax) {
    return static_cast<float>(2 / (1 + std::sqrt(1 + b / (s * s))));
  }
  return static_cast<float>(2 * s <= std::sqrt(b) ? s / std::sqrt(b)
                                                  : 1 / (1 + b / (4 * s * s)));
}

// Error feedback on parameters lags by what has accumulated: a tenth and less
// of what replicas bear (Tang et al., DeepSqueeze, arXiv 1907.07346).
float GammaOfSqueezedInt4(const CodecOptions&) { return 0.5f; }
float GammaOfSqueezedSign(const CodecOptions&) { return 0.02f; }
float GammaOfSqueezedTopK(const CodecOptions& options) {
  return std::min(1.0f, 0.5f * options.kept / kChunkSize);
}
// What is left of disagreement grows with γ; here it is half of what it was.
float LargestOfSqueezedSign(const CodecOptions&) { return 0.3f; }
// A value is sent once in 4096/k rounds, with what has gathered meanwhile.
float LargestOfSqueezedTopK(const CodecOptions& options) {
  return std::min(1.0f, 1.0f * options.kept / kChunkSize);
}

// 1 bit of a step that shrinks by itself: what is coded may lag far behind.
float GammaOfUnit(const CodecOptions&) { return 0.05f; }
// At 1/4 complete graphs and hypercubes run away, however large the step.
float LargestOfUnit(const CodecOptions&) { return 0.2f; }

// A codec of innovations begins in int8: the first messages carry whole
// parameters, which in int4 would be off by a fourteenth of the block's
// largest, and in less by more.
constexpr Policy Stateless(std::string_view name, WireFormat format,
                           GammaOf gamma = One) {
  return {name, EdgeMemory::kNone, format, format, format, gamma, gamma};
}
constexpr Policy Squeezed(std::string_view name, WireFormat format,
                          GammaOf gamma, GammaOf largest) {
  return {name, EdgeMemory::kError, format, format, format, gamma, largest};
}
constexpr Policy Innovation(std::string_view name, WireFormat format,
                            GammaOf gamma = One, GammaOf largest = One) {
  return {name,
          EdgeMemory::kReplicas,
          format,
          WireFormat::kInt8,
          WireFormat::kDenseF32,
          gamma,
          largest};
}
using Options = std::array<std::string_view, kMostOptions>;
constexpr Policy With(Policy policy, const Options& options) {
  policy.options = options;
  return policy;
}
constexpr Options kOfBlocks = {"zstd", "fragments", "least"};
constexpr Options kOfTopK = {"k", "zstd", "fragments", "least"};

// Of "auto", whose γ is that of int4.
constexpr WireFormat kChoices[] = {WireFormat::kInt8, WireFormat::kInt4,
                                   WireFormat::kLm2, WireFormat::kSign};
constexpr std::string_view kAuto = "auto";

constexpr std::array<Policy, 16> kPolicies = {{
    With(Stateless("dense-f32", WireFormat::kDenseF32), {"fragments"}),
    With(Stateless("dense-bf16", WireFormat::kDenseBf16), {"fragments"}),
    With(Stateless("diff-int8", WireFormat::kInt8), kOfBlocks),
    With(Stateless("diff-int4", WireFormat::kInt4), kOfBlocks),
    With(Innovation("innov-int8", WireFormat::kInt8), kOfBlocks),
    With(Innovation("innov-int4", WireFormat::kInt4), kOfBlocks),
    With(Innovation("innov-lm2", WireFormat::kLm2), kOfBlocks),
    With(Innovation("innov-sign", WireFormat::kSign, GammaOfSign), kOfBlocks),
    With(Innovation("innov-topk", WireFormat::kTopK, GammaOfTopK, GammaOfTopK),
         kOfTopK),
    With(Stateless("qsgd", WireFormat::kQsgd, GammaOfQsgd),
         {"levels", "bucket", "norm", "raw", "coding", "zstd", "fragments",
          "least"}),
    With(Innovation(kAuto, WireFormat::kInt4), {"least"}),
    With(Innovation("dyna", WireFormat::kUnit, GammaOfUnit, LargestOfUnit),
         {"scale", "decay", "floor", "least"}),
    With(Stateless("moniqua", WireFormat::kModulo),
         {"theta", "bits", "zstd", "least"}),
    With(Squeezed("squeeze-int4", WireFormat::kInt4, GammaOfSqueezedInt4, One),
         kOfBlocks),
    With(Squeezed("squeeze-sign", WireFormat::kSign, GammaOfSqueezedSign,
                  LargestOfSqueezedSign),
         kOfBlocks),
    With(Squeezed("squeeze-topk", WireFormat::kTopK, GammaOfSqueezedTopK,
                  LargestOfSqueezedTopK),
         kOfTopK),
}};

std::vector<WireLayout> LayoutsOf(std::span<const Piece> pieces,
                                  const CodecOptions& options) {
  std::vector<WireLayout> layouts;
  for (int format = 1; format <= kLastWireFormat; ++format) {
    layouts.emplace_back(static_cast<WireFormat>(format), pieces, options);
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
  PieceCodec(std::string_view name, const Policy& policy,
             const CodecOptions& options, Extent extent,
             std::vector<Piece> pieces, const Kernels& kernels)
      : name_(name),
        policy_(policy),
        kernels_(kernels),
        gamma_(policy.gamma(options)),
        largest_gamma_(policy.largest_gamma(options)),
        unit_(options.unit),
        packing_(options.packing),
        zstd_level_(options.zstd_level),
        extent_(extent),
        size_(extent.size),
        pieces_(std::move(pieces)),
        layouts_(LayoutsOf(pieces_, options)) {
    if (options.fragments == 1) return;
    CodecOptions whole = options;
    whole.fragments = 1;
    for (int i = 0; i < options.fragments; ++i) {
      const Extent part = FragmentExtent(size_, options.fragments, i);
      fragments_.push_back(std::make_unique<PieceCodec>(
          name, policy, whole, part, PiecesWithin(pieces_, part), kernels));
    }
  }

  int fragments() const override { return std::max<int>(1, fragments_.size()); }
  Extent extent() const override { return extent_; }
  const Codec& fragment(int i) const override {
    return fragments_.empty() ? *this : *fragments_[static_cast<size_t>(i)];
  }

  std::string_view name() const override { return name_; }
  EdgeMemory memory() const override { return policy_.memory; }
  float gamma() const override { return gamma_; }
  float largest_gamma() const override { return largest_gamma_; }
  WireFormat format() const override { return policy_.format; }
  WireFormat first_format() const override { return policy_.first_format; }
  WireFormat resync_format() const override { return policy_.resync_format; }
  std::span<const WireFormat> choices() const override {
    return policy_.name == kAuto ? kChoices : std::span<const WireFormat>();
  }
  float RelativeGamma(WireFormat format) const override {
    return policy_.name == kAuto && format == WireFormat::kSign
               ? GammaOfSign({})
               : 1.0f;
  }

  Packing packing() const override { return packing_; }
  std::unique_ptr<Packer> MakePacker() const override {
    switch (packing_) {
      case Packing::kNone:
        return nullptr;
      case Packing::kZstd:
        return MakeZstdPacker(zstd_level_);
      default:
        return MakeEliasPacker(
            packing_ == Packing::kGamma ? Elias::kGamma : Elias::kOmega,
            pieces_, *LayoutOf(WireFormat::kQsgd));
    }
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

  void Encode(WireFormat format, std::span<const float> x,
              std::span<float> memory, uint64_t key,
              std::span<std::byte> out) const override {
    const WireLayout& layout = *LayoutOf(format);
    assert(fragments_.empty());
    assert(x.size() == size_ && out.size() == layout.size());
    assert(memory.empty() || memory.size() == size_);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const auto& [offset, n] = pieces_[i].extent;
      const WireLayout::Place& place = layout.place(i);
      kernels_.encode(CodingAt(place.coding, key), x.subspan(offset, n),
                      memory.empty() ? memory : memory.subspan(offset, n),
                      RngKey(key).Bits(i), out.data() + place.scales,
                      out.data() + place.codes);
    }
    if (policy_.memory == EdgeMemory::kError && !memory.empty()) {
      kernels_.axpy(-1, x, memory);
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

  float Reach(const Encoded& payload, float limit) const override {
    const float step = unit_.StepOf(RoundOf(payload.key));
    return LayoutOf(payload.format)
        ->Reach(pieces_, payload.bytes, step, limit, kernels_);
  }

  void Add(const Encoded& payload, std::span<float> sum) const override {
    assert(sum.size() == size_);
    const WireLayout& layout = *LayoutOf(payload.format);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const auto& [offset, n] = pieces_[i].extent;
      CodedSpan part = layout.Part(i, payload.bytes);
      part.coding = CodingAt(part.coding, payload.key);
      kernels_.apply(&part, nullptr, 0, sum.subspan(offset, n), {});
    }
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
        parts[k].coding = CodingAt(parts[k].coding, payloads[k]->key);
        given[k] = &parts[k];
      }
      kernels_.apply(
          given[0], given[1], c,
          difference.empty() ? difference : difference.subspan(offset, n),
          x.subspan(offset, n));
    }
  }

 private:
  Coding CodingAt(Coding coding, uint64_t key) const {
    return coding.kind == Coding::kUnit
               ? Coding::Unit(unit_.StepOf(RoundOf(key)))
               : coding;
  }
  // Null for a format that is none.
  const WireLayout* LayoutOf(WireFormat format) const {
    const size_t index = static_cast<size_t>(format) - 1;
    return index < layouts_.size() ? &layouts_[index] : nullptr;
  }

  const std::string name_;
  const Policy& policy_;
  const Kernels& kernels_;
  const float gamma_, largest_gamma_;
  const ShrinkingStep unit_;
  const Packing packing_;
  const int zstd_level_;
  const Extent extent_;
  const size_t size_;
  const std::vector<Piece> pieces_;        // offsets from that of extent_
  const std::vector<WireLayout> layouts_;  // format f at f − 1
  std::vector<std::unique_ptr<const PieceCodec>> fragments_;  // none: whole
};

// Debian's Abseil has a string_view of its own.
constexpr auto kAppend = [](std::string* out, std::string_view name) {
  out->append(name);
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Codec>> Codec::Create(
    std::string_view name, const ParameterLayout& layout,
    const Kernels& kernels, std::string_view taken) {
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string_view base = name.substr(0, colon);
  const std::string_view text = name.substr(std::min(colon + 1, name.size()));
  if (base == MaskedAverageCodec::kName) {
    return MaskedAverageCodec::Create(name, layout, kernels);
  }
  if (base == PowerGossipCodec::kName) {
    return PowerGossipCodec::Create(name, layout, kernels);
  }
  for (const Policy& policy : kPolicies) {
    if (policy.name != base) continue;
    std::vector<std::string_view> known(policy.options.begin(),
                                        std::ranges::find(policy.options, ""));
    if (!taken.empty()) known.push_back(taken);
    GOSSAMER_ASSIGN_OR_RETURN(const CodecOptions options,
                              ParseCodecOptions(base, known, text));
    const size_t least = kBlockSize * static_cast<size_t>(options.fragments);
    if (options.fragments > 1 && layout.size() > 0 && layout.size() < least) {
      return absl::InvalidArgumentError(absl::StrCat(
          "codec \"", std::string(name), "\": ", options.fragments,
          " fragments of ", layout.size(), " parameters; a fragment has ",
          kBlockSize, " at least"));
    }
    return std::make_shared<const PieceCodec>(
        name, policy, options, Extent{0, layout.size()},
        SplitIntoPieces(layout, options.least), kernels);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown codec \"", std::string(base),
                   "\"; known: ", absl::StrJoin(Names(), ", ", kAppend)));
}

std::vector<std::string_view> Codec::Names() {
  std::vector<std::string_view> names;
  for (const Policy& policy : kPolicies) names.push_back(policy.name);
  names.push_back(PowerGossipCodec::kName);
  names.push_back(MaskedAverageCodec::kName);
  return names;
}

}  // namespace gossamer
