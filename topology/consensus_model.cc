#include "topology/consensus_model.h"

#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "topology/mixing_matrix.h"

namespace gossamer {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int kMostRounds = 20000;  // of an impulse's response
constexpr double kFadedAway = 1e-10;

// c_0 of the equations in the header.
double Variance(double mu, double nu, double gamma, int age) {
  const int n = age + 1;
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(n, n);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(n);
  a(0, age) += 2 * gamma * mu;
  a(0, 0) -= gamma * gamma * nu;
  b(0) = 1;
  for (int j = 1; j <= age; ++j) {
    a(j, j) += 1;
    a(j, j - 1) -= 1;
    a(j, age + 1 - j) += gamma * mu;
  }
  const Eigen::VectorXd c = a.fullPivLu().solve(b);
  // The equations have a solution where the recursion has no steady state, too;
  // it is then no covariance.
  if (!c.allFinite() || !(c(0) > 0)) return kInfinite;
  for (int j = 1; j <= age; ++j) {
    if (std::abs(c(j)) > c(0)) return kInfinite;
  }
  return c(0);
}

Eigen::MatrixXd LaplacianOf(const MixingSchedule& schedule, uint64_t round) {
  const MixingMatrix w = MatrixOfRound(schedule, round);
  Eigen::MatrixXd l = Eigen::MatrixXd::Identity(w.size(), w.size());
  for (int i = 0; i < w.size(); ++i) {
    for (int j = 0; j < w.size(); ++j) l(i, j) -= w(i, j);
  }
  return l;
}

// Edges that are ever used, over edges in use in a round.
double RoundsBetweenUses(const MixingSchedule& schedule) {
  const int m = schedule.size();
  const uint64_t rounds = schedule.period() > 0 ? schedule.period() : 1;
  std::set<std::pair<int, int>> ever;
  double uses = 0;
  for (uint64_t k = 1; k <= rounds; ++k) {
    for (int i = 0; i < m; ++i) {
      for (const Neighbor& n : schedule.Row(i, k).neighbors) {
        if (n.rank < i) continue;
        ever.emplace(i, n.rank);
        ++uses;
      }
    }
  }
  if (uses == 0) return 1;
  const double edges = schedule.period() > 0 ? static_cast<double>(ever.size())
                                             : 0.5 * m * (m - 1);
  return edges * static_cast<double>(rounds) / uses;
}

}  // namespace

ConsensusModel::ConsensusModel(const MixingSchedule& schedule)
    : schedule_(schedule), rounds_between_uses_(RoundsBetweenUses(schedule)) {
  const int m = schedule.size();
  if (m == 1) return;
  if (schedule.fixed()) {
    const MixingReport report = Analyze(MatrixOfRound(schedule, 1));
    for (int i = 1; i < m; ++i) {
      const double lambda = 1 - report.eigenvalues[i];
      modes_.push_back({.mu = lambda, .nu = lambda * lambda});
    }
    return;
  }
  // Means over what differs: over the rounds of a period, or, as relabelling
  // changes no trace, of any one draw.
  Mode mean;
  const uint64_t rounds = schedule.period() > 0 ? schedule.period() : 1;
  for (uint64_t k = 1; k <= rounds; ++k) {
    const Eigen::MatrixXd l = LaplacianOf(schedule, k);
    mean.mu += l.trace();
    mean.nu += l.squaredNorm();
  }
  const double directions = static_cast<double>(rounds) * (m - 1);
  modes_ = {{.mu = mean.mu / directions, .nu = mean.nu / directions}};
}

std::vector<double> ConsensusModel::Variances(double gamma, int age) const {
  if (!schedule_.fixed() && schedule_.period() > 0) {
    return {PeriodicVariance(gamma, age)};
  }
  std::vector<double> variances;
  for (const Mode& mode : modes_) {
    variances.push_back(Variance(mode.mu, mode.nu, gamma, age));
  }
  return variances;
}

double ConsensusModel::PeriodicVariance(double gamma, int age) const {
  const int m = schedule_.size();
  const auto period = static_cast<int>(schedule_.period());
  std::vector<Eigen::SparseMatrix<double>> laplacians;
  for (int k = 0; k < period; ++k) {
    laplacians.push_back((gamma * LaplacianOf(schedule_, k)).sparseView());
  }
  // One peer's, as the only schedule with a period, pairs by XOR, looks the
  // same to all.
  Eigen::VectorXd impulse = Eigen::VectorXd::Constant(m, -1.0 / m);
  impulse(0) += 1;
  double sum = 0;
  for (int phase = 0; phase < period; ++phase) {
    // The newest is at k mod (age + 1); older than the impulse is 0.
    std::vector<Eigen::VectorXd> x(age + 1, Eigen::VectorXd::Zero(m));
    x[0] = impulse;
    double faded = 0;
    for (int k = 0;; ++k) {
      const Eigen::VectorXd& now = x[k % (age + 1)];
      const double power = now.squaredNorm();
      sum += power;
      // Delayed mixing swings: it must be small for as long as a swing takes.
      faded = power < kFadedAway ? faded + 1 : 0;
      if (faded > 4 * (age + 1) * period) break;
      if (k == kMostRounds || !std::isfinite(power)) return kInfinite;
      const int next = (k + 1) % (age + 1);  // where the snapshot lies
      x[next] =
          now -
          laplacians[(phase + k - age + period * (age + 1)) % period] * x[next];
    }
  }
  return sum / period * m / (m - 1);
}

double ConsensusModel::Distance(double gamma, int age,
                                double codec_error) const {
  if (modes_.empty()) return 0;
  const std::vector<double> variances = Variances(gamma, age);
  const double m = schedule_.size();
  const double share = (m - 1) / m;
  const double kept = codec_error / (1 - codec_error) * rounds_between_uses_;
  double moved = 0, fed_back = 0;
  const auto count = static_cast<double>(modes_.size());
  for (size_t i = 0; i < modes_.size(); ++i) {
    const double q = gamma * gamma * modes_[i].nu;
    moved += share * q * variances[i] / count;
    fed_back += share * q * q * variances[i] / count;
  }
  // What a peer's x changes in a round: the step's 1, and the corrections, in
  // which the codec's own error is.
  const double left = 1 - kept * fed_back;
  if (!(left > 0)) return kInfinite;
  const double change = (1 + moved) / left;
  double distance = 0;
  for (size_t i = 0; i < modes_.size(); ++i) {
    const double noise = 1 + gamma * gamma * modes_[i].nu * kept * change;
    distance += share * variances[i] * noise / count;
  }
  return distance;
}

}  // namespace gossamer
