#include "algorithms/compress/dense_gradients.h"

#include <algorithm>
#include <utility>

namespace gossamer {
namespace {

class DenseGradients final : public GradientCompressor {
 public:
  explicit DenseGradients(size_t n) : n_(n) {}

  bool summable() const override { return true; }
  bool has_residual() const override { return false; }
  bool Accepts(std::span<const float>) const override { return true; }
  AllReduceForm Form(uint64_t, int) const override { return {.floats = n_}; }
  void Begin(const ReduceContext&, std::span<const float> gradient) override {
    gradient_ = gradient;
  }
  SharedBytes Contribute(const SharedBytes&, std::span<float> vector) override {
    if (gradient_.empty()) {
      std::ranges::fill(vector, 0.0f);
    } else {
      std::ranges::copy(gradient_, vector.begin());
    }
    return {};
  }
  std::span<const float> Finish(std::span<const float> mean) override {
    return mean;
  }
  void VisitState(StateVisitor&) override {}

 private:
  const size_t n_;
  std::span<const float> gradient_;
};

class DenseWarmup final : public GradientCompressor {
 public:
  DenseWarmup(uint64_t steps, size_t n,
              std::unique_ptr<GradientCompressor> method)
      : steps_(steps), dense_(n), method_(std::move(method)) {}

  // The answers are those of the method, also in the first steps: the
  // all-reduce schedule is chosen once for all steps.
  bool summable() const override { return method_->summable(); }
  bool has_residual() const override { return method_->has_residual(); }
  // A layout with nothing to leave out is dense in every step.  A check of a
  // name has such a layout, an empty one, and asks for all layouts.
  bool needs_warmup() const override {
    return steps_ == kAlwaysDense && method_->needs_warmup();
  }
  bool Accepts(std::span<const float> gradient) const override {
    return method_->Accepts(gradient);
  }
  AllReduceForm Form(uint64_t step, int size) const override {
    return step < steps_ ? dense_.Form(step, size) : method_->Form(step, size);
  }

  void Begin(const ReduceContext& context,
             std::span<const float> gradient) override {
    current_ = context.step < steps_ ? &dense_ : method_.get();
    current_->Begin(context, gradient);
  }
  SharedBytes MakeLeaderMessage() override {
    return current_->MakeLeaderMessage();
  }
  SharedBytes Contribute(const SharedBytes& message,
                         std::span<float> vector) override {
    return current_->Contribute(message, vector);
  }
  std::span<const float> Finish(std::span<const float> mean) override {
    return current_->Finish(mean);
  }
  SharedBytes MakeNextLeaderMessage(const ReduceContext& context) override {
    return context.step + 1 < steps_ ? SharedBytes()
                                     : method_->MakeNextLeaderMessage(context);
  }
  void VisitState(StateVisitor& visitor) override {
    method_->VisitState(visitor);
  }

 private:
  const uint64_t steps_;
  DenseGradients dense_;
  const std::unique_ptr<GradientCompressor> method_;
  GradientCompressor* current_ = &dense_;  // of the step under way
};

}  // namespace

std::unique_ptr<GradientCompressor> MakeDense(size_t n) {
  return std::make_unique<DenseGradients>(n);
}

std::unique_ptr<GradientCompressor> WithDenseWarmup(
    uint64_t steps, size_t n, std::unique_ptr<GradientCompressor> method) {
  return std::make_unique<DenseWarmup>(steps, n, std::move(method));
}

}  // namespace gossamer
