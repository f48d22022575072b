#include "gan_models/datalens.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/privacy/topagg.h"
#include "gan_models/compute.h"
#include "runtime/base/rng.h"
#include "runtime/base/status_macros.h"

namespace gossamer {
namespace {

constexpr double kSlope = 0.2;  // of leaky ReLUs
// Of a teacher's first weights.  Small: what is left of them in a gradient is
// different at every teacher, and they vote against one another with it.
constexpr double kTeacherDeviation = 0.02;
// Of what a student's first images deviate from grey: what is random in them
// would have to be voted away.
constexpr double kGrey = 0.1;

// In place; of a tensor that owns all its storage in order.
std::span<float> ValuesOf(const at::Tensor& t) {
  return {t.data_ptr<float>(), static_cast<size_t>(t.numel())};
}

at::Tensor Normal(RngKey key, std::vector<int64_t> shape, double deviation) {
  at::Tensor t = at::zeros(shape);
  key.FillGaussian(ValuesOf(t));
  return t.mul_(deviation);
}

at::Tensor Copied(std::span<const float> values, std::vector<int64_t> shape) {
  return at::from_blob(const_cast<float*>(values.data()), shape).clone();
}

at::Tensor OneHot(std::span<const uint8_t> labels, int classes) {
  at::Tensor t = at::zeros({static_cast<int64_t>(labels.size()), classes});
  for (size_t i = 0; i < labels.size(); ++i) {
    t.data_ptr<float>()[i * static_cast<size_t>(classes) + labels[i]] = 1;
  }
  return t;
}

// Kingma and Ba, ICLR 2015, with beta1 = 0.5 as GANs take it.
class AdamOf {
 public:
  AdamOf(std::vector<at::Tensor> parameters, double rate)
      : parameters_(std::move(parameters)), rate_(rate) {
    for (const at::Tensor& p : parameters_) {
      first_.push_back(at::zeros_like(p));
      second_.push_back(at::zeros_like(p));
    }
  }
  void Step(const std::vector<at::Tensor>& gradients) {
    constexpr double kBeta1 = 0.5, kBeta2 = 0.9, kEpsilon = 1e-8;
    const auto steps = static_cast<double>(++steps_);
    const double one = 1 - std::pow(kBeta1, steps);
    const double two = 1 - std::pow(kBeta2, steps);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& g = gradients[i];
      first_[i].mul_(kBeta1).add_(g, 1 - kBeta1);
      second_[i].mul_(kBeta2).addcmul_(g, g, 1 - kBeta2);
      const at::Tensor scale = (second_[i] / two).sqrt_().add_(kEpsilon);
      parameters_[i].addcdiv_(first_[i], scale, -rate_ / one);
    }
  }
  // Also of the parameters.
  void VisitState(StateVisitor& visitor) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      visitor.Floats(absl::StrCat("parameter-", i), ValuesOf(parameters_[i]));
      visitor.Floats(absl::StrCat("first-moment-", i), ValuesOf(first_[i]));
      visitor.Floats(absl::StrCat("second-moment-", i), ValuesOf(second_[i]));
    }
    visitor.Counter("steps", steps_);
  }

 private:
  std::vector<at::Tensor> parameters_, first_, second_;
  double rate_;
  uint64_t steps_ = 0;
};

// One hidden layer of ReLUs, and its gradients by hand.
class TwoLayers {
 public:
  TwoLayers(RngKey key, int in, int width, int out)
      : w1_(Normal(key.Fold(1), {in, width}, std::sqrt(2.0 / in))),
        b1_(at::zeros({width})),
        w2_(Normal(key.Fold(2), {width, out}, kGrey / std::sqrt(width))),
        b2_(at::zeros({out})) {}

  std::vector<at::Tensor> parameters() const { return {w1_, b1_, w2_, b2_}; }
  at::Tensor Forward(const at::Tensor& x) {
    x_ = x;
    hidden_ = (at::mm(x, w1_) + b1_).clamp_min_(0);
    return at::mm(hidden_, w2_) + b2_;
  }
  // Of the last Forward, from the gradient of its output.
  std::vector<at::Tensor> Backward(const at::Tensor& d) const {
    const at::Tensor dh = at::mm(d, w2_.t()) * (hidden_ > 0);
    return {at::mm(x_.t(), dh), dh.sum(0), at::mm(hidden_.t(), d), d.sum(0)};
  }

 private:
  at::Tensor w1_, b1_, w2_, b2_;
  at::Tensor x_, hidden_;
};

// A hidden layer and an output for every class, of which an image's own counts
// (a projection discriminator, Miyato and Koyama, ICLR 2018, without its shared
// part).  All teachers of a group at once: the first dimension of every tensor
// is the teacher's, and no operation mixes two of them.
class Teachers : public TeacherGroup {
 public:
  Teachers(const DataLensSettings& s, int dimensions, int classes, int first,
           int count)
      : s_(s),
        dimensions_(dimensions),
        classes_(classes),
        first_(first),
        count_(count) {}

  int first() const override { return first_; }
  int count() const override { return count_; }

  // Deals the examples and draws first values.
  void Begin(const ImageBatch& examples) {
    const auto all = static_cast<int>(examples.labels.size());
    const int shard = all / s_.teachers;
    const RngKey key = RngKey(s_.seed).Fold("teachers");
    const std::vector<int> order = key.Fold("shards").Permutation(all);
    std::vector<float> images;
    std::vector<uint8_t> labels;
    has_.assign(static_cast<size_t>(count_) * classes_, false);
    for (int i = first_ * shard; i < (first_ + count_) * shard; ++i) {
      const auto from = static_cast<size_t>(order[i]);
      const auto* begin = examples.images.data() + from * dimensions_;
      images.insert(images.end(), begin, begin + dimensions_);
      labels.push_back(examples.labels[from]);
      has_[(i / shard - first_) * classes_ + labels.back()] = true;
    }
    real_ = Copied(images, {count_, shard, dimensions_});
    real_class_ = OneHot(labels, classes_).view({count_, shard, classes_});
    const int width = s_.teacher_width;
    std::vector<at::Tensor> w1, w2;
    for (int t = first_; t < first_ + count_; ++t) {
      w1.push_back(Normal(key.Fold("in").Fold(t), {1, dimensions_, width},
                          kTeacherDeviation));
      w2.push_back(Normal(key.Fold("out").Fold(t), {1, width, classes_},
                          kTeacherDeviation));
    }
    w1_ = at::cat(w1);
    b1_ = at::zeros({count_, 1, width});
    w2_ = at::cat(w2);
    adam_ =
        std::make_unique<AdamOf>(std::vector{w1_, b1_, w2_}, s_.teacher_rate);
  }

  absl::StatusOr<std::vector<int16_t>> Vote(uint64_t step,
                                            const ImageBatch& batch) override {
    UseThreads(1);
    return GuardTorch([&] { return Step(step, batch); });
  }
  void VisitState(StateVisitor& visitor) override {
    adam_->VisitState(visitor);
  }

 private:
  absl::StatusOr<std::vector<int16_t>> Step(uint64_t step,
                                            const ImageBatch& batch) {
    const auto images = static_cast<int64_t>(batch.labels.size());
    const at::Tensor fake = Copied(batch.images, {1, images, dimensions_})
                                .expand({count_, images, dimensions_});
    const at::Tensor of_class = OneHot(batch.labels, classes_)
                                    .unsqueeze(0)
                                    .expand({count_, images, classes_});
    for (int i = 0; i < s_.discriminator_steps; ++i) Train(fake, of_class);
    const at::Tensor slope = Slope(at::baddbmm(b1_, fake, w1_));
    const at::Tensor gradient =
        at::bmm(at::bmm(of_class, w2_.transpose(1, 2)) * slope,
                w1_.transpose(1, 2))
            .contiguous();
    return Count(step, batch, gradient.data_ptr<float>());
  }

  static at::Tensor Slope(const at::Tensor& hidden) {
    return (hidden > 0).to(at::kFloat).mul_(1 - kSlope).add_(kSlope);
  }

  // A step of Adam on mean softplus(-D(real)) + mean softplus(D(fake)).
  void Train(const at::Tensor& fake, const at::Tensor& of_class) {
    const at::Tensor x = at::cat({real_, fake}, 1);
    const at::Tensor classes = at::cat({real_class_, of_class}, 1);
    const at::Tensor hidden = at::baddbmm(b1_, x, w1_);
    const at::Tensor slope = Slope(hidden);
    const at::Tensor active = hidden * slope;
    const at::Tensor score =
        (at::bmm(active, w2_) * classes).sum(2, /*keepdim=*/true);
    at::Tensor d = at::sigmoid(score);
    const int64_t shard = real_.size(1), fakes = fake.size(1);
    d.narrow(1, 0, shard).sub_(1).div_(static_cast<double>(shard));
    d.narrow(1, shard, fakes).div_(static_cast<double>(fakes));
    d = d * classes;
    const at::Tensor dh = at::bmm(d, w2_.transpose(1, 2)) * slope;
    adam_->Step({at::bmm(x.transpose(1, 2), dh), dh.sum(1, true),
                 at::bmm(active.transpose(1, 2), d)});
  }

  absl::StatusOr<std::vector<int16_t>> Count(uint64_t step,
                                             const ImageBatch& batch,
                                             const float* gradients) const {
    const size_t images = batch.labels.size();
    const auto d = static_cast<size_t>(dimensions_);
    std::vector<int16_t> sums(images * d);
    const RngKey key = RngKey(s_.seed).Fold("votes").Fold(step);
    for (size_t t = 0; t < static_cast<size_t>(count_); ++t) {
      const RngKey own = key.Fold(static_cast<uint64_t>(first_) + t);
      for (size_t i = 0; i < images; ++i) {
        if (!has_[t * classes_ + batch.labels[i]]) continue;
        GOSSAMER_RETURN_IF_ERROR(AddVote({gradients + (t * images + i) * d, d},
                                         s_.top, s_.clip, own.Fold(i),
                                         std::span(sums).subspan(i * d, d)));
      }
    }
    return sums;
  }

  const DataLensSettings s_;
  const int dimensions_, classes_, first_, count_;
  std::vector<bool> has_;  // [teachers, classes]
  at::Tensor real_;        // [teachers, shard, dimensions]
  at::Tensor real_class_;  // [teachers, shard, classes]
  at::Tensor w1_, b1_, w2_;
  std::unique_ptr<AdamOf> adam_;
};

class DenseStudent : public Student {
 public:
  DenseStudent(const DataLensSettings& s, int dimensions, int classes)
      : s_(s),
        classes_(classes),
        net_(RngKey(s.seed).Fold("student"), s.latent + classes,
             s.student_width, dimensions),
        average_(RngKey(s.seed).Fold("student"), s.latent + classes,
                 s.student_width, dimensions),
        adam_(net_.parameters(), s.student_rate) {}

  absl::StatusOr<ImageBatch> Ask(uint64_t step) override {
    UseThreads(1);
    return GuardTorch([&]() -> absl::StatusOr<ImageBatch> {
      const RngKey key = RngKey(s_.seed).Fold("questions").Fold(step);
      std::vector<uint8_t> labels;
      for (int i = 0; i < s_.batch; ++i) {
        labels.push_back(static_cast<uint8_t>(
            key.Fold("class").Below(static_cast<uint64_t>(classes_), i)));
      }
      return Generate(net_, key.Fold("latent"), std::move(labels));
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
      const std::vector<at::Tensor> now = net_.parameters();
      const std::vector<at::Tensor> mean = average_.parameters();
      for (size_t i = 0; i < now.size(); ++i) {
        mean[i].mul_(s_.average).add_(now[i], 1 - s_.average);
      }
      return absl::OkStatus();
    });
  }

  absl::StatusOr<ImageBatch> Sample(int count, uint64_t seed) override {
    UseThreads(1);
    return GuardTorch([&]() -> absl::StatusOr<ImageBatch> {
      std::vector<uint8_t> labels;
      for (int i = 0; i < count; ++i) {
        labels.push_back(static_cast<uint8_t>(i % classes_));
      }
      return Generate(average_, RngKey(seed).Fold("samples"),
                      std::move(labels));
    });
  }
  void VisitState(StateVisitor& visitor) override {
    adam_.VisitState(visitor);
    const std::vector<at::Tensor> mean = average_.parameters();
    for (size_t i = 0; i < mean.size(); ++i) {
      visitor.Floats(absl::StrCat("average-", i), ValuesOf(mean[i]));
    }
  }

 private:
  ImageBatch Generate(TwoLayers& net, RngKey key, std::vector<uint8_t> labels) {
    const at::Tensor in = at::cat(
        {Normal(key, {static_cast<int64_t>(labels.size()), s_.latent}, 1),
         OneHot(labels, classes_)},
        1);
    asked_ = in;
    shown_ = at::tanh(net.Forward(in)).contiguous();
    const float* const begin = shown_.data_ptr<float>();
    return {.labels = std::move(labels),
            .images = {begin, begin + shown_.numel()}};
  }

  const DataLensSettings s_;
  const int classes_;
  TwoLayers net_, average_;
  AdamOf adam_;
  at::Tensor asked_, shown_;  // what was generated last, from what
};

}  // namespace

absl::StatusOr<std::unique_ptr<TeacherGroup>> MakeTeacherGroup(
    const DataLensSettings& settings, const ImageBatch& examples, int classes,
    int first, int count) {
  const auto size = static_cast<int>(examples.labels.size());
  if (size < settings.teachers || first < 0 || count < 1 ||
      first + count > settings.teachers) {
    return absl::InvalidArgumentError(
        absl::StrFormat("teachers %d to %d of %d with %d examples", first,
                        first + count - 1, settings.teachers, size));
  }
  const auto dimensions = static_cast<int>(examples.images.size()) / size;
  return GuardTorch([&]() -> absl::StatusOr<std::unique_ptr<TeacherGroup>> {
    auto made =
        std::make_unique<Teachers>(settings, dimensions, classes, first, count);
    made->Begin(examples);
    return made;
  });
}

std::unique_ptr<Student> MakeStudent(const DataLensSettings& settings,
                                     int dimensions, int classes) {
  return std::make_unique<DenseStudent>(settings, dimensions, classes);
}

absl::StatusOr<double> ClassifierAccuracy(const ImageBatch& train,
                                          const ImageBatch& test, int classes,
                                          uint64_t seed) {
  constexpr int kWidth = 64, kSteps = 1000, kBatch = 100;
  constexpr double kRate = 2e-3;
  UseThreads(1);
  return GuardTorch([&]() -> absl::StatusOr<double> {
    const auto size = static_cast<int64_t>(train.labels.size());
    const auto tests = static_cast<int64_t>(test.labels.size());
    const auto dimensions = static_cast<int64_t>(train.images.size()) / size;
    const RngKey key = RngKey(seed).Fold("classifier");
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
