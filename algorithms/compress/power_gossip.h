// PowerGossip: the difference of two peers, one power iteration after the other
// (Vogels, Karimireddy, Jaggi, NeurIPS 2020).
//
// For each matrix X both ends know a direction p̂, exchange a = Xᵀp̂, and move
// by w p̂ (a_theirs − a_mine)ᵀ: the best that rank one can do with p̂.  The
// difference, normalized, is the next direction, on the other side.  Linear and
// opposite at the two ends, with no γ and no replica; low-rank differences go
// fast.  Directions follow from payloads alone, so the host keeps them, and a
// device has the matrices.  This header knows nothing of edges.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_POWER_GOSSIP_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_POWER_GOSSIP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/codec.h"
#include "algorithms/compress/options.h"
#include "algorithms/compress/wire_layout.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

struct PowerGossipOptions {
  size_t least = kMinQuantizedSize;  // values of the smallest coded matrix
};
std::vector<Option> FieldsOf(PowerGossipOptions& options);

// Payload: u32 iteration, then f32 per row (kPowerRows) or column
// (kPowerColumns) of every matrix, then the raw pieces as bf16, exchanged in
// difference form.
//
// Memory: the number of exchanges in which both ends sent a payload, and the
// direction that they agreed on in the last one.  A payload tells with which
// iteration's direction it was made; two of different iterations correct raw
// pieces only, at both ends alike, as when one end has completed an exchange
// before the other does.
class PowerGossipCodec final : public Codec {
 public:
  // `name` is what name() returns.
  PowerGossipCodec(std::string_view name, const PowerGossipOptions& options,
                   const ParameterLayout& layout, const DeviceQueue& queue);

  std::string_view name() const override { return name_; }
  const DeviceQueue& queue() const override { return queue_; }
  EdgeMemory memory() const override { return EdgeMemory::kShared; }
  size_t memory_size() const override { return 1 + rows_ + columns_; }
  float gamma() const override { return 1; }
  float largest_gamma() const override { return 1; }
  size_t size() const override { return size_; }
  WireFormat format() const override { return WireFormat::kPowerColumns; }
  WireFormat first_format() const override { return format(); }
  WireFormat resync_format() const override { return format(); }
  WireFormat FormatFor(std::span<const float> memory) const override;
  std::span<const WireFormat> choices() const override { return {}; }
  float RelativeGamma(WireFormat) const override { return 1; }

  size_t EncodedSize(WireFormat format) const override;
  void Encode(WireFormat format, DeviceSpan<const float> x,
              DeviceSpan<float> shared, uint64_t key,
              DeviceSpan<std::byte> out) const override;
  absl::Status Validate(const Encoded& payload) const override;
  void Complete(const Encoded* mine, const Encoded* theirs, float c,
                DeviceSpan<float> shared, DeviceSpan<float> x) const override;

 private:
  struct Matrix {
    Extent extent;
    size_t rows = 0, columns = 0;
    size_t first_row = 0, first_column = 0;  // among those of all matrices
  };
  // The direction on this side of `m` before iteration `iteration`.
  std::vector<float> Direction(const Matrix& m, bool of_rows,
                               uint64_t iteration,
                               std::span<const float> memory) const;
  void Correct(const Matrix& m, bool by_columns, uint64_t iteration, float c,
               std::span<const float> change, std::span<float> memory,
               DeviceSpan<float> x) const;

  const std::string name_;
  const DeviceQueue queue_;
  size_t size_ = 0, rows_ = 0, columns_ = 0, raw_size_ = 0;
  std::vector<Matrix> matrices_;
  std::vector<Extent> raw_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_POWER_GOSSIP_H_
