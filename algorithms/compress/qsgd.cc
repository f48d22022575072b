#include "algorithms/compress/qsgd.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/buffer_pool.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

// Payloads of a coder, packed where that makes them shorter: the size tells
// which they are.
class QsgdPayloads final : public PayloadFormat {
 public:
  explicit QsgdPayloads(std::shared_ptr<const QsgdCoder> coder)
      : coder_(std::move(coder)) {}

  absl::StatusOr<SharedBytes> Accept(SharedBytes bytes) const override {
    const EliasPacker* const packer = coder_->packer();
    if (packer != nullptr && bytes.size() < coder_->size()) {
      const std::shared_ptr<std::byte[]> whole = pool_->Get(coder_->size());
      const std::span<std::byte> to(whole.get(), coder_->size());
      if (!packer->Unpack(bytes.bytes(), to)) {
        return absl::DataLossError(
            absl::StrCat(bytes.size(),
                         " bytes are no packed payload; all need the same "
                         "gradient_codec"));
      }
      bytes = SharedBytes(to, whole);
    }
    GOSSAMER_RETURN_IF_ERROR(coder_->Validate(bytes.bytes()));
    return bytes;
  }

  void Add(std::span<const std::byte> payload,
           std::span<float> sum) const override {
    coder_->Add(payload, sum);
  }

 private:
  const std::shared_ptr<const QsgdCoder> coder_;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
};

class QuantizedGradients final : public GradientCompressor {
 public:
  QuantizedGradients(std::shared_ptr<const QsgdCoder> coder, size_t n)
      : n_(n),
        coder_(std::move(coder)),
        format_(std::make_shared<const QsgdPayloads>(coder_)) {}

  bool summable() const override { return false; }

  bool has_residual() const override { return false; }
  AllReduceForm Form(uint64_t, int) const override {
    return {.floats = n_, .payloads = format_};
  }

  // Ranks round apart, so that their errors average out; a replay as before.
  void Begin(const ReduceContext& context,
             std::span<const float> gradient) override {
    key_ =
        RngKey(context.step).Fold(static_cast<uint64_t>(context.rank)).Bits(0);
    gradient_ = gradient;
  }

  SharedBytes Contribute(const SharedBytes&, std::span<float> vector) override {
    if (gradient_.empty()) {
      std::ranges::fill(vector, 0.0f);
      gradient_ = vector;
    }
    const size_t size = coder_->size();
    const std::shared_ptr<std::byte[]> owner = pool_->Get(size);
    const std::span<std::byte> bytes(owner.get(), size);
    coder_->Encode(gradient_, key_, bytes);
    if (coder_->packer() != nullptr) {
      const std::shared_ptr<std::byte[]> packed = pool_->Get(size);
      const std::span<std::byte> to(packed.get(), size);
      const size_t shorter = coder_->packer()->Pack(bytes, to);
      if (shorter > 0) return SharedBytes(to.first(shorter), packed);
    }
    return SharedBytes(bytes, owner);
  }

  std::span<const float> Finish(std::span<const float> mean) override {
    return mean;
  }
  void VisitState(StateVisitor&) override {}

 private:
  const size_t n_;
  const std::shared_ptr<const QsgdCoder> coder_;
  const std::shared_ptr<const QsgdPayloads> format_;
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  uint64_t key_ = 0;
  std::span<const float> gradient_;
};

MadeGradients Make(const CompressorText& text, const ParameterLayout& layout,
                   const Kernels& kernels, const ValueCoderMaker&) {
  QsgdOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  return std::make_unique<QuantizedGradients>(
      std::make_shared<const QsgdCoder>(options, layout, kernels),
      layout.size());
}

}  // namespace

std::vector<Option> FieldsOf(QsgdOptions& o) {
  return {WholeOption("levels", &o.levels, 1, 127, "1, 7 or 127",
                      [](int64_t s) { return s == 1 || s == 7 || s == 127; }),
          WholeOption("bucket", &o.bucket, 128, 32768,
                      "a multiple of 128 up to 32768",
                      [](int64_t b) { return b % 128 == 0; }),
          WordOption("norm", &o.norm,
                     {{"max", Coding::kMax}, {"l2", Coding::kEuclidean}},
                     "max or l2"),
          WordOption<std::optional<Elias>>("coding", &o.coding,
                                           {{"fixed", std::nullopt},
                                            {"gamma", Elias::kGamma},
                                            {"omega", Elias::kOmega}},
                                           "fixed, gamma or omega"),
          LeastField(o.least)};
}

// Pieces that are not quantized travel as floats: bf16 rounds to nearest, with
// a bias.
QsgdCoder::QsgdCoder(const QsgdOptions& options, const ParameterLayout& layout,
                     const Kernels& kernels)
    : kernels_(kernels),
      pieces_(SplitIntoPieces(layout, options.least)),
      layout_("qsgd", pieces_,
              Coding::Qsgd(options.levels, options.bucket, options.norm),
              Coding::kF32) {
  if (options.coding) packer_.emplace(*options.coding, pieces_, layout_);
}

void QsgdCoder::Encode(std::span<const float> x, uint64_t key,
                       std::span<std::byte> out) const {
  assert(out.size() == size());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const auto& [offset, n] = pieces_[i].extent;
    const WireLayout::Place& place = layout_.place(i);
    kernels_.encode(place.coding, x.subspan(offset, n), {}, RngKey(key).Bits(i),
                    out.data() + place.scales, out.data() + place.codes);
  }
}

void QsgdCoder::Add(std::span<const std::byte> payload,
                    std::span<float> sum) const {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const auto& [offset, n] = pieces_[i].extent;
    const CodedSpan part = layout_.Part(i, payload.data());
    kernels_.apply(&part, nullptr, 0, sum.subspan(offset, n), {});
  }
}

GOSSAMER_COMPRESSOR(qsgd) = {
    .name = "qsgd",
    .help = {.summary = "gradients rounded at random, without bias",
             .property = "unbiased, variance bounded",
             .bits = "4.031",
             .state = "0",
             .needs = "every message",
             .gamma = "–",
             .source = "Alistarh et al., NIPS 2017",
             .page = "qsgd"},
    .gradients = Make};

}  // namespace gossamer
