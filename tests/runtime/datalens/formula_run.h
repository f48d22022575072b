// DataLens without networks: teachers vote by a formula, and the student's
// images are what it has learnt.
//
// Knows nothing of transports or of what is tested.

#ifndef GOSSAMER_TESTS_RUNTIME_DATALENS_FORMULA_RUN_H_
#define GOSSAMER_TESTS_RUNTIME_DATALENS_FORMULA_RUN_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "algorithms/privacy/topagg.h"
#include "runtime/datalens/student_peer.h"
#include "runtime/datalens/teacher_peer.h"

namespace gossamer {

inline constexpr int kDimensions = 12;
inline constexpr int kClasses = 3;

inline DataLensSettings Settings() {
  DataLensSettings s;
  s.teachers = 17;
  s.top = 4;
  s.sigma = 20;
  s.batch = 5;
  s.budget.epsilon = 8;
  return s;
}

class FormulaTeachers : public TeacherGroup {
 public:
  FormulaTeachers(int first, int count) : first_(first), count_(count) {}
  int first() const override { return first_; }
  int count() const override { return count_; }
  absl::StatusOr<std::vector<int16_t>> Vote(uint64_t step,
                                            const ImageBatch& batch) override {
    ++votes_;
    not_finite_ = 0;
    for (size_t j = 0; j < kDimensions; ++j) {
      memory_[j] = 0.9f * memory_[j] + batch.images[j];
    }
    std::vector<int16_t> sums(batch.images.size());
    for (int t = first_; t < first_ + count_; ++t) {
      std::vector<float> gradient(kDimensions);
      bool all_finite = true;
      for (size_t i = 0; i < batch.labels.size(); ++i) {
        for (size_t j = 0; j < kDimensions; ++j) {
          gradient[j] = std::sin(static_cast<float>(t + 1) * (j + 1)) -
                        batch.images[i * kDimensions + j] + batch.labels[i] -
                        memory_[j] / 4;
        }
        if (t == spoilt) std::ranges::fill(gradient, value);
        const absl::StatusOr<bool> finite =
            AddVote(gradient, 4, 1e-5, RngKey(5).Fold(t).Fold(step).Fold(i),
                    std::span(sums).subspan(i * kDimensions, kDimensions));
        if (!finite.ok()) return finite.status();
        all_finite = all_finite && *finite;
      }
      not_finite_ += !all_finite;
    }
    return sums;
  }
  void VisitState(StateVisitor& visitor) override {
    visitor.Floats("memory", memory_);
  }
  int NotFinite() const override { return not_finite_; }
  int votes() const { return votes_; }
  // All of this teacher's gradients are of this value.
  int spoilt = -1;
  float value = 0;

 private:
  const int first_, count_;
  int votes_ = 0;
  int not_finite_ = 0;
  std::vector<float> memory_ = std::vector<float>(kDimensions);
};

class TableStudent : public Student {
 public:
  absl::StatusOr<ImageBatch> Ask(uint64_t step) override {
    ImageBatch batch;
    for (int i = 0; i < Settings().batch; ++i) {
      batch.labels.push_back(static_cast<uint8_t>((step + i) % kClasses));
    }
    batch.images = table;
    return batch;
  }
  absl::Status Learn(std::span<const int8_t> direction) override {
    if (++learnt == fails_at) {
      std::ranges::fill(table, NAN);
      return absl::InternalError("the student's table is not finite");
    }
    for (size_t j = 0; j < table.size(); ++j) {
      table[j] = std::clamp(table[j] + 0.1f * direction[j], -1.0f, 1.0f);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<ImageBatch> Sample(int, uint64_t) override {
    return absl::UnimplementedError("no samples");
  }
  void VisitState(StateVisitor& visitor) override {
    visitor.Floats("table", table);
  }
  int learnt = 0;
  int fails_at = 0;  // 0: never
  std::vector<float> table =
      std::vector<float>(Settings().batch * size_t{kDimensions});
};

inline StudentOptions OptionsFor(int groups) {
  return {.settings = Settings(),
          .dimensions = kDimensions,
          .classes = kClasses,
          .groups = groups,
          .noise = RngKey(9)};
}

inline std::unique_ptr<FormulaTeachers> TeachersOf(int group, int groups) {
  const int n = Settings().teachers;
  const int first = FirstTeacher(n, group, groups);
  return std::make_unique<FormulaTeachers>(
      first, FirstTeacher(n, group + 1, groups) - first);
}

inline TeacherOptions TeachersFor() {
  return {.settings = Settings(),
          .dimensions = kDimensions,
          .classes = kClasses,
          .student = "127.0.0.1:1"};
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_DATALENS_FORMULA_RUN_H_
