// `moniqua`: values modulo a range, with no state at all.

#include "algorithms/compress/moniqua.h"

#include "algorithms/base/status_macros.h"
#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const Kernels& kernels) {
  ModuloOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  PiecePolicy policy = StatelessPolicy(WireFormat::kModulo);
  Use({.zstd = options.zstd, .least = options.least}, policy);
  policy.formats.theta = options.theta;
  policy.formats.bits = options.bits;
  return MakePieceCodec(text.whole, policy, layout, kernels);
}

}  // namespace

// A smaller θ has, of 8 bits, a step so short that 2^23 of it reach no further
// than 6.6.
std::vector<Option> FieldsOf(ModuloOptions& o) {
  return {RealOption("theta", &o.theta, 1e-4, 1e20),
          WholeOption("bits", &o.bits, 4, 8, "4 or 8",
                      [](int64_t bits) { return bits == 4 || bits == 8; }),
          ZstdField(o.zstd), LeastField(o.least)};
}

std::optional<ModuloOptions> ModuloOptionsOf(std::string_view text) {
  const CompressorText parts = SplitCompressorText(text);
  ModuloOptions options;
  if (parts.name != "moniqua" || !ReadOptions(parts, FieldsOf(options)).ok()) {
    return std::nullopt;
  }
  return options;
}

GOSSAMER_COMPRESSOR(moniqua) = {
    .name = "moniqua",
    .help = {.summary = "parameters modulo a range, with no state at all",
             .property = "error θ/253 of a value while peers stay within θ",
             .bits = "8",
             .state = "0",
             .needs = "peers within θ of each other",
             .gamma = "1",
             .source = "Lu, De Sa, ICML 2020",
             .page = "moniqua"},
    .edges = Make};

}  // namespace gossamer
