// `squeeze-int4`: DeepSqueeze, error feedback of parameters.

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const Kernels& kernels) {
  PiecePolicy policy = ErrorFeedbackPolicy(WireFormat::kInt4);
  policy.gamma = 0.5f;
  policy.largest_gamma = 1;
  return MakeBlocks(text, policy, layout, kernels);
}

}  // namespace

GOSSAMER_COMPRESSOR(squeeze_int4) = {
    .name = "squeeze-int4",
    .help = {.summary = "parameters with what was rounded away before",
             .property = "error feedback; slow consensus",
             .bits = "4.125",
             .state = "1 per edge",
             .needs = "lasting neighbours",
             .gamma = "0.5",
             .source = "Tang et al., arXiv 1907.07346",
             .page = "deep_squeeze"},
    .edges = Make};

}  // namespace gossamer
