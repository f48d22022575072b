#include "topology/skewed_sampling.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace gossamer {
namespace {

constexpr double kSumTolerance = 1e-9;

}  // namespace

double MeanSquare(const SkewMoments& m, double skew) {
  const double z = skew * m.near_share + 1 - m.near_share;
  return z * (m.near_square / skew + m.far_square);
}

absl::StatusOr<double> LargestSkew(const SkewMoments& m, double budget) {
  // Negated, so that what is not a number is refused.
  if (!(budget >= 0) || !std::isfinite(budget)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a variance budget of %g is not possible: sampling without skew has 0, "
        "so take 0 or more, such as 1 for twice its variance",
        budget));
  }
  const double l = m.near_share, r = 1 - l;
  // Without near or without far terms there is nothing to prefer, and the
  // formula divides by their share.
  if (!(l > 0 && l < 1) || !(m.near_square >= 0) || !(m.far_square > 0) ||
      !std::isfinite(m.near_square) || !std::isfinite(m.far_square)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a skew needs near and far terms with finite squares: the near share "
        "is %g, the squares are %g near and %g far",
        l, m.near_square, m.far_square));
  }
  const double a_l = m.near_square, a_r = m.far_square;
  const double b = (1 + budget) * (a_l + a_r) - l * a_l - r * a_r;
  // s = 1 is within every budget, so the root is real but for rounding.
  const double root = std::sqrt(std::max(0.0, b * b - 4 * l * r * a_l * a_r));
  return std::max(1.0, (b + root) / (2 * l * a_r));
}

double FarShare(double near_share, double skew) {
  const double r = 1 - near_share;
  return r / (skew * near_share + r);
}

absl::StatusOr<SkewedSampling> SkewedSampling::Create(
    std::span<const double> base, const std::vector<bool>& near, double skew) {
  if (base.size() != near.size() || !(skew >= 1) || !std::isfinite(skew)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d probabilities of %d terms with a skew of %g; it must be 1 or more",
        base.size(), near.size(), skew));
  }
  double sum = 0, z = 0;
  for (size_t j = 0; j < base.size(); ++j) {
    if (!(base[j] > 0)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "term %d has probability %g; what is never drawn cannot be estimated",
          j, base[j]));
    }
    sum += base[j];
    z += near[j] ? skew * base[j] : base[j];
  }
  const auto close = std::ranges::count(near, true);
  if (!(std::abs(sum - 1) < kSumTolerance) || close == 0 ||
      close == static_cast<std::ptrdiff_t>(near.size())) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "probabilities add up to %g, and %d of %d terms are near; they must "
        "add up to 1, and some be near and some far",
        sum, close, near.size()));
  }
  SkewedSampling made;
  double cumulative = 0;
  for (size_t j = 0; j < base.size(); ++j) {
    made.q_.push_back((near[j] ? skew * base[j] : base[j]) / z);
    made.cumulative_.push_back(cumulative += made.q_.back());
  }
  return made;
}

int SkewedSampling::Draw(double u) const {
  // The last term takes what rounding leaves below one.
  const auto it =
      std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, u);
  return static_cast<int>(it - cumulative_.begin());
}

}  // namespace gossamer
