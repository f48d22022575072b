// `innov-int8`: innovations as int8.

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  return MakeBlocks(text, InnovationPolicy(WireFormat::kInt8), layout, queue);
}

}  // namespace

GOSSAMER_COMPRESSOR(innov_int8) = {
    .name = "innov-int8",
    .help = {.summary = "innovations as int8",
             .property = "contractive, 0.99996",
             .bits = "8.125",
             .state = "2 per edge",
             .needs = "lasting neighbours",
             .gamma = "1",
             .source = "Koloskova, Stich, Jaggi, ICML 2019",
             .page = "choco"},
    .edges = Make,
    .contraction = 0.99996};

}  // namespace gossamer
