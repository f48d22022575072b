// Chunked quasi-top-k: the choice of one value in every chunk of c, and the
// form in which choices travel.
//
// The large segments of a layout are cut into chunks; what is small or
// one-dimensional is not chosen from.  A choice is an index in its chunk, in
// ⌈log2 c⌉ bits, chunk by chunk from the lowest bit of the first byte; the last
// byte is filled with zeros.  So a set is rising and of one size whatever bits
// come.  Source: ScaleCom (Chen et al., NeurIPS 2020), section 3.  This header
// knows nothing of residuals or of who chooses.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_CHUNK_CHOICE_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_CHUNK_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// Immutable.
class ChunkChoice {
 public:
  // Chunks of `rate` values, 2 to kMaxRate, the last of a segment shorter;
  // with `flat` of the vector as if it were one segment.
  ChunkChoice(const ParameterLayout& layout, size_t rate, bool flat);
  static constexpr size_t kMaxRate = size_t{1} << 16;

  // k: of how many chunks one is chosen each.
  size_t chosen() const { return chosen_; }
  // The segments that values are chosen from, and the others; together the
  // vector, each list in order.
  std::span<const Extent> large() const { return large_; }
  std::span<const Extent> small() const { return small_; }
  size_t small_floats() const { return small_floats_; }

  // Whole chunks that lie together, about as many as fit into the first-level
  // cache with what belongs to them; all blocks together are large().
  struct Block {
    Extent extent;
    size_t first = 0, count = 0;  // its chunks
  };
  std::span<const Block> blocks() const { return blocks_; }

  // Chooses in each chunk of the block the value of the largest |x + y|, the
  // first of equal ones; y may be empty.  Fills the block's part of `indices`
  // (chosen()) with where these are in the vector.
  void ChooseIn(const Block& block, const Kernels& kernels,
                std::span<const float> x, std::span<const float> y,
                std::span<uint32_t> indices) const;
  // ChooseIn for all blocks.
  void Choose(const Kernels& kernels, std::span<const float> x,
              std::span<const float> y, std::span<uint32_t> indices) const;

  size_t bytes() const { return (chosen_ * bits_ + 7) / 8; }
  // `out` has bytes() zeros.
  void Pack(std::span<const uint32_t> indices, std::span<std::byte> out) const;
  // kDataLoss unless Pack can have written this.
  absl::Status Check(std::span<const std::byte> packed) const;
  // `packed` has been checked.
  void Unpack(std::span<const std::byte> packed,
              std::span<uint32_t> indices) const;

 private:
  template <typename F>
  void ForEachChunk(const F& f) const;  // (number, offset, size)

  const size_t rate_;
  const size_t bits_;  // of an index
  std::vector<Extent> large_, small_;
  std::vector<Block> blocks_;
  size_t chosen_ = 0;
  size_t small_floats_ = 0;
};

// The size of the largest segment that a choice with such options is made from;
// 0: there is none.
size_t LargestChosenFrom(const ParameterLayout& layout, bool flat);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_CHUNK_CHOICE_H_
