#include "gan_models/learned_coder.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <vector>

#include "absl/status/status.h"
#include "gan_models/compute.h"
#include "gan_models/networks/layers.h"
#include "gan_models/networks/tensor_table.h"

namespace gossamer {
namespace {

constexpr int64_t kCoderChannels = 16;
constexpr double kLeak = 0.2;  // of leaky ReLUs
constexpr auto kCoderBlock = static_cast<int64_t>(ValueCoder::kBlock);

// The layers have no biases, so twice the values have twice the code.  The
// decoder is a transposed convolution whose steps are as long as its kernel,
// which is a product by blocks.  Decode computes it without libtorch, in one
// order of sums: all ranks must decode to the same bits.
class LearnedCoder final : public ValueCoder {
 public:
  LearnedCoder(size_t values, size_t code)
      : values_(values),
        blocks_((values + kBlock - 1) / kBlock),
        floats_(code),
        table_(Player::kGenerator) {
    const auto w = static_cast<int64_t>(code);
    // Strides of 4, 1 and 4: 16 values become the channels of one place, which
    // are the block's code.
    encoder_ = {
        table_.AddParameter("in", {kCoderChannels, 1, 8},
                            Glorot(8, 8 * kCoderChannels)),
        table_.AddParameter("middle", {kCoderChannels, kCoderChannels, 3},
                            Glorot(3 * kCoderChannels, 3 * kCoderChannels)),
        table_.AddParameter("out", {w, kCoderChannels, 4},
                            Glorot(4 * kCoderChannels, 4 * w))};
    decoder_ =
        table_.AddParameter("back", {w, kCoderBlock}, Glorot(w, kCoderBlock));
    parameters_.resize(table_.parameter_count());
    gradients_.resize(table_.parameter_count());
    // First values are the same at every rank, whatever the run's seed: ranks
    // train the coder together and decode each other's codes.
    table_.Initialize(/*seed=*/0, parameters_);
    table_.Bind(parameters_, gradients_, {});
  }

  size_t code_size() const override { return blocks_ * floats_; }
  std::span<float> parameters() override { return parameters_; }

  absl::Status Gradient(std::span<const float> values,
                        std::span<float> gradient) override {
    UseThreads(1);
    return GuardTorch([&] {
      std::ranges::fill(gradients_, 0.0f);
      const at::Tensor v = Padded(values);
      const at::Tensor code = Code(v);
      const at::Tensor restored =
          at::mm(code.squeeze(0).t(), table_.parameter(decoder_));
      // The padding of the last block does not count in the loss.
      const auto n = static_cast<int64_t>(values_);
      (restored.flatten() - v.flatten())
          .narrow(0, 0, n)
          .square()
          .sum()
          .backward();
      std::ranges::copy(gradients_, gradient.begin());
      return absl::OkStatus();
    });
  }

  absl::Status Encode(std::span<const float> values,
                      std::span<float> code) override {
    UseThreads(1);
    return GuardTorch([&] {
      const c10::NoGradGuard no_gradients;
      const at::Tensor z = Code(Padded(values)).squeeze(0).t().contiguous();
      std::copy_n(z.const_data_ptr<float>(), code.size(), code.begin());
      return absl::OkStatus();
    });
  }

  void Decode(std::span<const float> code,
              std::span<float> values) const override {
    const std::span<const float> weights =
        std::span(parameters_).last(floats_ * kBlock);
    for (size_t b = 0; b < blocks_; ++b) {
      std::array<float, kBlock> block{};
      for (size_t c = 0; c < floats_; ++c) {
        const float z = code[b * floats_ + c];
        for (size_t j = 0; j < kBlock; ++j) {
          block[j] += z * weights[c * kBlock + j];
        }
      }
      const size_t first = b * kBlock;
      std::copy_n(block.begin(), std::min<size_t>(kBlock, values_ - first),
                  values.begin() + static_cast<ptrdiff_t>(first));
    }
  }

 private:
  // [1, 1, whole blocks].
  at::Tensor Padded(std::span<const float> values) const {
    at::Tensor v =
        at::zeros({1, 1, static_cast<int64_t>(blocks_) * kCoderBlock});
    std::ranges::copy(values, v.mutable_data_ptr<float>());
    return v;
  }

  // [1, floats of a block, blocks].
  at::Tensor Code(const at::Tensor& v) const {
    using Sizes = std::array<int64_t, 1>;
    const auto convolve = [&](const at::Tensor& x, int layer, int64_t stride,
                              int64_t padding) {
      return at::conv1d(x, table_.parameter(encoder_[layer]), {}, Sizes{stride},
                        Sizes{padding});
    };
    const at::Tensor in = at::leaky_relu(convolve(v, 0, 4, 2), kLeak);
    const at::Tensor middle = at::leaky_relu(convolve(in, 1, 1, 1), kLeak);
    return convolve(middle, 2, 4, 0);
  }

  const size_t values_, blocks_, floats_;
  TensorTable table_;
  std::array<int, 3> encoder_;
  int decoder_;
  std::vector<float> parameters_, gradients_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ValueCoder>> MakeLearnedCoder(size_t values,
                                                             size_t code) {
  if (values == 0 || code < 1 || code > ValueCoder::kBlock / 2) {
    return absl::InvalidArgumentError(
        "an autoencoder needs values, and 1 to 8 floats for 16 of them");
  }
  UseThreads(1);
  return GuardTorch([&]() -> absl::StatusOr<std::unique_ptr<ValueCoder>> {
    return std::make_unique<LearnedCoder>(values, code);
  });
}

}  // namespace gossamer
