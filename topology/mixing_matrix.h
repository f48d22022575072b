// The doubly stochastic matrix W of a graph or round, and how well it mixes.
//
// Dense up to kMaxDense peers, for checks, reports and pictures, and by an
// iteration beyond; peers use rows (mixing_schedule.h).  This header knows
// nothing of peers or messages.

#ifndef GOSSAMER_TOPOLOGY_MIXING_MATRIX_H_
#define GOSSAMER_TOPOLOGY_MIXING_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "topology/graph.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

// A dense matrix of this side is analysed in seconds.
inline constexpr int kMaxDense = 1024;

// Square, row-major.
class MixingMatrix {
 public:
  // All zero.
  explicit MixingMatrix(int size)
      : size_(size), values_(static_cast<size_t>(size) * size) {}

  int size() const { return size_; }
  double& operator()(int row, int column) {
    return values_[static_cast<size_t>(row) * size_ + column];
  }
  double operator()(int row, int column) const {
    return values_[static_cast<size_t>(row) * size_ + column];
  }

 private:
  int size_;
  std::vector<double> values_;
};

// Rows of W for a graph.  Edges with a weight of their own keep it; the others
// have that of Metropolis and Hastings, 1 / (1 + max(deg i, deg j)), which on a
// regular graph is the uniform 1 / (1 + deg).  kInvalidArgument if a row's
// weights exceed one.
absl::StatusOr<std::vector<MixingRow>> MakeRows(const Graph& graph);

// W of one round, diagonal included.
MixingMatrix MatrixOfRound(const MixingSchedule& schedule, uint64_t round);

// OK if W is non-negative, symmetric and doubly stochastic within 1e-9, else
// kInvalidArgument with the first fault and its place.
absl::Status CheckMixingMatrix(const MixingMatrix& w);

// How far a matrix is from doubly stochastic, and how well it mixes.
struct MixingReport {
  double row_sum_error = 0;     // largest |sum of a row - 1|
  double column_sum_error = 0;  // largest |sum of a column - 1|
  double symmetry_error = 0;    // largest |W_ij - W_ji|
  double smallest_entry = 0;
  std::vector<double> eigenvalues;  // of (W + W')/2, largest first
  // 1 - max(|second|, |last| eigenvalue): what a round removes of the norm of
  // the slowest disagreement.  1 for a single peer.
  double spectral_gap = 1;
};

MixingReport Analyze(const MixingMatrix& w);

// How a schedule contracts the mean-square consensus error per round, in the
// worst direction: rho^2 of a fixed W; ||W_T ... W_1 - J||^(2/T) of a periodic
// schedule; the largest eigenvalue of E[W'W] - J of a random one.  Beyond
// kMaxDense peers eigenvalues are right to a millionth: a gap below that, such
// as that of a ring of ten thousand, is not told from none.
struct Contraction {
  double factor = 0;          // of the squared error, per round
  double standard_error = 0;  // 0 unless estimated
  bool estimated = false;     // by Monte-Carlo, where no formula is known
  // 1 - sqrt(factor): the spectral gap that a fixed W of this speed has.
  double gap() const;
};

Contraction ExpectedContraction(const MixingSchedule& schedule);

// The consensus step size below which delayed mixing is stable: with
// corrections made from snapshots tau = `age` rounds old, every mode of x(k+1)
// = x(k) - gamma (I - W) x(k - tau) decays if gamma times the largest
// eigenvalue of I - W is below 2 sin(pi / (2 (2 tau + 1))) (Levin, May, 1976).
// The bound holds for all rounds of a period; one draw is enough if all are
// relabellings of it.
double StableStepSize(const MixingSchedule& schedule, int age);

// Chebyshev-accelerated gossip: weights omega_0 .. omega_(t-1) of
// x(p+1) = x(p) + omega_p (W - I) x(p) + (omega_p - 1) (x(p) - x(p-1)), which
// contract every disagreement whose eigenvalue lies within +-rho by at least
// 1 / T_t(1/rho), T_t the Chebyshev polynomial (Golub, Varga, 1961; for
// gossip: Scaman, Bach, Bubeck, Lee, Massoulie, ICML 2017).
std::vector<double> ChebyshevWeights(double rho, int rounds);

// max |1 - gamma (1 - lambda)| over all eigenvalues but the first: the rho of
// gossip with this step size.  Of a fixed schedule.
double ContractionOfNorm(const MixingSchedule& schedule, double gamma);

// The mean of ||(W - J)x||^2 / ||x||^2 over `rounds` rounds from `first_round`
// and Gaussian x with mean zero, with its standard error.  For a schedule that
// treats all ranks alike this is ExpectedContraction.
Contraction EstimateContraction(const MixingSchedule& schedule,
                                uint64_t first_round, int rounds,
                                uint64_t seed);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_MIXING_MATRIX_H_
