// QSGD (Alistarh et al., NIPS 2017): values rounded at random to a few levels
// of a bucket's norm, without bias.
//
// Nothing is remembered: rounding is right on average, and errors of ranks
// average out, since each draws for itself.  This header knows nothing of
// operations over ranks.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_QSGD_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_QSGD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/compress/elias_packer.h"
#include "algorithms/compress/options.h"
#include "algorithms/compress/wire_layout.h"
#include "algorithms/kernels/coding.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

struct QsgdOptions {
  uint8_t levels = 7;     // s: 1, 7 or 127, which fill 2, 4 or 8 bits
  uint16_t bucket = 512;  // values per scale
  // The scale is this norm of a bucket, over s.
  Coding::Norm norm = Coding::kMax;
  // One of Elias's variable-length codes on the wire; nullopt: fixed lengths.
  std::optional<Elias> coding = {};
  // Segments of fewer values, and one-dimensional ones, travel as floats.
  size_t least = kMinQuantizedSize;
};
std::vector<Option> FieldsOf(QsgdOptions& options);

// A vector as a payload of a size that the layout gives.  Immutable.
class QsgdCoder {
 public:
  // Options that are checked.
  QsgdCoder(const QsgdOptions& options, const ParameterLayout& layout,
            const Kernels& kernels);

  size_t size() const { return layout_.size(); }
  // Writes size() bytes; draws are a function of `key` and of a value's place.
  void Encode(std::span<const float> x, uint64_t key,
              std::span<std::byte> out) const;
  // kDataLoss unless an encoder can have written `payload`.
  absl::Status Validate(std::span<const std::byte> payload) const {
    return layout_.Validate(pieces_, payload, kernels_);
  }
  // sum += decode(payload), which has been validated.
  void Add(std::span<const std::byte> payload, std::span<float> sum) const;
  // Null with codes of fixed length.
  const EliasPacker* packer() const { return packer_ ? &*packer_ : nullptr; }

 private:
  const Kernels& kernels_;
  const std::vector<Piece> pieces_;
  const WireLayout layout_;
  std::optional<EliasPacker> packer_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_QSGD_H_
