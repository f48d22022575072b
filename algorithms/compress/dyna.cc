// `dyna`: one bit of a step that shrinks by itself (Dyna-COLD).

#include "algorithms/compress/dyna.h"

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  DynaOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  GOSSAMER_RETURN_IF_ERROR(CheckOptions(options));
  PiecePolicy policy = InnovationPolicy(WireFormat::kUnit);
  policy.unit = options.step;
  policy.least = options.least;
  // One bit of a step that shrinks by itself: what is coded may lag far behind.
  policy.gamma = 0.05f;
  // At 1/4 complete graphs and hypercubes run away, however large the step.
  policy.largest_gamma = 0.2f;
  return MakePieceCodec(text.whole, policy, layout, queue);
}

}  // namespace

// Below, the step is lost in the rounding of parameters of about 1, or shrinks
// faster than the method converges, and the dual runs away.
std::vector<Option> FieldsOf(DynaOptions& o) {
  return {RealOption("scale", &o.step.scale, 1e-6, 1e20),
          RealOption("decay", &o.step.decay, 0.95, 0.999999),
          RealOption("floor", &o.step.floor, 1e-6, 1e20), LeastField(o.least)};
}

absl::Status CheckOptions(const DynaOptions& options) {
  DynaOptions copy = options;
  GOSSAMER_RETURN_IF_ERROR(CheckOptions("dyna", FieldsOf(copy)));
  if (options.step.scale > options.step.floor) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("option scale of \"dyna\" is ", options.step.scale,
                   "; it must be above the floor, ", options.step.floor,
                   ": the step begins there and shrinks to the floor"));
}

GOSSAMER_COMPRESSOR(dyna) = {
    .name = "dyna",
    .help = {.summary =
                 "one bit of a step that shrinks by itself, of dyna-cold only",
             .property = "linear with the dual of dyna-cold",
             .bits = "1.000",
             .state = "2 per edge",
             .needs = "lasting neighbours, every message, a static graph",
             .gamma = "0.05",
             .source = "Zhang, You, Xie, IEEE TAC 2023",
             .page = "cold"},
    .edges = Make,
    .owned_because =
        "its step shrinks whatever the parameters do; take "
        "innov-sign"};

}  // namespace gossamer
