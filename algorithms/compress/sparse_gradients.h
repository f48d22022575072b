// The common part of methods that send one value of every chunk of a gradient:
// the choice, and the residual of what was left out.
//
// Source: Chen et al., ScaleCom, NeurIPS 2020, algorithm 1.  This header knows
// nothing of who chooses, of messages or of time.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_SPARSE_GRADIENTS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_SPARSE_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/compress/chunk_choice.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/options.h"

namespace gossamer {

struct SparseOptions {
  size_t rate = 100;  // values of which one is sent, 2 to 65536
  double beta = 1;    // share of what was left out that is remembered, 0 to 1
  // Chunks go over the vector as a whole, nothing travels besides.
  bool flat = false;
};
std::vector<Option> FieldsOf(SparseOptions& options);
// kInvalidArgument if chunks are larger than all that they divide.
absl::Status CheckFits(std::string_view name, const SparseOptions& options,
                       const ParameterLayout& layout);

class SparseGradients : public GradientCompressor {
 public:
  SparseGradients(const SparseOptions& options, const ParameterLayout& layout,
                  const Kernels& kernels)
      : choice_(std::make_shared<const ChunkChoice>(layout, options.rate,
                                                    options.flat)),
        kernels_(kernels),
        beta_(static_cast<float>(options.beta)),
        residual_(layout.size()),
        indices_(choice_->chosen()),
        kept_(choice_->chosen()) {}

  bool has_residual() const override { return true; }

  void Begin(const ReduceContext&, std::span<const float> gradient) override {
    gradient_ = gradient;
  }

  void VisitState(StateVisitor& visitor) override {
    visitor.Floats("residual", residual_);
  }

 protected:
  size_t contributed() const {
    return indices_.size() + choice_->small_floats();
  }

  // Writes this rank's contribution at the indices of a block.
  void Gather(const ChunkChoice::Block& block, std::span<float> out);
  // Writes this rank's values of the small segments.
  void GatherSmall(std::span<float> out) const;

  // m ← (1 − β)m + β(p − q), where p − q is p but at indices_, where it is 0.
  void UpdateResidual(const ChunkChoice::Block& block);

  const std::shared_ptr<const ChunkChoice> choice_;
  const Kernels& kernels_;
  const float beta_;
  std::vector<float> residual_;      // 0 in small segments
  std::span<const float> gradient_;  // of this step; empty: none
  std::vector<uint32_t> indices_;    // of what is sent in this step
  std::vector<float> kept_;          // (1 − β)m there
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_SPARSE_GRADIENTS_H_
