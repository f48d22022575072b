// Masked exact averaging: both ends of an edge exchange the same few values, as
// they are.
//
// ScaleCom's CLT-k (Chen et al., NeurIPS 2020, section 3) brought to an edge:
// the ends take turns to lead; of every chunk the leader names the value that
// has changed most since it was last exchanged, and the next exchange is of
// those.  Since both send the same places, no replica is needed, and mixing is
// as stable as without a codec.  Knows nothing of edges.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_MASKED_AVERAGE_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_MASKED_AVERAGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/packer.h"
#include "algorithms/compress/turn.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// Payload: u32 turn, a bf16 per chunk, and of the end that leads a byte per
// chunk, which of its values comes next.
//
// Memory: turn, 1 at the upper end of the edge, the place in every chunk that
// is next, and every value as last sent.  Payloads of different turns correct
// nothing, at both ends alike.
class MaskedAverageCodec final : public Codec {
 public:
  MaskedAverageCodec(std::string_view name, size_t rate, size_t size,
                     const Kernels& kernels)
      : kernels_(kernels),
        name_(name),
        rate_(rate),
        size_(size),
        chunks_((size + rate - 1) / rate) {}

  std::string_view name() const override { return name_; }
  EdgeMemory memory() const override { return EdgeMemory::kShared; }
  size_t memory_size() const override { return kHead + chunks_ + size_; }
  std::vector<float> InitialMemory(bool upper) const override;
  float gamma() const override { return 1; }
  float largest_gamma() const override { return 1; }
  int fragments() const override { return 1; }
  Extent extent() const override { return {0, size_}; }
  const Codec& fragment(int) const override { return *this; }
  WireFormat format() const override { return WireFormat::kMaskedLead; }
  WireFormat first_format() const override { return format(); }
  WireFormat resync_format() const override { return format(); }
  WireFormat FormatFor(std::span<const float> memory) const override;
  std::span<const WireFormat> choices() const override { return {}; }
  float RelativeGamma(WireFormat) const override { return 1; }
  Packing packing() const override { return Packing::kNone; }
  std::unique_ptr<Packer> MakePacker() const override { return nullptr; }

  size_t EncodedSize(WireFormat format) const override;
  void Encode(WireFormat format, std::span<const float> x,
              std::span<float> memory, uint64_t key,
              std::span<std::byte> out) const override;
  absl::Status Validate(const Encoded& payload) const override;
  void Add(const Encoded& payload, std::span<float> sum) const override;
  void Complete(const Encoded* mine, const Encoded* theirs, float c,
                std::span<float> memory, std::span<float> x) const override;

 private:
  static constexpr size_t kHead = 2;
  size_t ChunkSize(size_t i) const {
    return std::min(rate_, size_ - i * rate_);
  }
  // The place in x of the value of chunk `i` that is due.
  size_t Due(std::span<const float> memory, size_t i) const {
    return i * rate_ + Whole(memory[kHead + i], ChunkSize(i));
  }

  const Kernels& kernels_;
  const std::string name_;
  const size_t rate_, size_, chunks_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_MASKED_AVERAGE_H_
