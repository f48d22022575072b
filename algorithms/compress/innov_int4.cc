// `innov-int4`: innovations as int4.

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  return MakeBlocks(text, InnovationPolicy(WireFormat::kInt4), layout, queue);
}

}  // namespace

GOSSAMER_COMPRESSOR(innov_int4) = {
    .name = "innov-int4",
    .help = {.summary = "innovations as int4: the default",
             .property = "contractive, 0.986",
             .bits = "4.125",
             .state = "2 per edge",
             .needs = "lasting neighbours",
             .gamma = "1",
             .source = "Koloskova, Stich, Jaggi, ICML 2019",
             .page = "choco"},
    .edges = Make,
    .contraction = 0.986};

}  // namespace gossamer
