// `top-k` of gradients: one value of every chunk, chosen by each rank for
// itself.

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/compress/sparse_gradients.h"

namespace gossamer {
namespace {

// A choice, the values chosen, then those of the small segments, all f32.
class TopKPayloads final : public PayloadFormat {
 public:
  TopKPayloads(std::shared_ptr<const ChunkChoice> choice,
               const Kernels& kernels)
      : choice_(std::move(choice)), kernels_(kernels) {}

  size_t floats() const { return choice_->chosen() + choice_->small_floats(); }
  size_t size() const { return choice_->bytes() + sizeof(float) * floats(); }

  absl::StatusOr<SharedBytes> Accept(SharedBytes bytes) const override {
    if (bytes.size() != size()) {
      return absl::DataLossError(
          absl::StrCat("a top-k payload has ", bytes.size(), " bytes, not ",
                       size(), "; all need the same game and gradient_codec"));
    }
    const auto choice = bytes.bytes().first(choice_->bytes());
    GOSSAMER_RETURN_IF_ERROR(choice_->Check(choice));
    if (!kernels_.valid(Coding::kF32, floats(),
                        bytes.bytes().subspan(choice.size()))) {
      return absl::DataLossError(
          "a top-k payload has a value that is not finite or too large; the "
          "sender is broken or hostile");
    }
    return bytes;
  }

  void Add(std::span<const std::byte> payload,
           std::span<float> sum) const override {
    std::vector<uint32_t> indices(choice_->chosen());
    choice_->Unpack(payload.first(choice_->bytes()), indices);
    const std::byte* at = payload.data() + choice_->bytes();
    const auto next = [&at] {
      float value;
      std::memcpy(&value, std::exchange(at, at + sizeof(float)), sizeof(float));
      return value;
    };
    for (const uint32_t index : indices) sum[index] += next();
    for (const Extent& e : choice_->small()) {
      for (size_t i = 0; i < e.size; ++i) sum[e.offset + i] += next();
    }
  }

 private:
  const std::shared_ptr<const ChunkChoice> choice_;
  const Kernels& kernels_;
};

class TopK final : public SparseGradients {
 public:
  TopK(const SparseOptions& options, const ParameterLayout& layout,
       const Kernels& kernels)
      : SparseGradients(options, layout, kernels),
        format_(std::make_shared<const TopKPayloads>(choice_, kernels)) {}

  bool summable() const override { return false; }

  AllReduceForm Form(uint64_t, int) const override {
    return {.floats = residual_.size(), .payloads = format_};
  }

  SharedBytes Contribute(const SharedBytes&, std::span<float>) override {
    std::vector<float> values(contributed());
    if (!gradient_.empty()) GatherSmall(values);
    // Block by block, so that memory is read once.
    for (const auto& block : choice_->blocks()) {
      choice_->ChooseIn(block, kernels_, residual_, gradient_, indices_);
      if (gradient_.empty()) continue;
      Gather(block, values);
      UpdateResidual(block);
    }
    gradient_ = {};
    std::vector<std::byte> payload(format_->size());
    choice_->Pack(indices_, std::span(payload).first(choice_->bytes()));
    std::memcpy(payload.data() + choice_->bytes(), values.data(),
                values.size() * sizeof(float));
    return SharedBytes::FromVector(std::move(payload));
  }

  std::span<const float> Finish(std::span<const float> mean) override {
    return mean;
  }

 private:
  const std::shared_ptr<const TopKPayloads> format_;
};

MadeGradients Make(const CompressorText& text, const ParameterLayout& layout,
                   const Kernels& kernels, const ValueCoderMaker&) {
  SparseOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  GOSSAMER_RETURN_IF_ERROR(CheckFits(text.name, options, layout));
  return std::make_unique<TopK>(options, layout, kernels);
}

}  // namespace

GOSSAMER_COMPRESSOR(top_k) = {
    .name = "top-k",
    .help = {.summary =
                 "one value of every chunk, chosen by each rank for itself",
             .property = "error feedback: nothing is lost",
             .bits = "0.39",
             .state = "1 per peer",
             .needs = "every message",
             .gamma = "–",
             .source = "chunks as in Chen et al., each rank for itself",
             .page = "scalecom"},
    .gradients = Make};

}  // namespace gossamer
