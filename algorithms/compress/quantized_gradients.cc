#include "algorithms/compress/quantized_gradients.h"

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/buffer_pool.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/packer.h"

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

}  // namespace

absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeQuantized(
    const MethodName& name, const ParameterLayout& layout,
    const Kernels& kernels) {
  // What is not quantized is not rounded, either: bf16 is nearest, with a bias.
  std::string codec(name.base);
  absl::StrAppend(&codec, ":", std::string(name.options),
                  name.options.empty() ? "" : ",", "raw=f32");
  GOSSAMER_ASSIGN_OR_RETURN(std::shared_ptr<const Codec> made,
                            Codec::Create(codec, layout, kernels, name.taken));
  if (made->fragments() > 1) {
    return absl::InvalidArgumentError(
        "a step needs the whole gradient: leave out fragments");
  }
  return std::make_unique<QuantizedGradients>(std::move(made), layout.size());
}

}  // namespace gossamer
