#include "topology/mixing_matrix.h"

#include <Spectra/SymEigsSolver.h>

#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"

namespace gossamer {
namespace {

// The tolerance for a sum of kMaxPeers rounded weights, which misses one by
// less.
constexpr double kTolerance = 1e-9;
constexpr int kEstimateRounds = 2000;
// Rounds that are tried for one that has an edge, in a schedule that may draw
// none.
constexpr uint64_t kDrawsOfAnEdge = 64;
// Of the iteration for large matrices: the size of its basis, its most
// restarts, the error of an eigenvalue, and a number that is added to all of
// them.  A matrix without the shift may map the first vector into the space of
// one eigenvalue, as that of a matching does, and the iteration never leaves
// it.
constexpr int kBasis = 40;
// Below it a dense matrix takes less than the iteration.  A dense one of a
// thousand peers takes half a second, for which each of them would stand still
// at every view.
constexpr int kQuicklyDense = 64;
constexpr int kRestarts = 1000;
constexpr double kEigenvalueError = 3e-7;
constexpr double kShift = 2;

Eigen::MatrixXd ToEigen(const MixingMatrix& w) {
  Eigen::MatrixXd e(w.size(), w.size());
  for (int i = 0; i < w.size(); ++i) {
    for (int j = 0; j < w.size(); ++j) e(i, j) = w(i, j);
  }
  return e;
}

Eigen::SparseMatrix<double> SparseOfRound(const MixingSchedule& schedule,
                                          uint64_t round) {
  std::vector<Eigen::Triplet<double>> entries;
  for (int i = 0; i < schedule.size(); ++i) {
    double kept = 1;
    for (const Neighbor& n : schedule.Row(i, round).neighbors) {
      entries.emplace_back(i, n.rank, n.weight);
      kept -= n.weight;
    }
    entries.emplace_back(i, i, kept);
  }
  Eigen::SparseMatrix<double> w(schedule.size(), schedule.size());
  w.setFromTriplets(entries.begin(), entries.end());
  return w;
}

// kShift x + sign P x, P the product of symmetric matrices in the order in
// which they are applied, on vectors whose mean is taken out; an operator of
// Spectra's solvers.
class Disagreement {
 public:
  using Scalar = double;  // the solvers' name

  Disagreement(const std::vector<const Eigen::SparseMatrix<double>*>& factors,
               double sign)
      : factors_(factors), sign_(sign) {}
  Eigen::Index rows() const { return factors_[0]->rows(); }
  Eigen::Index cols() const { return rows(); }
  void perform_op(const double* in, double* out) const {
    Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(in, rows());
    x.array() -= x.mean();
    Eigen::VectorXd product = x;
    for (const auto* w : factors_) product = (*w * product).eval();
    product.array() -= product.mean();
    Eigen::Map<Eigen::VectorXd>(out, rows()) = kShift * x + sign_ * product;
  }

 private:
  const std::vector<const Eigen::SparseMatrix<double>*>& factors_;
  const double sign_;
};

// The eigenvalue at one end (`sign` 1: the largest, -1: the smallest) of the
// spectrum of a product that is symmetric, all ones aside; the end of what
// mixing matrices can have if the iteration does not converge.
double EigenvalueAt(
    double sign,
    const std::vector<const Eigen::SparseMatrix<double>*>& factors) {
  Disagreement shifted(factors, sign);
  Spectra::SymEigsSolver<Disagreement> solver(shifted, 1, kBasis);
  solver.init();
  solver.compute(Spectra::SortRule::LargestAlge, kRestarts, kEigenvalueError);
  return solver.info() == Spectra::CompInfo::Successful
             ? sign * (solver.eigenvalues()[0] - kShift)
             : sign;
}

// The second and the last eigenvalue of W of one round.
std::pair<double, double> EndsOfSpectrum(const MixingSchedule& schedule,
                                         uint64_t round) {
  if (schedule.size() <= kQuicklyDense) {
    const MixingReport report = Analyze(MatrixOfRound(schedule, round));
    return {report.eigenvalues[schedule.size() > 1 ? 1 : 0],
            report.eigenvalues.back()};
  }
  const Eigen::SparseMatrix<double> w = SparseOfRound(schedule, round);
  return {EigenvalueAt(1, {&w}), EigenvalueAt(-1, {&w})};
}

// The largest eigenvalue of P'P - J of P = W_T ... W_1, without a dense matrix.
double SquaredNormOfPeriod(const MixingSchedule& schedule) {
  std::vector<Eigen::SparseMatrix<double>> rounds;
  for (uint64_t k = 1; k <= schedule.period(); ++k) {
    rounds.push_back(SparseOfRound(schedule, k));
  }
  std::vector<const Eigen::SparseMatrix<double>*> factors;
  for (const auto& w : rounds) factors.push_back(&w);
  for (size_t k = rounds.size(); k-- > 0;) factors.push_back(&rounds[k]);
  return EigenvalueAt(1, factors);
}

absl::Status CheckRowSums(const std::vector<MixingRow>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    double sum = 0;
    for (const Neighbor& n : rows[i].neighbors) sum += n.weight;
    if (sum > 1 + kTolerance) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the weights of peer %d's edges add up to %g; what it keeps of its "
          "own value would be negative.  Make them at most 1 together",
          i, sum));
    }
  }
  return absl::OkStatus();
}

// |W_T ... W_1 - J||^(2/T), J the matrix of the mean.  The product counts,
// since no single round of a periodic schedule needs to contract every
// direction.
double PeriodContraction(const MixingSchedule& schedule) {
  const int m = schedule.size();
  const uint64_t period = schedule.period();
  if (m > kMaxDense) {
    const double norm2 = SquaredNormOfPeriod(schedule);
    // The error of an exact average, as below.
    if (norm2 < kEigenvalueError) return 0;
    return std::pow(norm2, 1.0 / static_cast<double>(period));
  }
  Eigen::MatrixXd product = Eigen::MatrixXd::Identity(m, m);
  for (uint64_t k = 1; k <= period; ++k) {
    product = (ToEigen(MatrixOfRound(schedule, k)) * product).eval();
  }
  product.array() -= 1.0 / m;
  // The squared norm of a matrix that is not symmetric is the largest
  // eigenvalue of P'P.
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      product.transpose() * product, Eigen::EigenvaluesOnly);
  const double norm2 = std::max(0.0, solver.eigenvalues().maxCoeff());
  // Rounding leaves 1e-33 of an exact average; its T-th root would not be 0.
  if (norm2 < 1e-24) return 0;
  return std::pow(norm2, 1.0 / static_cast<double>(period));
}

}  // namespace

absl::StatusOr<std::vector<MixingRow>> MakeRows(const Graph& graph) {
  const std::vector<int> degrees = Degrees(graph);
  std::vector<MixingRow> rows(graph.size);
  for (const GraphEdge& e : graph.edges) {
    const double w = e.weight > 0
                         ? e.weight
                         : 1.0 / (1 + std::max(degrees[e.a], degrees[e.b]));
    // One number for both ends: the matrix is symmetric to the bit.
    rows[e.a].neighbors.push_back({.rank = e.b, .weight = w});
    rows[e.b].neighbors.push_back({.rank = e.a, .weight = w});
  }
  for (MixingRow& row : rows) {
    std::sort(
        row.neighbors.begin(), row.neighbors.end(),
        [](const Neighbor& x, const Neighbor& y) { return x.rank < y.rank; });
  }
  absl::Status sums = CheckRowSums(rows);
  if (!sums.ok()) return sums;
  return rows;
}

MixingMatrix MatrixOfRound(const MixingSchedule& schedule, uint64_t round) {
  MixingMatrix w(schedule.size());
  for (int i = 0; i < w.size(); ++i) {
    double kept = 1;
    for (const Neighbor& n : schedule.Row(i, round).neighbors) {
      w(i, n.rank) = n.weight;
      kept -= n.weight;
    }
    // Weights that add up to one in thirds or sevenths miss it by rounding.
    w(i, i) = std::abs(kept) < kTolerance ? 0 : kept;
  }
  return w;
}

absl::Status CheckMixingMatrix(const MixingMatrix& w) {
  for (int i = 0; i < w.size(); ++i) {
    double row = 0;
    double column = 0;
    for (int j = 0; j < w.size(); ++j) {
      // Negated, so that a weight that is not a number is refused.
      if (!(w(i, j) >= 0)) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "W[%d][%d] is %g; weights are not negative", i, j, w(i, j)));
      }
      if (std::abs(w(i, j) - w(j, i)) > kTolerance) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "W is not symmetric: W[%d][%d] is %g and W[%d][%d] is %g", i, j,
            w(i, j), j, i, w(j, i)));
      }
      row += w(i, j);
      column += w(j, i);
    }
    if (std::abs(row - 1) > kTolerance || std::abs(column - 1) > kTolerance) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "W is not doubly stochastic: row %d adds up to %g and column %d to "
          "%g, not to 1",
          i, row, i, column));
    }
  }
  return absl::OkStatus();
}

MixingReport Analyze(const MixingMatrix& w) {
  const Eigen::MatrixXd e = ToEigen(w);
  // The report is also made of a matrix that is not symmetric, to show by how
  // much; eigenvalues are then those of its symmetric part.
  const Eigen::MatrixXd symmetric = 0.5 * (e + e.transpose());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      symmetric, Eigen::EigenvaluesOnly);
  const Eigen::VectorXd& ascending = solver.eigenvalues();
  MixingReport report;
  report.row_sum_error = (e.rowwise().sum().array() - 1).abs().maxCoeff();
  report.column_sum_error = (e.colwise().sum().array() - 1).abs().maxCoeff();
  report.symmetry_error = (e - e.transpose()).cwiseAbs().maxCoeff();
  report.smallest_entry = e.minCoeff();
  report.eigenvalues.assign(ascending.data(),
                            ascending.data() + ascending.size());
  std::reverse(report.eigenvalues.begin(), report.eigenvalues.end());
  if (w.size() > 1) {
    report.spectral_gap = 1 - std::max(std::abs(report.eigenvalues[1]),
                                       std::abs(report.eigenvalues.back()));
  }
  return report;
}

double Contraction::gap() const { return 1 - std::sqrt(factor); }

Contraction ExpectedContraction(const MixingSchedule& schedule) {
  if (schedule.size() == 1) return {};
  if (schedule.period() > 0) return {.factor = PeriodContraction(schedule)};
  // A formula where there is one: an estimate has an error, and costs thousands
  // of rounds.
  if (const auto known = schedule.expected_contraction()) {
    return {.factor = *known};
  }
  return EstimateContraction(schedule, 1, kEstimateRounds, 0);
}

namespace {

double LastEigenvalue(const MixingSchedule& schedule, uint64_t round) {
  if (schedule.size() <= kQuicklyDense) {
    return EndsOfSpectrum(schedule, round).second;
  }
  const Eigen::SparseMatrix<double> w = SparseOfRound(schedule, round);
  return EigenvalueAt(-1, {&w});
}

double LargestOfLaplacian(const MixingSchedule& schedule) {
  double largest = 0;
  const uint64_t rounds = std::max<uint64_t>(1, schedule.period());
  // A drawn round may have no edge at all; the next will do as well.
  const uint64_t most = schedule.period() > 0 ? rounds : kDrawsOfAnEdge;
  for (uint64_t k = 1; k <= most && (k <= rounds || largest < kEigenvalueError);
       ++k) {
    largest = std::max(largest, 1 - LastEigenvalue(schedule, k));
  }
  return largest;
}

}  // namespace

double StableStepSize(const MixingSchedule& schedule, int age) {
  if (!schedule.largest_of_laplacian_) {
    schedule.largest_of_laplacian_ = LargestOfLaplacian(schedule);
  }
  const double largest = *schedule.largest_of_laplacian_;
  if (largest < kEigenvalueError) {
    return std::numeric_limits<double>::infinity();
  }
  // The bound in the header; age 0 gives 2 / largest, the bound of mixing
  // without delay.
  return 2 * std::sin(std::numbers::pi / (2 * (2 * age + 1))) / largest;
}

std::vector<double> ChebyshevWeights(double rho, int rounds) {
  std::vector<double> weights = {1};
  for (int p = 1; p < rounds; ++p) {
    // omega_1 is from T_2, where the recurrence has 2 for 4.
    const double last = p == 1 ? 2 : weights.back();
    weights.push_back(1 / (1 - rho * rho * last / 4));
  }
  return weights;
}

double ContractionOfNorm(const MixingSchedule& schedule, double gamma) {
  if (schedule.size() == 1) return 0;
  // A function that is linear before its absolute value is taken is largest at
  // an end.
  const auto [second, last] = EndsOfSpectrum(schedule, 1);
  return std::max(std::abs(1 - gamma * (1 - second)),
                  std::abs(1 - gamma * (1 - last)));
}

Contraction EstimateContraction(const MixingSchedule& schedule,
                                uint64_t first_round, int rounds,
                                uint64_t seed) {
  const int m = schedule.size();
  const RngKey key = RngKey(seed).Fold("contraction");
  Eigen::VectorXd x(m);
  double sum = 0;
  double squares = 0;
  for (int k = 0; k < rounds; ++k) {
    for (int i = 0; i < m; ++i) x(i) = key.Fold(k).Gaussian(i);
    // The mean never contracts, so it must not count.
    x.array() -= x.mean();
    double mixed = 0;
    for (int i = 0; i < m; ++i) {
      double kept = 1;
      double value = 0;
      for (const Neighbor& n : schedule.Row(i, first_round + k).neighbors) {
        kept -= n.weight;
        value += n.weight * x(n.rank);
      }
      value += kept * x(i);
      mixed += value * value;
    }
    const double ratio = mixed / x.squaredNorm();
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / rounds;
  const double variance = std::max(0.0, squares / rounds - mean * mean);
  return {.factor = mean,
          .standard_error = std::sqrt(variance / (rounds - 1)),
          .estimated = true};
}

}  // namespace gossamer
