#include "algorithms/privacy/settings.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/privacy/topagg.h"

namespace gossamer {
namespace {

absl::Status CheckWhole(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is %d; it must lie between %d and %d", name, value, least, most));
}

absl::Status CheckNumber(const char* name, double value, bool zero) {
  if ((value > 0 || (zero && value == 0)) && std::isfinite(value)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is %g; it must be %s", name, value, zero ? "0 or more" : "above 0"));
}

}  // namespace

double VoteSensitivity(const DataLensSettings& s) {
  return 2 * std::sqrt(s.top);
}

absl::Status CheckSettings(const DataLensSettings& s, int dimensions) {
  GOSSAMER_RETURN_IF_ERROR(CheckBudget(s.budget));
  GOSSAMER_RETURN_IF_ERROR(CheckWhole("teachers", s.teachers, 1, kMostVotes));
  GOSSAMER_RETURN_IF_ERROR(CheckWhole("top", s.top, 1, dimensions));
  GOSSAMER_RETURN_IF_ERROR(CheckWhole("batch", s.batch, 1, kMostBatch));
  GOSSAMER_RETURN_IF_ERROR(
      CheckWhole("discriminator-steps", s.discriminator_steps, 1, 1000));
  GOSSAMER_RETURN_IF_ERROR(
      CheckWhole("student-steps", s.student_steps, 1, 1000));
  GOSSAMER_RETURN_IF_ERROR(
      CheckWhole("teacher-width", s.teacher_width, 1, 1 << 16));
  GOSSAMER_RETURN_IF_ERROR(
      CheckWhole("student-width", s.student_width, 1, 1 << 16));
  GOSSAMER_RETURN_IF_ERROR(CheckWhole("latent", s.latent, 1, 1 << 16));
  GOSSAMER_RETURN_IF_ERROR(CheckNumber("clip", s.clip, false));
  GOSSAMER_RETURN_IF_ERROR(CheckNumber("sigma", s.sigma, false));
  GOSSAMER_RETURN_IF_ERROR(CheckNumber("threshold", s.threshold, true));
  GOSSAMER_RETURN_IF_ERROR(CheckNumber("step-size", s.step_size, false));
  GOSSAMER_RETURN_IF_ERROR(CheckNumber("teacher-rate", s.teacher_rate, false));
  GOSSAMER_RETURN_IF_ERROR(CheckNumber("student-rate", s.student_rate, false));
  if (!(s.average >= 0 && s.average < 1)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "average is %g; it must be 0 or more and below 1", s.average));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const RdpAccountant accountant,
                            RdpAccountant::Create(VoteSensitivity(s), s.sigma));
  const uint64_t allowed = accountant.Allowed(s.budget);
  if (allowed >= static_cast<uint64_t>(s.batch)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "epsilon %g is spent after %d images, before the first batch of %d: take "
      "a larger --sigma, a smaller --top or a larger --epsilon",
      s.budget.epsilon, allowed, s.batch));
}

absl::Status CheckExamples(const DataLensSettings& s, size_t examples) {
  if (examples >= static_cast<size_t>(s.teachers)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "teachers is %d, and there are %d images to teach with; each teacher "
      "needs one of its own",
      s.teachers, examples));
}

std::string SettingsText(const DataLensSettings& s) {
  std::string text;
  const auto number = [&](const char* name, double value) {
    // Digits enough to tell any two apart.
    absl::StrAppendFormat(&text, "%s %.17g\n", name, value);
  };
  const auto whole = [&](const char* name, uint64_t value) {
    absl::StrAppend(&text, name, " ", value, "\n");
  };
  number("epsilon", s.budget.epsilon);
  number("delta", s.budget.delta);
  whole("teachers", s.teachers);
  whole("top", s.top);
  number("clip", s.clip);
  number("sigma", s.sigma);
  number("threshold", s.threshold);
  number("step-size", s.step_size);
  whole("batch", s.batch);
  whole("discriminator-steps", s.discriminator_steps);
  whole("student-steps", s.student_steps);
  number("teacher-rate", s.teacher_rate);
  number("student-rate", s.student_rate);
  number("average", s.average);
  whole("teacher-width", s.teacher_width);
  whole("student-width", s.student_width);
  whole("latent", s.latent);
  whole("seed", s.seed);
  return text;
}

std::string DifferenceOf(std::string_view here, std::string_view there) {
  const std::vector<absl::string_view> ours =
      absl::StrSplit(absl::string_view(here.data(), here.size()), '\n');
  const std::vector<absl::string_view> theirs =
      absl::StrSplit(absl::string_view(there.data(), there.size()), '\n');
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    const absl::string_view a = i < ours.size() ? ours[i] : "";
    const absl::string_view b = i < theirs.size() ? theirs[i] : "";
    if (a != b) return absl::StrCat("\"", a, "\" here, \"", b, "\" there");
  }
  return "";
}

uint64_t FingerprintOf(const DataLensSettings& s) {
  return RngKey(0).Fold("datalens 2").Fold(SettingsText(s)).Bits(0);
}

}  // namespace gossamer
