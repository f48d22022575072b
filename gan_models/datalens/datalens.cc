#include "gan_models/datalens/datalens.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/sigmoid.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/privacy/topagg.h"
#include "gan_models/compute.h"
#include "gan_models/networks/dense_tensors.h"

namespace gossamer {
namespace {

constexpr double kSlope = 0.2;  // of leaky ReLUs
// The deviation of a teacher's first weights.  It is small, for their share of
// a gradient differs at every teacher and makes them vote against one another.
constexpr double kTeacherDeviation = 0.02;

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
    own_examples_ = examples_ =
        ExtendCrc32c(Crc32c(std::as_bytes(std::span(examples.labels))),
                     std::as_bytes(std::span(examples.images)));
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
    if (examples_ != own_examples_) {
      return absl::FailedPreconditionError(
          "these teachers' checkpoint was saved with other examples than they "
          "have now: give the same data, or begin anew in another folder; what "
          "was spent on the same data stays spent");
    }
    UseThreads(1);
    return GuardTorch([&] { return Step(step, batch); });
  }
  int NotFinite() const override {
    return static_cast<int>(
        std::count(not_finite_.begin(), not_finite_.end(), true));
  }
  void VisitState(StateVisitor& visitor) override {
    visitor.Counter("examples", examples_);
    visitor.Floats("hidden.weight", ValuesOf(w1_));
    visitor.Floats("hidden.bias", ValuesOf(b1_));
    visitor.Floats("score.weight", ValuesOf(w2_));
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
    SilenceWhoIsNotFinite();
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

  // Sets teachers that are not finite to zero.  Zeros never get a gradient:
  // such a teacher abstains for good, and its state can be saved.
  void SilenceWhoIsNotFinite() {
    not_finite_.assign(static_cast<size_t>(count_), false);
    const std::vector<at::Tensor> all = adam_->All();
    for (const at::Tensor& t : all) {
      const at::Tensor finite = at::isfinite(t).reshape({count_, -1}).all(1);
      const bool* const of_teacher = finite.data_ptr<bool>();
      for (size_t i = 0; i < not_finite_.size(); ++i) {
        if (!of_teacher[i]) not_finite_[i] = true;
      }
    }
    for (size_t i = 0; i < not_finite_.size(); ++i) {
      if (!not_finite_[i]) continue;
      for (const at::Tensor& t : all)
        t.select(0, static_cast<int64_t>(i)).zero_();
    }
  }

  absl::StatusOr<std::vector<int16_t>> Count(uint64_t step,
                                             const ImageBatch& batch,
                                             const float* gradients) {
    const size_t images = batch.labels.size();
    const auto d = static_cast<size_t>(dimensions_);
    std::vector<int16_t> sums(images * d);
    const RngKey key = RngKey(s_.seed).Fold("votes").Fold(step);
    for (size_t t = 0; t < static_cast<size_t>(count_); ++t) {
      const RngKey own = key.Fold(static_cast<uint64_t>(first_) + t);
      for (size_t i = 0; i < images; ++i) {
        if (!has_[t * classes_ + batch.labels[i]]) continue;
        GOSSAMER_ASSIGN_OR_RETURN(
            const bool finite,
            AddVote({gradients + (t * images + i) * d, d}, s_.top, s_.clip,
                    own.Fold(i), std::span(sums).subspan(i * d, d)));
        if (!finite) not_finite_[t] = true;
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
  // Checksums of all teachers' examples: by the state, and as given.
  uint64_t examples_ = 0, own_examples_ = 0;
  std::vector<bool> not_finite_;  // [teachers], at the last question
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

}  // namespace gossamer
