#include "algorithms/compress/linear_coder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

namespace gossamer {
namespace {

class LinearCoder final : public ValueCoder {
 public:
  LinearCoder(size_t values, size_t code)
      : values_(values),
        code_((values + kBlock - 1) / kBlock * code),
        width_(code),
        parameters_(2 * kBlock * code) {
    for (size_t c = 0; c < code; ++c) {
      for (size_t j = 0; j < kBlock; ++j) {
        const double angle = std::numbers::pi / kBlock * c * (j + 0.5);
        parameters_[c * kBlock + j] = parameters_[(code + c) * kBlock + j] =
            static_cast<float>(std::cos(angle) * std::sqrt(c > 0 ? 2.0 : 1.0) /
                               std::sqrt(kBlock));
      }
    }
  }

  size_t code_size() const override { return code_; }
  std::span<float> parameters() override { return parameters_; }

  absl::Status Gradient(std::span<const float> values,
                        std::span<float> gradient) override {
    std::vector<float> code(code_), restored(values_);
    Encode(values, code).IgnoreError();  // it cannot fail
    Decode(code, restored);
    std::fill(gradient.begin(), gradient.end(), 0.0f);
    for (size_t c = 0; c < code_; ++c) {
      float of_code = 0;
      ForEach(c, [&](size_t i, size_t weight) {
        const float error = 2 * (restored[i] - values[i]);
        gradient[kBlock * width_ + weight] += error * code[c];
        of_code += error * parameters_[kBlock * width_ + weight];
      });
      ForEach(c, [&](size_t i, size_t weight) {
        gradient[weight] += of_code * values[i];
      });
    }
    return absl::OkStatus();
  }
  absl::Status Encode(std::span<const float> values,
                      std::span<float> code) override {
    for (size_t c = 0; c < code_; ++c) {
      code[c] = 0;
      ForEach(c, [&](size_t i, size_t weight) {
        code[c] += parameters_[weight] * values[i];
      });
    }
    return absl::OkStatus();
  }
  void Decode(std::span<const float> code,
              std::span<float> values) const override {
    std::fill(values.begin(), values.end(), 0.0f);
    for (size_t c = 0; c < code_; ++c) {
      ForEach(c, [&](size_t i, size_t weight) {
        values[i] += parameters_[kBlock * width_ + weight] * code[c];
      });
    }
  }

 private:
  // Calls f(place, weight) for each value in the block of a code.
  void ForEach(size_t c, const auto& f) const {
    const size_t first = c / width_ * kBlock;
    for (size_t j = 0; j < kBlock && first + j < values_; ++j) {
      f(first + j, c % width_ * kBlock + j);
    }
  }

  const size_t values_, code_, width_;
  std::vector<float> parameters_;  // encoder, decoder
};

}  // namespace

absl::StatusOr<std::unique_ptr<ValueCoder>> MakeLinearCoder(size_t values,
                                                            size_t code) {
  return std::make_unique<LinearCoder>(values, code);
}

}  // namespace gossamer
