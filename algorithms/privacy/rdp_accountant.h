// The cost so far of answers about private data: Renyi differential privacy
// of Gaussian mechanisms, composed, and as (epsilon, delta).
//
// This header is pure and knows nothing of what is asked or who asks.

#ifndef GOSSAMER_ALGORITHMS_PRIVACY_RDP_ACCOUNTANT_H_
#define GOSSAMER_ALGORITHMS_PRIVACY_RDP_ACCOUNTANT_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace gossamer {

// The (epsilon, delta) of differential privacy that a run may spend.
struct PrivacyBudget {
  double epsilon = 10;
  double delta = 1e-5;
};

// A Gaussian mechanism of L2 sensitivity Delta and deviation sigma is
// (a, a Delta^2 / (2 sigma^2))-RDP for every order a > 1 (Mironov, CSF 2017,
// corollary 3), and orders of compositions add up (proposition 1).  So one
// number R, the RDP per order, says all.
class RdpAccountant {
 public:
  // kInvalidArgument unless both are above 0 and finite.
  static absl::StatusOr<RdpAccountant> Create(double sensitivity, double sigma);

  void Spend(uint64_t queries) { spent_ += queries; }
  uint64_t spent() const { return spent_; }
  // The epsilon of all queries so far and `more`.
  double Epsilon(double delta, uint64_t more = 0) const;
  // Queries that the whole budget allows.
  uint64_t Allowed(const PrivacyBudget& budget) const;

 private:
  double per_query_ = 0;  // R of one query
  uint64_t spent_ = 0;
};

// The least epsilon at `delta` of a mechanism that is (a, R a)-RDP for all
// orders a > 1, by Canonne, Kamath and Steinke, NeurIPS 2020, proposition 12:
//   R a + ln((a - 1) / a) - (ln delta + ln a) / (a - 1),  least over a.
double EpsilonOfRdp(double per_order, double delta);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_PRIVACY_RDP_ACCOUNTANT_H_
