#include "gan_models/networks/tensor_table.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "algorithms/base/rng.h"

namespace gossamer {

struct TensorTable::Bound {
  std::vector<at::Tensor> parameters, statistics;
};

namespace {

size_t Count(const std::vector<int64_t>& shape) {
  return static_cast<size_t>(std::accumulate(
      shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>()));
}

std::string FullName(Player player, const std::string& name) {
  return (player == Player::kGenerator ? "generator." : "discriminator.") +
         name;
}

// Tensors of their own storage, not slices of one: a write to one must not
// look to autograd like a change of its neighbours.
std::vector<at::Tensor> Views(const TorchQueue& queue,
                              const std::vector<Segment>& segments,
                              DeviceSpan<float> vector) {
  std::vector<at::Tensor> views;
  size_t offset = 0;
  for (const Segment& s : segments) {
    const size_t count = Count(s.shape);
    views.push_back(queue.View(vector.subspan(offset, count), s.shape));
    offset += count;
  }
  return views;
}

void Draw(RngKey key, const std::vector<Segment>& segments,
          const std::vector<Initial>& initials, std::span<float> vector) {
  size_t offset = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Initial& initial = initials[i];
    // The key is of the tensor's name, so that a layer that is added elsewhere
    // changes no other tensor's first values.
    const RngKey draw = key.Fold(segments[i].name);
    const auto out = vector.subspan(offset, Count(segments[i].shape));
    for (size_t j = 0; j < out.size(); ++j) {
      double u = 0;
      if (initial.kind == Initial::Kind::kUniform) {
        u = 2 * draw.Uniform(j) - 1;
      } else if (initial.kind == Initial::Kind::kNormal) {
        u = draw.Gaussian(j);
      }
      out[j] = static_cast<float>(initial.center + initial.spread * u);
    }
    offset += out.size();
  }
}

}  // namespace

TensorTable::TensorTable(Player player)
    : player_(player), bound_(std::make_unique<Bound>()) {}
TensorTable::~TensorTable() = default;

int TensorTable::AddParameter(const std::string& name,
                              std::vector<int64_t> shape,
                              const Initial& initial) {
  parameter_count_ += Count(shape);
  parameters_.push_back(
      {FullName(player_, name), player_, std::move(shape), {}});
  initials_.push_back(initial);
  return static_cast<int>(parameters_.size()) - 1;
}

int TensorTable::AddStatistic(const std::string& name, int64_t channels,
                              const Initial& initial) {
  statistic_count_ += static_cast<size_t>(channels);
  statistics_.push_back({FullName(player_, name), player_, {channels}, {}});
  initial_statistics_.push_back(initial);
  return static_cast<int>(statistics_.size()) - 1;
}

void TensorTable::Initialize(uint64_t seed, std::span<float> parameters) const {
  Draw(RngKey(seed).Fold("initial parameters"), parameters_, initials_,
       parameters);
}

void TensorTable::InitializeStatistics(std::span<float> statistics) const {
  Draw(RngKey(0).Fold("initial statistics"), statistics_, initial_statistics_,
       statistics);
}

void TensorTable::Bind(DeviceSpan<float> parameters,
                       DeviceSpan<float> gradients,
                       DeviceSpan<float> statistics, const TorchQueue& queue) {
  bound_->parameters = Views(queue, parameters_, parameters);
  bound_->statistics = Views(queue, statistics_, statistics);
  // An evaluator's generator has no gradients, and libtorch then keeps nothing
  // for a backward pass.
  if (gradients.empty()) return;
  // A gradient that exists is added to in place, so backward() writes straight
  // into the flat vector.
  std::vector<at::Tensor> views = Views(queue, parameters_, gradients);
  for (size_t i = 0; i < views.size(); ++i) {
    bound_->parameters[i].requires_grad_(true);
    bound_->parameters[i].mutable_grad() = std::move(views[i]);
  }
}

void TensorTable::SetTrainable(bool trainable) {
  for (at::Tensor& t : bound_->parameters) t.requires_grad_(trainable);
}

const at::Tensor& TensorTable::parameter(int index) const {
  return bound_->parameters[index];
}

const at::Tensor& TensorTable::statistic(int index) const {
  return bound_->statistics[index];
}

}  // namespace gossamer
