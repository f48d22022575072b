#include "gan_models/datalens/datalens_game.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/data/digits.h"
#include "gan_models/evaluation/picture.h"

namespace gossamer {
namespace {

absl::StatusOr<Digits> ReadFolder(const std::string& folder) {
  return ReadDigits(folder + "/digits.csv");
}

class StudentEvaluator final : public Evaluator {
 public:
  StudentEvaluator(const StudentShape& shape, ImageBatch held_out, int samples)
      : shape_(shape), held_out_(std::move(held_out)), samples_(samples) {}

  std::string_view score_name() const override { return "classifier-error"; }
  std::string score_basis() const override {
    return absl::StrCat(samples_, " generated, ", held_out_.labels.size(),
                        " held-out");
  }
  absl::StatusOr<double> Score(std::span<const float> generator,
                               RngKey key) override {
    if (held_out_.labels.empty()) {
      return absl::FailedPreconditionError(
          "there are no held-out digits to score with: give --data");
    }
    GOSSAMER_ASSIGN_OR_RETURN(
        const ImageBatch samples,
        SampleStudent(shape_, generator, samples_, key.Fold("samples")));
    GOSSAMER_ASSIGN_OR_RETURN(
        const double accuracy,
        ClassifierAccuracy(samples, held_out_, shape_.classes,
                           key.Fold("classifier")));
    return 1 - accuracy;
  }
  absl::Status WriteSamples(std::span<const float> generator, RngKey key,
                            const std::string& path) override {
    constexpr int kShown = 100, kColumns = 10, kSide = 8, kScale = 4;
    GOSSAMER_ASSIGN_OR_RETURN(
        const ImageBatch batch,
        SampleStudent(shape_, generator, kShown, key.Fold("samples")));
    std::vector<float> colours;
    for (int i = 0; i < kShown; ++i) {
      const float* const image = batch.images.data() + i * kDigitPixels;
      for (int plane = 0; plane < 3; ++plane) {
        colours.insert(colours.end(), image, image + kDigitPixels);
      }
    }
    return WritePng(ImageGrid(colours, kSide, kColumns, kScale), path);
  }

 private:
  const StudentShape shape_;
  const ImageBatch held_out_;
  const int samples_;
};

class DataLensGame final : public Game {
 public:
  DataLensGame(const DataLensSettings& settings,
               std::unique_ptr<TeacherGroup> teachers,
               std::unique_ptr<Evaluator> evaluator)
      : layout_(StudentLayout(ShapeOf(settings, kDigitPixels, kDigitClasses))),
        student_(MakeStudent(settings, kDigitPixels, kDigitClasses)),
        teachers_(std::move(teachers)),
        evaluator_(std::move(evaluator)) {}

  const ParameterLayout& layout() const override { return layout_; }
  DeviceSpan<float> device_parameters() override {
    return student_->parameters();
  }
  DeviceSpan<const float> device_gradients() const override { return {}; }
  absl::StatusOr<Losses> Gradient(Players, RngKey) override {
    return absl::UnimplementedError("game datalens learns from votes");
  }
  void VisitState(StateVisitor& visitor) override {
    teachers_ == nullptr ? student_->VisitState(visitor)
                         : teachers_->VisitState(visitor);
  }
  Evaluator* evaluator() override { return evaluator_.get(); }
  VotingRole voting() override {
    return {.student = teachers_ == nullptr ? student_.get() : nullptr,
            .teachers = teachers_.get(),
            .dimensions = kDigitPixels,
            .classes = kDigitClasses};
  }

 private:
  const ParameterLayout layout_;
  const std::unique_ptr<Student> student_;
  const std::unique_ptr<TeacherGroup> teachers_;  // null: this is the student
  const std::unique_ptr<Evaluator> evaluator_;    // null beside teachers
};

absl::StatusOr<std::unique_ptr<Game>> MakeTeachersGame(const DataLensSpec& spec,
                                                       int group, int groups) {
  if (spec.path.empty()) {
    return absl::InvalidArgumentError(
        "--data DIR is needed, the folder of the examples that the teachers "
        "learn from; deploy/digits.sh fetches digits");
  }
  GOSSAMER_ASSIGN_OR_RETURN(const Digits digits, ReadFolder(spec.path));
  const DataLensSettings& s = spec.settings;
  GOSSAMER_RETURN_IF_ERROR(CheckExamples(s, digits.train.labels.size()));
  const int first = FirstTeacher(s.teachers, group, groups);
  GOSSAMER_ASSIGN_OR_RETURN(
      auto teachers,
      MakeTeacherGroup(s, digits.train, kDigitClasses, first,
                       FirstTeacher(s.teachers, group + 1, groups) - first));
  return std::make_unique<DataLensGame>(s, std::move(teachers), nullptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Evaluator>> MakeStudentEvaluator(
    const StudentShape& shape, const std::string& path, int samples) {
  Digits digits;
  if (!path.empty()) {
    GOSSAMER_ASSIGN_OR_RETURN(digits, ReadFolder(path));
  }
  return std::make_unique<StudentEvaluator>(shape, std::move(digits.held_out),
                                            samples);
}

absl::StatusOr<std::unique_ptr<Game>> MakeDataLens(const DataLensSpec& spec,
                                                   int shard, int peers) {
  if (shard > 0) return MakeTeachersGame(spec, shard - 1, peers - 1);
  GOSSAMER_ASSIGN_OR_RETURN(
      auto evaluator,
      MakeStudentEvaluator(ShapeOf(spec.settings, kDigitPixels, kDigitClasses),
                           spec.path, spec.evaluation_samples));
  return std::make_unique<DataLensGame>(spec.settings, nullptr,
                                        std::move(evaluator));
}

}  // namespace gossamer
