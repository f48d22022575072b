#include "algorithms/privacy/settings.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "algorithms/privacy/topagg.h"

namespace gossamer {
namespace {

class Problems {
 public:
  template <typename... Values>
  void Refuse(const char* name, const absl::FormatSpec<Values...>& what,
              const Values&... values) {
    found_.push_back({name, absl::StrFormat(what, values...)});
  }
  void Whole(const char* name, int value, int least, int most) {
    if (value >= least && value <= most) return;
    Refuse(name, "is %d; it must lie between %d and %d", value, least, most);
  }
  void Above0(const char* name, double value) {
    if (value > 0 && std::isfinite(value)) return;
    Refuse(name, "is %g; it must be above 0", value);
  }
  bool none() const { return found_.empty(); }
  std::vector<SettingProblem> Take() { return std::move(found_); }

 private:
  std::vector<SettingProblem> found_;
};

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

std::vector<SettingProblem> FindSettingProblems(const DataLensSettings& s,
                                                int dimensions) {
  Problems problems;
  problems.Above0("epsilon", s.budget.epsilon);
  if (!(s.budget.delta > 0 && s.budget.delta < 1)) {
    problems.Refuse("delta",
                    "is %g; it must lie between 0 and 1, well below one over "
                    "the number of examples",
                    s.budget.delta);
  }
  problems.Whole("teachers", s.teachers, 1, kMostVotes);
  problems.Whole("top", s.top, 1, dimensions);
  problems.Whole("batch", s.batch, 1, kMostBatch);
  problems.Whole("discriminator_steps", s.discriminator_steps, 1, 1000);
  problems.Whole("student_steps", s.student_steps, 1, 1000);
  problems.Whole("teacher_width", s.teacher_width, 1, 1 << 16);
  problems.Whole("student_width", s.student_width, 1, 1 << 16);
  problems.Whole("latent", s.latent, 1, 1 << 16);
  problems.Above0("clip", s.clip);
  problems.Above0("sigma", s.sigma);
  problems.Above0("step_size", s.step_size);
  problems.Above0("teacher_rate", s.teacher_rate);
  problems.Above0("student_rate", s.student_rate);
  if (!(s.threshold >= 0) || !std::isfinite(s.threshold)) {
    problems.Refuse("threshold", "is %g; it must be 0 or more", s.threshold);
  }
  if (problems.none() && AllowedSteps(s) == 0) {
    problems.Refuse("epsilon",
                    "%g is spent after %d images, before the first batch of "
                    "%d: take a larger sigma, a smaller top or a larger "
                    "epsilon",
                    s.budget.epsilon, AllowedImages(s), s.batch);
  }
  return problems.Take();
}

absl::Status CheckExamples(const DataLensSettings& s, size_t examples) {
  if (examples >= static_cast<size_t>(s.teachers)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "game.datalens.teachers is %d, and there are %d images to teach with; "
      "each teacher needs one of its own",
      s.teachers, examples));
}

}  // namespace gossamer
