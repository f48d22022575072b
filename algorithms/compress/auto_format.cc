// `auto`: of int8, int4, lm2 and signs of innovations the one of the most bits
// that a link hides.

#include "algorithms/base/status_macros.h"
#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/compress/innov_sign.h"

namespace gossamer {
namespace {

// The widest first; γ is that of int4.
constexpr WireFormat kChoices[] = {WireFormat::kInt8, WireFormat::kInt4,
                                   WireFormat::kLm2, WireFormat::kSign};

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  PiecePolicy policy = InnovationPolicy(WireFormat::kInt4);
  policy.choices = kChoices;
  policy.relative_gamma = [](WireFormat format) {
    return format == WireFormat::kSign ? kGammaOfSign : 1.0f;
  };
  const Option options[] = {LeastField(policy.least)};
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, options));
  return MakePieceCodec(text.whole, policy, layout, queue);
}

}  // namespace

GOSSAMER_COMPRESSOR(auto_format) = {
    .name = "auto",
    .help = {.summary = "the innovation of the most bits that a link hides",
             .property = "that of the format",
             .bits = "1.125 to 8.125",
             .state = "2 per edge",
             .needs = "lasting neighbours",
             .gamma = "1 or 0.6",
             .source = "this project",
             .page = "choco"},
    .edges = Make,
    .contraction = 0.64};  // of signs, the coarsest of its formats

}  // namespace gossamer
