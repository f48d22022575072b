#include "algorithms/privacy/settings.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_format.h"
#include "algorithms/privacy/topagg.h"
#include "runtime/base/rng.h"
#include "runtime/base/status_macros.h"

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

absl::Status CheckSettings(const DataLensSettings& s, int dimensions,
                           int examples) {
  GOSSAMER_RETURN_IF_ERROR(CheckBudget(s.budget));
  GOSSAMER_RETURN_IF_ERROR(
      CheckWhole("teachers", s.teachers, 1, std::min(examples, kMostVotes)));
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

uint64_t FingerprintOf(const DataLensSettings& s) {
  RngKey key = RngKey(0).Fold("datalens 1");
  for (const double value :
       {s.budget.epsilon, s.budget.delta, s.clip, s.sigma, s.threshold,
        s.step_size, s.teacher_rate, s.student_rate, s.average}) {
    key = key.Fold(std::bit_cast<uint64_t>(value));
  }
  for (const int value :
       {s.teachers, s.top, s.batch, s.discriminator_steps, s.student_steps,
        s.teacher_width, s.student_width, s.latent}) {
    key = key.Fold(static_cast<uint64_t>(value));
  }
  return key.Fold(s.seed).Bits(0);
}

}  // namespace gossamer
