#include "algorithms/compress/qsgd.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/buffer_pool.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/packer.h"
#include "algorithms/compress/piece_codec.h"

namespace gossamer {
namespace {

// A codec's payloads, packed where that makes them shorter: so the size tells
// which they are.
class CodecPayloads final : public PayloadFormat {
 public:
  explicit CodecPayloads(std::shared_ptr<const Codec> codec)
      : codec_(std::move(codec)), packer_(codec_->MakePacker()) {}

  size_t size() const { return codec_->EncodedSize(codec_->format()); }

  absl::StatusOr<Payload> Accept(Payload bytes) const override {
    const WireFormat format = codec_->format();
    if (packer_ != nullptr && bytes.size() < size()) {
      const std::shared_ptr<std::byte[]> whole = pool_->Get(size());
      const std::span<std::byte> to(whole.get(), size());
      if (!packer_->Unpack(format, bytes.bytes(), to)) {
        return absl::DataLossError(
            absl::StrCat(bytes.size(),
                         " bytes are no packed payload; all need the same "
                         "gradient_codec"));
      }
      bytes = Payload(to, whole);
    }
    GOSSAMER_RETURN_IF_ERROR(codec_->Validate({format, bytes.bytes()}));
    return bytes;
  }

  void Add(std::span<const std::byte> payload,
           std::span<float> sum) const override {
    codec_->Add({codec_->format(), payload}, sum);
  }

 private:
  const std::shared_ptr<const Codec> codec_;
  const std::unique_ptr<Packer> packer_;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
};

class QuantizedGradients final : public GradientCompressor {
 public:
  QuantizedGradients(std::shared_ptr<const Codec> codec, size_t n)
      : n_(n),
        codec_(std::move(codec)),
        packer_(codec_->MakePacker()),
        format_(std::make_shared<const CodecPayloads>(codec_)) {}

  bool sums() const override { return false; }

  bool remembers() const override { return false; }
  AllReduceForm Form(uint64_t, int) const override {
    return {.floats = n_, .payloads = format_};
  }

  // Ranks round apart, so that their errors average out; a replay as before.
  void Begin(const GradientTurn& turn,
             std::span<const float> gradient) override {
    key_ = RngKey(turn.step).Fold(static_cast<uint64_t>(turn.rank)).Bits(0);
    gradient_ = gradient;
  }

  Payload Contribute(const Payload&, std::span<float> vector) override {
    if (gradient_.empty()) {
      std::ranges::fill(vector, 0.0f);
      gradient_ = vector;
    }
    const WireFormat format = codec_->format();
    const size_t size = codec_->EncodedSize(format);
    const std::shared_ptr<std::byte[]> owner = pool_->Get(size);
    const std::span<std::byte> bytes(owner.get(), size);
    codec_->Encode(format, gradient_, {}, key_, bytes);
    if (packer_ != nullptr) {
      const std::shared_ptr<std::byte[]> packed = pool_->Get(size);
      const std::span<std::byte> to(packed.get(), size);
      const size_t shorter = packer_->Pack({format, bytes}, to);
      if (shorter > 0) return Payload(to.first(shorter), packed);
    }
    return Payload(bytes, owner);
  }

  std::span<const float> Finish(std::span<const float> mean) override {
    return mean;
  }
  void VisitState(StateVisitor&) override {}

 private:
  const size_t n_;
  const std::shared_ptr<const Codec> codec_;
  const std::unique_ptr<Packer> packer_;  // the format's has another thread
  const std::shared_ptr<const CodecPayloads> format_;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  uint64_t key_ = 0;
  std::span<const float> gradient_;
};

absl::StatusOr<QsgdOptions> Read(const CompressorText& text) {
  QsgdOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  GOSSAMER_RETURN_IF_ERROR(CheckOptions(options));
  return options;
}

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const Kernels& kernels) {
  GOSSAMER_ASSIGN_OR_RETURN(const QsgdOptions options, Read(text));
  return MakeQsgd(text.whole, options, layout, kernels);
}

MadeGradients MakeGradients(const CompressorText& text,
                            const ParameterLayout& layout,
                            const Kernels& kernels, const ValueCoderMaker&) {
  GOSSAMER_ASSIGN_OR_RETURN(const QsgdOptions options, Read(text));
  return MakeQsgdGradients(options, layout, kernels);
}

}  // namespace

std::vector<Option> FieldsOf(QsgdOptions& o) {
  std::vector<Option> fields = {
      WholeOption("levels", &o.levels, 1, 127, "1, 7 or 127",
                  [](int64_t s) { return s == 1 || s == 7 || s == 127; }),
      WholeOption("bucket", &o.bucket, 128, 32768,
                  "a multiple of 128 up to 32768",
                  [](int64_t b) { return b % 128 == 0; }),
      WordOption("norm", &o.norm,
                 {{"max", Coding::kMax}, {"l2", Coding::kEuclidean}},
                 "max or l2"),
      WordOption("raw", &o.raw,
                 {{"bf16", Coding::kBf16}, {"f32", Coding::kF32}},
                 "bf16 or f32"),
      WordOption("coding", &o.coding,
                 {{"fixed", Packing::kNone},
                  {"gamma", Packing::kGamma},
                  {"omega", Packing::kOmega}},
                 "fixed, gamma or omega")};
  std::ranges::move(FieldsOf(o.blocks), std::back_inserter(fields));
  return fields;
}

absl::Status CheckOptions(const QsgdOptions& options) {
  QsgdOptions copy = options;
  GOSSAMER_RETURN_IF_ERROR(CheckOptions("qsgd", FieldsOf(copy)));
  if (options.coding == Packing::kNone || options.blocks.zstd == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "options coding and zstd of \"qsgd\" are both given, but payloads are "
      "packed one way: leave one of them out");
}

// A value a fraction t of a step above a level adds t(1−t) steps² of variance.
// Maximum norm: one value of s steps and B of t = 1/(1 + √(1 + B/s²)) each.
// Euclidean: B of s/√B, or as many of 1/2 as make up the norm.
float GammaOf(const QsgdOptions& options) {
  const double b = options.bucket, s = options.levels;
  if (options.norm == Coding::kMax) {
    return static_cast<float>(2 / (1 + std::sqrt(1 + b / (s * s))));
  }
  return static_cast<float>(2 * s <= std::sqrt(b) ? s / std::sqrt(b)
                                                  : 1 / (1 + b / (4 * s * s)));
}

MadeCodec MakeQsgd(std::string_view text, const QsgdOptions& options,
                   const ParameterLayout& layout, const Kernels& kernels) {
  PiecePolicy policy = StatelessPolicy(WireFormat::kQsgd);
  Use(options.blocks, policy);
  if (options.coding != Packing::kNone) policy.packing = options.coding;
  policy.formats.levels = options.levels;
  policy.formats.bucket = options.bucket;
  policy.formats.norm = options.norm;
  policy.formats.raw = options.raw;
  policy.gamma = policy.largest_gamma = GammaOf(options);
  return MakePieceCodec(text, policy, layout, kernels);
}

MadeGradients MakeQsgdGradients(QsgdOptions options,
                                const ParameterLayout& layout,
                                const Kernels& kernels) {
  if (options.blocks.fragments > 1) {
    return absl::InvalidArgumentError(
        "a step needs the whole gradient: leave out fragments");
  }
  options.raw = Coding::kF32;
  GOSSAMER_ASSIGN_OR_RETURN(std::shared_ptr<const Codec> made,
                            MakeQsgd("qsgd", options, layout, kernels));
  return std::make_unique<QuantizedGradients>(std::move(made), layout.size());
}

GOSSAMER_COMPRESSOR(qsgd) = {
    .name = "qsgd",
    .help = {.summary = "gradients, or parameters, rounded at random",
             .property = "unbiased, variance bounded",
             .bits = "4.031",
             .state = "0",
             .needs = "of gradients every message",
             .gamma = "1/(1 + ω)",
             .source = "Alistarh et al., NIPS 2017",
             .page = "qsgd"},
    .edges = Make,
    .gradients = MakeGradients};

}  // namespace gossamer
