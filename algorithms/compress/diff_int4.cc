// `diff-int4`: values as int4, in difference form.

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const Kernels& kernels) {
  return MakeBlocks(text, StatelessPolicy(WireFormat::kInt4), layout, kernels);
}

}  // namespace

GOSSAMER_COMPRESSOR(diff_int4) = {
    .name = "diff-int4",
    .help = {.summary = "parameters as int4, in difference form",
             .property = "relative error 0.014; a floor of consensus",
             .bits = "4.125",
             .state = "0",
             .gamma = "1",
             .source = "this project, in difference form",
             .page = "difference"},
    .edges = Make};

}  // namespace gossamer
