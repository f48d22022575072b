#include "algorithms/compress/gradient_compressor.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/adacomp.h"
#include "algorithms/compress/learned_gradients.h"
#include "algorithms/compress/method_options.h"
#include "algorithms/compress/quantized_gradients.h"
#include "algorithms/compress/sparse_gradients.h"
#include "algorithms/compress/whole_gradients.h"

namespace gossamer {
namespace {

using Made = absl::StatusOr<std::unique_ptr<GradientCompressor>>;

Made MakeExact(const MethodName& name, const ParameterLayout& layout,
               const Kernels&) {
  GOSSAMER_RETURN_IF_ERROR(ParseMethodOptions(name, {}));
  return MakeWhole(layout.size());
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
  // Steps of whole gradients before it, unless option `full` says how many; a
  // method without that option has -1.
  double full = 0;
};
constexpr Method kMethods[] = {
    {GradientCompressor::kExact, WithoutCoder<MakeExact>, -1},
    {"qsgd", WithoutCoder<MakeQuantized>},
    {"top-k", WithoutCoder<MakeTopK>},
    {"scalecom", WithoutCoder<MakeScaleCom>},
    {"adacomp", WithoutCoder<MakeAdaComp>},
    {"lgc", MakeLearned, 200}};

Made MakeMethod(const Method& method, MethodName name,
                const ParameterLayout& layout, const Kernels& kernels,
                const ValueCoderMaker& coders) {
  if (method.full < 0) return method.make(name, layout, kernels, coders);
  double full = method.full;
  const MethodOption option{"full", &full, 0, 1e9};
  GOSSAMER_ASSIGN_OR_RETURN(const std::string rest,
                            TakeMethodOption(name, option));
  name = {name.base, rest, option.key};
  GOSSAMER_ASSIGN_OR_RETURN(auto made,
                            method.make(name, layout, kernels, coders));
  if (full == 0) return made;
  return BeginWhole(static_cast<uint64_t>(full), layout.size(),
                    std::move(made));
}

}  // namespace

Made GradientCompressor::Create(std::string_view name,
                                const ParameterLayout& layout,
                                const Kernels& kernels,
                                const ValueCoderMaker& coders) {
  const MethodName parts = SplitMethodName(name);
  std::vector<std::string> names;
  for (const Method& method : kMethods) {
    if (method.name == parts.base) {
      return MakeMethod(method, parts, layout, kernels, coders);
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
