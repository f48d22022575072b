// The tensors of one network, as views of flat vectors that others own.
//
// This header knows names, shapes and first values; nothing of what a network
// computes.  at::Tensor is only named here, so that no header brings libtorch
// with it.

#ifndef GOSSAMER_GAN_MODELS_NETWORKS_TENSOR_TABLE_H_
#define GOSSAMER_GAN_MODELS_NETWORKS_TENSOR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/base/parameter_layout.h"
#include "algorithms/kernels/device_span.h"
#include "gan_models/torch_queue.h"

namespace at {
class Tensor;
}

namespace gossamer {

// How a tensor's first values are drawn.
struct Initial {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double center = 0;
  double spread = 0;  // half width of kUniform, deviation of kNormal
};

// The list of a network's tensors, in the order in which its layers declare
// them.  It owns no values: Bind() gives it the vectors that hold them.
class TensorTable {
 public:
  explicit TensorTable(Player player);
  ~TensorTable();
  TensorTable(const TensorTable&) = delete;
  TensorTable& operator=(const TensorTable&) = delete;

  // Declares the next tensor of the flat vector and returns its index.  The
  // player's name becomes the first part of the segment's.
  int AddParameter(const std::string& name, std::vector<int64_t> shape,
                   const Initial& initial);
  // Declares a statistic of `channels` floats: a running mean or variance, or
  // the vector of a power iteration.
  int AddStatistic(const std::string& name, int64_t channels,
                   const Initial& initial);

  // In the order of the flat vectors, with their places there.  Parameters lie
  // one behind the other; a statistic begins where a device reads it well.
  const std::vector<Segment>& parameters() const { return parameters_; }
  const std::vector<Segment>& statistics() const { return statistics_; }
  size_t parameter_count() const { return parameter_count_; }
  size_t statistic_count() const { return statistic_count_; }

  // First values: a function of the seed alone, the same for all peers.
  void Initialize(uint64_t seed, std::span<float> parameters) const;
  // First values, which depend on no seed.
  void InitializeStatistics(std::span<float> statistics) const;

  // Makes the tensors views of the vectors, which must outlive the table:
  // parameter_count() floats each of parameters and gradients (or no
  // gradients: the tensors are then constants), statistic_count() statistics.
  // All lie in the memory of `queue`.  A parameter that begins where a device's
  // libraries cannot read it is a copy there, which Refresh() brings up to
  // date.
  void Bind(DeviceSpan<float> parameters, DeviceSpan<float> gradients,
            DeviceSpan<float> statistics,
            const TorchQueue& queue = TorchQueue::Host());
  // Enqueues the copies of what the vector has now: before a step.
  void Refresh() const;
  // Whether gradients flow into the parameters; true after a Bind with some.
  void SetTrainable(bool trainable);

  // Bound tensors by index.
  const at::Tensor& parameter(int index) const;
  const at::Tensor& statistic(int index) const;

 private:
  struct Bound;
  const Player player_;
  std::vector<Segment> parameters_, statistics_;
  std::vector<Initial> initials_, initial_statistics_;
  size_t parameter_count_ = 0, statistic_count_ = 0;
  std::unique_ptr<Bound> bound_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_NETWORKS_TENSOR_TABLE_H_
