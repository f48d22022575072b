#include "algorithms/compress/blocks.h"

#include "algorithms/base/status_macros.h"

namespace gossamer {

Option LeastField(size_t& least) {
  return WholeOption("least", &least, 1, int64_t{1} << 30);
}

Option FragmentsField(int& fragments) {
  return WholeOption("fragments", &fragments, 1, 64);
}

std::vector<Option> FieldsOf(BlockOptions& o) {
  return {FragmentsField(o.fragments), LeastField(o.least)};
}

PiecePolicy StatelessPolicy(WireFormat format) {
  return {.format = format, .first_format = format, .resync_format = format};
}

PiecePolicy InnovationPolicy(WireFormat format) {
  return {.memory = EdgeMemory::kReplicas,
          .format = format,
          .first_format = WireFormat::kInt8,
          .resync_format = WireFormat::kDenseF32};
}

void ApplyOptions(const BlockOptions& options, PiecePolicy& policy) {
  policy.fragments = options.fragments;
  policy.least = options.least;
}

MadeCodec MakeBlocks(const CompressorText& text, PiecePolicy policy,
                     const ParameterLayout& layout, const DeviceQueue& queue) {
  BlockOptions options;
  GOSSAMER_RETURN_IF_ERROR(ReadOptions(text, FieldsOf(options)));
  ApplyOptions(options, policy);
  return MakePieceCodec(text.whole, policy, layout, queue);
}

}  // namespace gossamer
