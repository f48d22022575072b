// `innov-lm2`: innovations in Lloyd and Max's four levels.

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  return MakeBlocks(text, InnovationPolicy(WireFormat::kLm2), layout, queue);
}

}  // namespace

GOSSAMER_COMPRESSOR(innov_lm2) = {
    .name = "innov-lm2",
    .help = {.summary = "innovations in Lloyd and Max's four levels",
             .property = "contractive, 0.88",
             .bits = "2.125",
             .state = "2 per edge",
             .needs = "lasting neighbours",
             .gamma = "1",
             .source = "Koloskova, Stich, Jaggi, ICML 2019",
             .page = "choco"},
    .edges = Make,
    .contraction = 0.88};

}  // namespace gossamer
