#include "gan_models/networks/twice_differentiable.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <tuple>

namespace gossamer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Stride and padding, the same in both directions; libtorch keeps numbers for
// backward() as saved data.
struct Shape {
  std::array<int64_t, 2> stride, padding;

  static Shape Of(int64_t stride, int64_t padding) {
    return {{stride, stride}, {padding, padding}};
  }
  static Shape LoadedFrom(AutogradContext* context) {
    return Of(context->saved_data["stride"].toInt(),
              context->saved_data["padding"].toInt());
  }
  void SaveTo(AutogradContext* context) const {
    context->saved_data["stride"] = stride[0];
    context->saved_data["padding"] = padding[0];
  }

  at::Tensor Convolve(const at::Tensor& x, const at::Tensor& weight,
                      const std::optional<at::Tensor>& bias = {}) const {
    return at::conv2d(x, weight, bias, stride, padding);
  }
  // Computes those of the gradients to x, weight and bias that `wanted` names.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> Gradients(
      const at::Tensor& of_output, const at::Tensor& x,
      const at::Tensor& weight, std::array<bool, 3> wanted) const {
    constexpr std::array<int64_t, 2> kOne = {1, 1}, kZero = {0, 0};
    const std::array bias_size = {weight.size(0)};
    return at::convolution_backward(
        of_output, x, weight, at::IntArrayRef(bias_size), stride, padding,
        /*dilation=*/kOne, /*transposed=*/false, /*output_padding=*/kZero,
        /*groups=*/1, wanted);
  }
};

// The gradient to x: linear in the output's gradient and in the weight.
struct ToInput : Function<ToInput> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& of_output, const at::Tensor& x,
                            const at::Tensor& weight, int64_t stride,
                            int64_t padding) {
    const Shape shape = Shape::Of(stride, padding);
    shape.SaveTo(context);
    // x is not saved: the result does not depend on its values.
    context->save_for_backward({of_output, weight});
    return std::get<0>(
        shape.Gradients(of_output, x, weight, {true, false, false}));
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const Shape shape = Shape::LoadedFrom(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &of_output = saved[0], &weight = saved[1];
    const at::Tensor direction = gradients[0];
    at::Tensor to_output, to_weight;
    if (context->needs_input_grad(0)) {
      // The map from the output's gradient to the gradient of x is the
      // convolution's transpose; its derivative in a direction is the
      // convolution again.
      to_output = shape.Convolve(direction, weight);
    }
    if (context->needs_input_grad(2)) {
      to_weight = std::get<1>(
          shape.Gradients(of_output, direction, weight, {false, true, false}));
    }
    return {to_output, {}, to_weight, {}, {}};
  }
};

struct Convolution : Function<Convolution> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            int64_t stride, int64_t padding) {
    const Shape shape = Shape::Of(stride, padding);
    shape.SaveTo(context);
    context->saved_data["bias"] = bias.has_value();
    context->save_for_backward({x, weight});
    return shape.Convolve(x, weight, bias);
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const Shape shape = Shape::LoadedFrom(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const at::Tensor& of_output = gradients[0];
    at::Tensor to_x, to_weight, to_bias;
    if (context->needs_input_grad(0)) {
      // Only the shape of x is used: it is detached, so that no gradient flows
      // back to it.
      to_x = ToInput::apply(of_output, x.detach(), weight, shape.stride[0],
                            shape.padding[0]);
    }
    const std::array<bool, 3> wanted = {
        false, context->needs_input_grad(1),
        context->saved_data["bias"].toBool() && context->needs_input_grad(2)};
    if (wanted[1] || wanted[2]) {
      std::tie(std::ignore, to_weight, to_bias) =
          shape.Gradients(of_output, x, weight, wanted);
    }
    return {to_x, to_weight, to_bias, {}, {}};
  }
};

struct Pooling : Function<Pooling> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) {
    return at::avg_pool2d(x, {2, 2});
  }
  static variable_list backward(AutogradContext*,
                                const variable_list& gradients) {
    const at::Tensor& of_output = gradients[0];
    const std::array size = {2 * of_output.size(2), 2 * of_output.size(3)};
    // Each of four pixels has a quarter of the mean's gradient.  The map is
    // linear, so deriving it again needs nothing of x.
    return {at::upsample_nearest2d(of_output * 0.25, at::IntArrayRef(size))};
  }
};

struct Rectification : Function<Rectification> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor y = at::relu(x);
    context->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    // The mask is a constant: nothing flows back to y.
    const at::Tensor y = context->get_saved_variables()[0].detach();
    return {at::threshold_backward(gradients[0], y, 0)};
  }
};

}  // namespace

at::Tensor Convolve(const at::Tensor& x, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, int64_t stride,
                    int64_t padding) {
  const at::DeviceType device = x.device().type();
  if (!at::autocast::is_autocast_enabled(device)) {
    return Convolution::apply(x, weight, bias, stride, padding);
  }
  // Rounded outside, where the rounding is part of what is derived: both
  // derivatives then see the numbers that the forward pass has seen.
  const at::ScalarType type = at::autocast::get_autocast_dtype(device);
  const auto rounded = [&](const at::Tensor& t) {
    return at::autocast::cached_cast(type, t, device);
  };
  std::optional<at::Tensor> rounded_bias;
  if (bias) rounded_bias = rounded(*bias);
  return Convolution::apply(rounded(x), rounded(weight), rounded_bias, stride,
                            padding);
}

at::Tensor MeanPool(const at::Tensor& x) { return Pooling::apply(x); }

at::Tensor Relu(const at::Tensor& x) { return Rectification::apply(x); }

}  // namespace gossamer
