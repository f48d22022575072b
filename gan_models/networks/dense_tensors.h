// The parts of DataLens's small dense networks: first values, copies, Adam.
//
// This header knows nothing of what a network computes.  at::Tensor is only
// named here, so that no header brings libtorch with it.

#ifndef GOSSAMER_GAN_MODELS_NETWORKS_DENSE_TENSORS_H_
#define GOSSAMER_GAN_MODELS_NETWORKS_DENSE_TENSORS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/base/state.h"

namespace at {
class Tensor;
}

namespace gossamer {

// In place; of a tensor that owns all its storage in order.
std::span<float> ValuesOf(const at::Tensor& t);
// Normal values of mean 0, drawn by `key`.
at::Tensor Normal(RngKey key, std::vector<int64_t> shape, double deviation);
at::Tensor Copied(std::span<const float> values, std::vector<int64_t> shape);
// [labels, classes], 1 at a label's class and 0 elsewhere.
at::Tensor OneHot(std::span<const uint8_t> labels, int classes);

// Kingma and Ba, ICLR 2015, with beta1 = 0.5 as GANs take it.
class AdamOf {
 public:
  // The parameters are changed in place.
  AdamOf(std::vector<at::Tensor> parameters, double rate);
  ~AdamOf();
  AdamOf(const AdamOf&) = delete;
  AdamOf& operator=(const AdamOf&) = delete;

  void Step(const std::vector<at::Tensor>& gradients);
  // The parameters, and what is remembered of their gradients.
  std::vector<at::Tensor> All() const;
  // All but the parameters, and the steps so far.
  void VisitState(StateVisitor& visitor);

 private:
  std::vector<at::Tensor> parameters_, first_, second_;
  double rate_;
  uint64_t steps_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_NETWORKS_DENSE_TENSORS_H_
