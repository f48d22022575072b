#include "algorithms/privacy/rdp_accountant.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace gossamer {
namespace {

// The range and the steps of the search for the order a, on ln(a − 1).  Any
// order gives a bound that holds, so a search that stops early is only less
// tight.
constexpr double kMinLog = -12, kMaxLog = 25;
constexpr int kHalvings = 200;
// More queries than a run makes.
constexpr uint64_t kMaxQueries = uint64_t{1} << 40;

// Canonne, Kamath and Steinke, NeurIPS 2020, proposition 12, by the logarithm
// of a − 1: it spreads orders close above 1 as widely as large ones.
double AtOrder(double rdp, double delta, double log_above_one) {
  const double above = std::exp(log_above_one);  // a - 1
  const double a = 1 + above;
  return rdp * a + std::log(above / a) -
         (std::log(delta) + std::log(a)) / above;
}

}  // namespace

double EpsilonOfRdp(double per_order, double delta) {
  if (per_order <= 0) return 0;
  // Golden sections: the bound falls, then rises with the order.
  constexpr double kGolden = 0.6180339887498949;
  double low = kMinLog, high = kMaxLog;
  for (int i = 0; i < kHalvings; ++i) {
    const double a = high - kGolden * (high - low);
    const double b = low + kGolden * (high - low);
    if (AtOrder(per_order, delta, a) < AtOrder(per_order, delta, b)) {
      high = b;
    } else {
      low = a;
    }
  }
  return std::max(0.0, AtOrder(per_order, delta, (low + high) / 2));
}

absl::StatusOr<RdpAccountant> RdpAccountant::Create(double sensitivity,
                                                    double sigma) {
  if (!(sensitivity > 0) || !(sigma > 0) || !std::isfinite(sensitivity) ||
      !std::isfinite(sigma)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "noise of deviation %g on a sum of sensitivity %g hides nothing; both "
        "must be above 0",
        sigma, sensitivity));
  }
  RdpAccountant made;
  // Δ²/(2σ²) is the factor on the order (Mironov, CSF 2017, corollary 3).
  const double ratio = sensitivity / sigma;
  made.per_query_ = ratio * ratio / 2;
  return made;
}

double RdpAccountant::Epsilon(double delta, uint64_t more) const {
  return EpsilonOfRdp(per_query_ * static_cast<double>(spent_ + more), delta);
}

uint64_t RdpAccountant::Allowed(const PrivacyBudget& budget) const {
  const auto fits = [&](uint64_t queries) {
    return EpsilonOfRdp(per_query_ * static_cast<double>(queries),
                        budget.delta) <= budget.epsilon;
  };
  // ε rises with the number of queries, so the largest number that fits is
  // found by halving.
  uint64_t low = 0, high = kMaxQueries;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace gossamer
