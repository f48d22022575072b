#include "algorithms/compress/scalecom.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/base/status_macros.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/compress/sparse_gradients.h"

namespace gossamer {
namespace {

class ScaleCom final : public SparseGradients {
 public:
  ScaleCom(const ScaleComOptions& options, const ParameterLayout& layout,
           const Kernels& kernels)
      : SparseGradients(options.sparse, layout, kernels),
        ahead_(options.ahead),
        mean_(layout.size()) {}

  bool summable() const override { return true; }

  AllReduceForm Form(uint64_t step, int size) const override {
    AllReduceForm form{.floats = contributed()};
    if (choice_->chosen() > 0) {
      form.leader = LeaderOf(step, size);
      form.check_leader_message =
          [choice = choice_](std::span<const std::byte> message) {
            return choice->Check(message);
          };
    }
    return form;
  }

  SharedBytes MakeLeaderMessage() override {
    return MakeMessage(ahead_ ? std::span<const float>() : gradient_);
  }

  SharedBytes Contribute(const SharedBytes& message,
                         std::span<float> vector) override {
    Forget();
    choice_->Unpack(message.bytes(), indices_);
    if (gradient_.empty()) {
      std::ranges::fill(vector, 0.0f);
    } else {
      for (const auto& block : choice_->blocks()) Gather(block, vector);
      GatherSmall(vector);
    }
    return {};
  }

  std::span<const float> Finish(std::span<const float> mean) override {
    if (!gradient_.empty()) {
      for (const auto& block : choice_->blocks()) UpdateResidual(block);
      gradient_ = {};
    }
    for (size_t i = 0; i < indices_.size(); ++i) mean_[indices_[i]] = mean[i];
    size_t at = indices_.size();
    for (const Extent& e : choice_->small()) {
      std::ranges::copy(mean.subspan(at, e.size), mean_.begin() + e.offset);
      at += e.size;
    }
    return mean_;
  }

  SharedBytes MakeNextLeaderMessage(const ReduceContext& context) override {
    const bool leads = LeaderOf(context.step + 1, context.size) == context.rank;
    return ahead_ && leads && choice_->chosen() > 0 ? MakeMessage({})
                                                    : SharedBytes();
  }

 private:
  static int LeaderOf(uint64_t step, int size) {
    return static_cast<int>(step % static_cast<uint64_t>(size));
  }

  SharedBytes MakeMessage(std::span<const float> gradient) const {
    std::vector<uint32_t> indices(choice_->chosen());
    choice_->Choose(kernels_, residual_, gradient, indices);
    std::vector<std::byte> message(choice_->bytes());
    choice_->Pack(indices, message);
    return SharedBytes::FromVector(std::move(message));
  }

  // All but what was set in the last step is 0 already.
  void Forget() {
    for (const uint32_t index : indices_) mean_[index] = 0;
  }

  const bool ahead_;
  std::vector<float> mean_;
};

MadeGradients Make(const CompressorText& text, const ParameterLayout& layout,
                   const Kernels& kernels, const ValueCoderMaker&) {
  ScaleComOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  GOSSAMER_RETURN_IF_ERROR(CheckFits(text.name, options.sparse, layout));
  return std::make_unique<ScaleCom>(options, layout, kernels);
}

}  // namespace

std::vector<Option> FieldsOf(ScaleComOptions& o) {
  std::vector<Option> fields = FieldsOf(o.sparse);
  fields.push_back(FlagOption("ahead", &o.ahead));
  return fields;
}

GOSSAMER_COMPRESSOR(scalecom) = {
    .name = "scalecom",
    .help = {.summary = "one value of every chunk, chosen by one rank for all",
             .property =
                 "commutes with averaging: volume does not grow with ranks",
             .bits = "0.39",
             .state = "1 per peer",
             .needs = "every message",
             .gamma = "–",
             .source = "Chen et al., NeurIPS 2020",
             .page = "scalecom"},
    .gradients = Make};

}  // namespace gossamer
