// `dense-f32`: values as floats, on edges and as the exact mean of gradients.

#include "algorithms/base/status_macros.h"
#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/compress/dense_gradients.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  PiecePolicy policy = StatelessPolicy(WireFormat::kDenseF32);
  const Option options[] = {FragmentsField(policy.fragments)};
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, options));
  return MakePieceCodec(text.whole, policy, layout, queue);
}

MadeGradients MakeGradients(const CompressorText& text,
                            const ParameterLayout& layout, const Kernels&,
                            const ValueCoderMaker&) {
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, {}));
  return MakeDense(layout.size());
}

}  // namespace

GOSSAMER_COMPRESSOR(dense_f32) = {
    .name = "dense-f32",
    .help = {.summary = "parameters, or gradients, as floats",
             .property = "exact",
             .bits = "32",
             .state = "0",
             .gamma = "1",
             .source = "Xiao, Boyd, Systems & Control Letters 2004",
             .page = "difference"},
    .edges = Make,
    .gradients = MakeGradients,
    .warmup_steps = -1};

}  // namespace gossamer
