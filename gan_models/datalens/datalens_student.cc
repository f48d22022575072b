// The student of gan_models/datalens/datalens.h, and the classifier that scores
// it.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/compute.h"
#include "gan_models/datalens/datalens.h"
#include "gan_models/networks/dense_tensors.h"

namespace gossamer {
namespace {

// The deviation of a student's first images from grey.  It is small, for
// randomness in them would have to be voted away.
constexpr double kGrey = 0.1;

// One hidden layer of ReLUs, and its gradients by hand; its tensors are views
// of one vector.
class TwoLayers {
 public:
  TwoLayers(int in, int width, int out)
      : values_(Size(in, width, out)),
        w1_(Take({in, width})),
        b1_(Take({width})),
        w2_(Take({width, out})),
        b2_(Take({out})) {}
  TwoLayers(RngKey key, int in, int width, int out)
      : TwoLayers(in, width, out) {
    w1_.copy_(Normal(key.Fold(1), {in, width}, std::sqrt(2.0 / in)));
    w2_.copy_(Normal(key.Fold(2), {width, out}, kGrey / std::sqrt(width)));
  }
  TwoLayers(const TwoLayers&) = delete;
  TwoLayers& operator=(const TwoLayers&) = delete;

  std::span<float> values() { return values_; }
  std::vector<at::Tensor> parameters() const { return {w1_, b1_, w2_, b2_}; }
  at::Tensor Forward(const at::Tensor& x) {
    x_ = x;
    hidden_ = (at::mm(x, w1_) + b1_).clamp_min_(0);
    return at::mm(hidden_, w2_) + b2_;
  }
  // The gradients of the last Forward, from that of its output.
  std::vector<at::Tensor> Backward(const at::Tensor& d) const {
    const at::Tensor dh = at::mm(d, w2_.t()) * (hidden_ > 0);
    return {at::mm(x_.t(), dh), dh.sum(0), at::mm(hidden_.t(), d), d.sum(0)};
  }

 private:
  static size_t Size(int in, int width, int out) {
    return static_cast<size_t>(width) * static_cast<size_t>(in + 1 + out) +
           static_cast<size_t>(out);
  }
  at::Tensor Take(std::vector<int64_t> shape) {
    at::Tensor view = at::from_blob(values_.data() + taken_, shape);
    taken_ += static_cast<size_t>(view.numel());
    return view;
  }

  std::vector<float> values_;
  size_t taken_ = 0;
  at::Tensor w1_, b1_, w2_, b2_;
  at::Tensor x_, hidden_;
};

absl::Status CheckFinite(const at::Tensor& t, const char* what) {
  if (at::isfinite(t).all().item<bool>()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "the student's ", what,
      " are not finite; try a smaller game.datalens.student_rate"));
}

// The input of a generator: latents, then classes.
at::Tensor InputOf(RngKey key, int latent, std::span<const uint8_t> labels,
                   int classes) {
  return at::cat({Normal(key, {static_cast<int64_t>(labels.size()), latent}, 1),
                  OneHot(labels, classes)},
                 1);
}

absl::StatusOr<ImageBatch> BatchOf(const at::Tensor& images,
                                   std::vector<uint8_t> labels) {
  GOSSAMER_RETURN_IF_ERROR(CheckFinite(images, "images"));
  const float* const begin = images.data_ptr<float>();
  return ImageBatch{.labels = std::move(labels),
                    .images = {begin, begin + images.numel()}};
}

class DenseStudent : public Student {
 public:
  DenseStudent(const DataLensSettings& s, int dimensions, int classes)
      : s_(s),
        classes_(classes),
        net_(RngKey(s.seed).Fold("student"), s.latent + classes,
             s.student_width, dimensions),
        adam_(net_.parameters(), s.student_rate) {}

  std::span<float> parameters() override { return net_.values(); }

  absl::StatusOr<ImageBatch> Ask(uint64_t step) override {
    UseThreads(1);
    return GuardTorch([&]() -> absl::StatusOr<ImageBatch> {
      const RngKey key = RngKey(s_.seed).Fold("questions").Fold(step);
      std::vector<uint8_t> labels;
      for (int i = 0; i < s_.batch; ++i) {
        labels.push_back(static_cast<uint8_t>(
            key.Fold("class").Below(static_cast<uint64_t>(classes_), i)));
      }
      asked_ = InputOf(key.Fold("latent"), s_.latent, labels, classes_);
      shown_ = at::tanh(net_.Forward(asked_)).contiguous();
      return BatchOf(shown_, std::move(labels));
    });
  }

  absl::Status Learn(std::span<const int8_t> direction) override {
    UseThreads(1);
    return GuardTorch([&]() -> absl::Status {
      std::vector<float> moved(direction.begin(), direction.end());
      // |x - x'|^2, mean over images, x' = x + alpha direction a constant.
      const at::Tensor wanted =
          Copied(moved, shown_.sizes().vec()).mul_(s_.step_size).add_(shown_);
      for (int i = 0; i < s_.student_steps; ++i) {
        const at::Tensor x = at::tanh(net_.Forward(asked_));
        adam_.Step(
            net_.Backward((x - wanted) * (1 - x * x) * (2.0 / s_.batch)));
      }
      for (const at::Tensor& t : adam_.All()) {
        GOSSAMER_RETURN_IF_ERROR(CheckFinite(t, "parameters"));
      }
      return absl::OkStatus();
    });
  }

  void VisitState(StateVisitor& visitor) override { adam_.VisitState(visitor); }

 private:
  const DataLensSettings s_;
  const int classes_;
  TwoLayers net_;
  AdamOf adam_;
  at::Tensor asked_, shown_;  // what was generated last, from what
};

}  // namespace

ParameterLayout StudentLayout(const StudentShape& shape) {
  const int64_t in = shape.latent + shape.classes;
  const auto segment = [](const char* name, std::vector<int64_t> sizes) {
    return Segment{name, Player::kGenerator, std::move(sizes), {}};
  };
  return ParameterLayout(
      {segment("generator.hidden.weight", {in, shape.width}),
       segment("generator.hidden.bias", {shape.width}),
       segment("generator.image.weight", {shape.width, shape.dimensions}),
       segment("generator.image.bias", {shape.dimensions})});
}

std::unique_ptr<Student> MakeStudent(const DataLensSettings& settings,
                                     int dimensions, int classes) {
  return std::make_unique<DenseStudent>(settings, dimensions, classes);
}

absl::StatusOr<ImageBatch> SampleStudent(const StudentShape& shape,
                                         std::span<const float> parameters,
                                         int count, RngKey key) {
  UseThreads(1);
  return GuardTorch([&]() -> absl::StatusOr<ImageBatch> {
    TwoLayers net(shape.latent + shape.classes, shape.width, shape.dimensions);
    std::ranges::copy(parameters, net.values().begin());
    std::vector<uint8_t> labels;
    for (int i = 0; i < count; ++i) {
      labels.push_back(static_cast<uint8_t>(i % shape.classes));
    }
    const at::Tensor in = InputOf(key, shape.latent, labels, shape.classes);
    return BatchOf(at::tanh(net.Forward(in)).contiguous(), std::move(labels));
  });
}

absl::StatusOr<double> ClassifierAccuracy(const ImageBatch& train,
                                          const ImageBatch& test, int classes,
                                          RngKey key) {
  constexpr int kWidth = 64, kSteps = 1000, kBatch = 100;
  constexpr double kRate = 2e-3;
  if (train.labels.size() < 2 || test.labels.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a classifier needs two examples or more to learn from "
                     "and one to be tested on, not ",
                     train.labels.size(), " and ", test.labels.size()));
  }
  UseThreads(1);
  return GuardTorch([&]() -> absl::StatusOr<double> {
    const auto size = static_cast<int64_t>(train.labels.size());
    const auto tests = static_cast<int64_t>(test.labels.size());
    const auto dimensions = static_cast<int64_t>(train.images.size()) / size;
    TwoLayers net(key, static_cast<int>(dimensions), kWidth, classes);
    AdamOf adam(net.parameters(), kRate);
    const at::Tensor x = Copied(train.images, {size, dimensions});
    const at::Tensor y = OneHot(train.labels, classes);
    for (int step = 0; step < kSteps; ++step) {
      at::Tensor chosen = at::zeros({kBatch}, at::kLong);
      for (int i = 0; i < kBatch; ++i) {
        chosen.data_ptr<int64_t>()[i] = static_cast<int64_t>(
            key.Fold(step).Below(static_cast<uint64_t>(size), i));
      }
      const at::Tensor out = net.Forward(x.index_select(0, chosen));
      adam.Step(net.Backward((at::softmax(out, 1) - y.index_select(0, chosen)) /
                             kBatch));
    }
    const at::Tensor guess =
        net.Forward(Copied(test.images, {tests, dimensions})).argmax(1);
    int right = 0;
    for (int64_t i = 0; i < tests; ++i) {
      right += guess.data_ptr<int64_t>()[i] == test.labels[i];
    }
    return static_cast<double>(right) / static_cast<double>(tests);
  });
}

}  // namespace gossamer
