// `diff-int8`: values as int8, in difference form.

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  return MakeBlocks(text, StatelessPolicy(WireFormat::kInt8), layout, queue);
}

}  // namespace

GOSSAMER_COMPRESSOR(diff_int8) = {
    .name = "diff-int8",
    .help = {.summary = "parameters as int8, in difference form",
             .property = "relative error 4e-5; a floor of consensus",
             .bits = "8.125",
             .state = "0",
             .gamma = "1",
             .source = "this project, in difference form",
             .page = "difference"},
    .edges = Make};

}  // namespace gossamer
