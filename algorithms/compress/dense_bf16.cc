// `dense-bf16`: values as bf16, in difference form.

#include "algorithms/base/status_macros.h"
#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  PiecePolicy policy = StatelessPolicy(WireFormat::kDenseBf16);
  const Option options[] = {FragmentsField(policy.fragments)};
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, options));
  return MakePieceCodec(text.whole, policy, layout, queue);
}

}  // namespace

GOSSAMER_COMPRESSOR(dense_bf16) = {
    .name = "dense-bf16",
    .help = {.summary = "parameters as bf16, in difference form",
             .property = "relative error 3e-6",
             .bits = "16",
             .state = "0",
             .gamma = "1",
             .source = "this project, in difference form",
             .page = "difference"},
    .edges = Make};

}  // namespace gossamer
