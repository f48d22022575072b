#include "gan_models/networks/tensor_table.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "algorithms/base/rng.h"

namespace gossamer {

struct TensorTable::Bound {
  std::vector<at::Tensor> parameters, statistics;
  // Of the parameters those that are copies, and what they are copies of.
  std::vector<at::Tensor> copies = {}, originals = {};
};

namespace {

// Bytes at a multiple of which libraries of devices want a tensor to begin.
constexpr size_t kAlignment = 16;

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
  for (const auto& [name, player, shape, extent] : segments) {
    views.push_back(
        queue.View(vector.subspan(extent.offset, extent.size), shape));
  }
  return views;
}

void Draw(RngKey key, const std::vector<Segment>& segments,
          const std::vector<Initial>& initials, std::span<float> vector) {
  for (size_t i = 0; i < segments.size(); ++i) {
    const Initial& initial = initials[i];
    // The key is of the tensor's name, so that a layer that is added elsewhere
    // changes no other tensor's first values.
    const RngKey draw = key.Fold(segments[i].name);
    const Extent extent = segments[i].extent;
    const auto out = vector.subspan(extent.offset, extent.size);
    for (size_t j = 0; j < out.size(); ++j) {
      double u = 0;
      if (initial.kind == Initial::Kind::kUniform) {
        u = 2 * draw.Uniform(j) - 1;
      } else if (initial.kind == Initial::Kind::kNormal) {
        u = draw.Gaussian(j);
      }
      out[j] = static_cast<float>(initial.center + initial.spread * u);
    }
  }
}

}  // namespace

TensorTable::TensorTable(Player player)
    : player_(player), bound_(std::make_unique<Bound>()) {}
TensorTable::~TensorTable() = default;

int TensorTable::AddParameter(const std::string& name,
                              std::vector<int64_t> shape,
                              const Initial& initial) {
  const size_t count = Count(shape);
  parameters_.push_back({FullName(player_, name),
                         player_,
                         std::move(shape),
                         {parameter_count_, count}});
  parameter_count_ += count;
  initials_.push_back(initial);
  return static_cast<int>(parameters_.size()) - 1;
}

int TensorTable::AddStatistic(const std::string& name, int64_t channels,
                              const Initial& initial) {
  const auto count = static_cast<size_t>(channels);
  statistics_.push_back({FullName(player_, name),
                         player_,
                         {channels},
                         {statistic_count_, count}});
  constexpr size_t kStep = kAlignment / sizeof(float);
  statistic_count_ += (count + kStep - 1) / kStep * kStep;
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
  *bound_ = {.parameters = Views(queue, parameters_, parameters),
             .statistics = Views(queue, statistics_, statistics)};
  if (!queue.queue().on_host()) {
    for (at::Tensor& t : bound_->parameters) {
      if (reinterpret_cast<uintptr_t>(t.data_ptr()) % kAlignment == 0) continue;
      bound_->originals.push_back(t);
      t = at::empty_like(t);
      bound_->copies.push_back(t);
    }
  }
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

void TensorTable::Refresh() const {
  if (bound_->copies.empty()) return;
  const c10::AutoGradMode record(false);
  at::_foreach_copy_(bound_->copies, bound_->originals);
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
