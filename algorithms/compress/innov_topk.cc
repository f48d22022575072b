// `innov-topk`: the largest innovations of every 4096.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "algorithms/base/status_macros.h"
#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"

namespace gossamer {
namespace {

MadeCodec Make(const CompressorText& text, const ParameterLayout& layout,
               const DeviceQueue& queue) {
  uint16_t kept = 64;  // k: values that are sent of every 4096
  BlockOptions blocks;
  std::vector<Option> options = {
      WholeOption("k", &kept, 1, static_cast<int64_t>(kChunkSize))};
  std::ranges::move(FieldsOf(blocks), std::back_inserter(options));
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, options));
  PiecePolicy policy = InnovationPolicy(WireFormat::kTopK);
  ApplyOptions(blocks, policy);
  policy.kept = kept;
  // Half of where rings of eight begin to diverge; on complete graphs 2.5k/4096
  // is too much already.
  policy.gamma = std::min(1.0f, 2.0f * kept / kChunkSize);
  policy.largest_gamma = policy.gamma;
  return MakePieceCodec(text.whole, policy, layout, queue);
}

}  // namespace

GOSSAMER_COMPRESSOR(innov_topk) = {
    .name = "innov-topk",
    .help = {.summary = "the largest innovations of each 4096",
             .property = "contractive, 0.12 with k = 64",
             .bits = "0.316",
             .state = "2 per edge",
             .needs = "lasting neighbours",
             .gamma = "2k/4096",
             .source = "Koloskova, Stich, Jaggi, ICML 2019",
             .page = "choco"},
    .edges = Make,
    .contraction = 0.12};

}  // namespace gossamer
