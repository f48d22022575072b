// `squeeze-sign`: DeepSqueeze, error feedback of parameters.

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const Kernels& kernels) {
  PiecePolicy policy = ErrorFeedbackPolicy(WireFormat::kSign);
  policy.gamma = 0.02f;
  policy.largest_gamma = 0.3f;
  return MakeBlocks(text, policy, layout, kernels);
}

}  // namespace

GOSSAMER_COMPRESSOR(squeeze_sign) = {
    .name = "squeeze-sign",
    .help = {.summary = "the same in signs",
             .property = "error feedback; slow consensus",
             .bits = "1.125",
             .state = "1 per edge",
             .needs = "lasting neighbours",
             .gamma = "0.02",
             .source = "Tang et al., arXiv 1907.07346",
             .page = "deep_squeeze"},
    .edges = Make};

}  // namespace gossamer
