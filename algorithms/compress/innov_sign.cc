// `innov-sign`: signs of innovations.

#include "algorithms/compress/innov_sign.h"

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  PiecePolicy policy = InnovationPolicy(WireFormat::kSign);
  policy.gamma = kGammaOfSign;
  return MakeBlocks(text, policy, layout, queue);
}

}  // namespace

GOSSAMER_COMPRESSOR(innov_sign) = {
    .name = "innov-sign",
    .help = {.summary = "signs of innovations",
             .property = "contractive, 0.64",
             .bits = "1.125",
             .state = "2 per edge",
             .needs = "lasting neighbours",
             .gamma = "0.6",
             .source = "Koloskova, Stich, Jaggi, ICML 2019",
             .page = "choco"},
    .edges = Make,
    .contraction = 0.64};

}  // namespace gossamer
