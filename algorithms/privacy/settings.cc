#include "algorithms/privacy/settings.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "algorithms/privacy/topagg.h"

namespace gossamer {
namespace {

uint64_t AllowedImages(const DataLensSettings& s) {
  return RdpAccountant::Create(VoteSensitivity(s), s.sigma)->Allowed(s.budget);
}

}  // namespace

double VoteSensitivity(const DataLensSettings& s) {
  return 2 * std::sqrt(s.top);
}

uint64_t AllowedSteps(const DataLensSettings& s) {
  return AllowedImages(s) / static_cast<uint64_t>(s.batch);
}

Problems ProblemsOf(const DataLensSettings& s, int dimensions) {
  Problems problems;
  problems.Positive("epsilon", s.budget.epsilon);
  if (!(s.budget.delta > 0 && s.budget.delta < 1)) {
    problems.Refuse("delta", "is ", s.budget.delta,
                    "; it must lie between 0 and 1, well below one over the "
                    "number of examples");
  }
  problems.Range("teachers", s.teachers, 1, kMaxVotes);
  problems.Range("top", s.top, 1, dimensions);
  problems.Range("batch", s.batch, 1, kMaxBatch);
  problems.Range("discriminator_steps", s.discriminator_steps, 1, 1000);
  problems.Range("student_steps", s.student_steps, 1, 1000);
  problems.Range("teacher_width", s.teacher_width, 1, 1 << 16);
  problems.Range("student_width", s.student_width, 1, 1 << 16);
  problems.Range("latent", s.latent, 1, 1 << 16);
  problems.Positive("clip", s.clip);
  problems.Positive("sigma", s.sigma);
  problems.Positive("step_size", s.step_size);
  problems.Positive("teacher_rate", s.teacher_rate);
  problems.Positive("student_rate", s.student_rate);
  problems.NotNegative("threshold", s.threshold);
  if (problems.empty() && AllowedSteps(s) == 0) {
    problems.Refuse("epsilon", "is ", s.budget.epsilon,
                    ", which is spent after ", AllowedImages(s),
                    " images, before the first batch of ", s.batch,
                    ": take a larger sigma, a smaller top or a larger epsilon");
  }
  return problems;
}

absl::Status CheckExamples(const DataLensSettings& s, size_t examples) {
  if (examples >= static_cast<size_t>(s.teachers)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "game.datalens.teachers is %d, and there are %d images to teach with; "
      "each teacher needs one of its own",
      s.teachers, examples));
}

}  // namespace gossamer
