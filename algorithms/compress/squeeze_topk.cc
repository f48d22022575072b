// `squeeze-topk`: DeepSqueeze in the largest values of every 4096.

#include <algorithm>

#include "algorithms/base/status_macros.h"
#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/compress/innov_topk.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const Kernels& kernels) {
  TopKOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  PiecePolicy policy = ErrorFeedbackPolicy(WireFormat::kTopK);
  Use(options.blocks, policy);
  policy.formats.kept = options.kept;
  // A value is sent once in 4096/k rounds, with what has gathered meanwhile.
  policy.gamma = std::min(1.0f, 0.5f * options.kept / kChunkSize);
  policy.largest_gamma = std::min(1.0f, 1.0f * options.kept / kChunkSize);
  return MakePieceCodec(text.whole, policy, layout, kernels);
}

}  // namespace

GOSSAMER_COMPRESSOR(squeeze_topk) = {
    .name = "squeeze-topk",
    .help = {.summary = "the same in the largest values of every 4096",
             .property = "error feedback; very slow consensus",
             .bits = "0.316",
             .state = "1 per edge",
             .needs = "lasting neighbours",
             .gamma = "k/8192",
             .source = "Tang et al., arXiv 1907.07346",
             .page = "deep_squeeze"},
    .edges = Make};

}  // namespace gossamer
