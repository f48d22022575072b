// Operations on images whose derivative is cheap to derive once more, as a
// gradient penalty does.
//
// This header knows no network and no loss.  at::Tensor is only named here.

#ifndef GOSSAMER_GAN_MODELS_NETWORKS_TWICE_DIFFERENTIABLE_H_
#define GOSSAMER_GAN_MODELS_NETWORKS_TWICE_DIFFERENTIABLE_H_

#include <cstdint>
#include <optional>

namespace at {
class Tensor;
}  // namespace at

namespace gossamer {

// The convolution of images [N, C, H, W] with a weight [K, C, k, k] and a bias
// [K], one group, no dilation.
//
// at::conv2d's own second derivative takes the gradient of the weight as a
// convolution with a kernel of the size of the image, over transposed copies;
// here it is the ordinary gradient of a weight, twice as fast.
at::Tensor Convolve(const at::Tensor& x, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, int64_t stride,
                    int64_t padding);

// Images [N, C, H, W], H and W even, to [N, C, H/2, W/2], the means of 2x2
// pixels.
//
// at::avg_pool2d's own second derivative sends zeros back through everything
// that computed its input.
at::Tensor MeanPool(const at::Tensor& x);

// max(x, 0).  at::relu's own second derivative sends zeros back likewise.
at::Tensor Relu(const at::Tensor& x);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_NETWORKS_TWICE_DIFFERENTIABLE_H_
