// The message of a leader about the values that it chose for all ranks: their
// indices and the units in which they are coded.
//
// A value's unit is the leader's sign of it times the leader's mean magnitude
// of its layer.  In these units the leader's values are all positive and near
// 1, and others' lean the same way: so much do values have in common.  A
// message is the choice (chunk_choice.h), one bit a sign, a float a layer, and
// a code if there is one.  This header knows nothing of residuals or coders.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_LEADER_CHOICE_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_LEADER_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/compress/chunk_choice.h"

namespace gossamer {

// Immutable.
class LeaderChoice {
 public:
  // As ChunkChoice; with `flat` the vector is one layer.
  LeaderChoice(const ParameterLayout& layout, size_t rate, bool flat,
               const Kernels& kernels);

  const ChunkChoice& choice() const { return choice_; }
  size_t values() const { return choice_.chosen(); }

  // Writes the units of the leader's `values`, all finite.
  void FindUnits(std::span<const float> values, std::span<float> units) const;

  SharedBytes Pack(std::span<const uint32_t> indices,
                   std::span<const float> units,
                   std::span<const float> code) const;
  // kDataLoss unless Pack can have written this, with a code of so many floats.
  absl::Status Check(std::span<const std::byte> message, size_t code) const;
  // `message` has been checked.
  void Unpack(std::span<const std::byte> message, std::span<uint32_t> indices,
              std::span<float> units, std::span<float> code) const;

 private:
  size_t signs_at() const { return choice_.bytes(); }
  size_t scales_at() const { return signs_at() + (values() + 7) / 8; }
  size_t code_at() const { return scales_at() + ends_.size() * sizeof(float); }

  const ChunkChoice choice_;
  const Kernels& kernels_;
  std::vector<size_t> ends_;  // of each layer's values
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_LEADER_CHOICE_H_
