#include "algorithms/gradients/gradient_compressor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/gradients/adacomp.h"
#include "algorithms/gradients/learned_gradients.h"
#include "algorithms/gradients/method_options.h"
#include "algorithms/gradients/quantized_gradients.h"
#include "algorithms/gradients/sparse_gradients.h"
#include "runtime/base/status_macros.h"

namespace gossamer {
namespace {

using Made = absl::StatusOr<std::unique_ptr<GradientCompressor>>;

class ExactGradients final : public GradientCompressor {
 public:
  explicit ExactGradients(size_t n) : n_(n) {}

  bool sums() const override { return true; }
  bool remembers() const override { return false; }
  bool Takes(std::span<const float>) const override { return true; }
  AllReduceForm Form(uint64_t, int) const override { return {.floats = n_}; }
  void Begin(const GradientTurn&, std::span<const float> gradient) override {
    gradient_ = gradient;
  }
  Payload Contribute(const Payload&, std::span<float> vector) override {
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

Made MakeExact(const MethodName& name, const ParameterLayout& layout,
               const Kernels&) {
  GOSSAMER_RETURN_IF_ERROR(ParseMethodOptions(name, {}));
  return std::make_unique<ExactGradients>(layout.size());
}

template <Made (*make)(const MethodName&, const ParameterLayout&,
                       const Kernels&)>
Made WithoutCoder(const MethodName& name, const ParameterLayout& layout,
                  const Kernels& kernels, const ValueCoderMaker&) {
  return make(name, layout, kernels);
}

struct Method {
  std::string_view name;
  Made (*make)(const MethodName&, const ParameterLayout&, const Kernels&,
               const ValueCoderMaker&);
};
constexpr Method kMethods[] = {
    {GradientCompressor::kExact, WithoutCoder<MakeExact>},
    {"qsgd", WithoutCoder<MakeQuantized>},
    {"top-k", WithoutCoder<MakeTopK>},
    {"scalecom", WithoutCoder<MakeScaleCom>},
    {"adacomp", WithoutCoder<MakeAdaComp>},
    {"lgc", MakeLearned}};

}  // namespace

Made GradientCompressor::Create(std::string_view name,
                                const ParameterLayout& layout,
                                const Kernels& kernels,
                                const ValueCoderMaker& coders) {
  const MethodName parts = SplitMethodName(name);
  std::vector<std::string> names;
  for (const Method& method : kMethods) {
    if (method.name == parts.base) {
      return method.make(parts, layout, kernels, coders);
    }
    names.emplace_back(method.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown gradient method \"", std::string(parts.base),
                   "\"; known: ", absl::StrJoin(names, ", ")));
}

bool GradientCompressor::Takes(std::span<const float> gradient) const {
  return HostKernels().valid(Coding::kF32, gradient.size(),
                             std::as_bytes(gradient));
}

std::vector<std::string_view> GradientCompressor::Names() {
  std::vector<std::string_view> names;
  for (const Method& method : kMethods) names.push_back(method.name);
  return names;
}

}  // namespace gossamer
