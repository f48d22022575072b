#include "gan_models/evaluation/metrics.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

absl::Status Check(const Features& f, const char* which, size_t at_least) {
  if (f.size() < at_least) {
    return absl::InvalidArgumentError(
        absl::StrCat("this score needs at least ", at_least, " ", which,
                     " samples; there are ", f.size()));
  }
  if (!std::all_of(f.values.begin(), f.values.end(),
                   [](float v) { return std::isfinite(v); })) {
    return absl::DataLossError(
        absl::StrCat("a feature of the ", which, " samples is not finite"));
  }
  return absl::OkStatus();
}

absl::Status CheckBoth(const Features& real, const Features& fake,
                       size_t at_least) {
  if (real.dimension != fake.dimension) {
    return absl::InvalidArgumentError(
        absl::StrCat("features of ", real.dimension, " and of ", fake.dimension,
                     " dimensions cannot be compared"));
  }
  GOSSAMER_RETURN_IF_ERROR(Check(real, "real", at_least));
  return Check(fake, "generated", at_least);
}

Matrix ToMatrix(const Features& f) {
  return Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic,
                                        Eigen::RowMajor>>(
             f.values.data(), static_cast<Eigen::Index>(f.size()),
             static_cast<Eigen::Index>(f.dimension))
      .cast<double>();
}

struct Gaussian {
  Eigen::VectorXd mean;
  Matrix covariance;
};

Gaussian Fit(const Features& f) {
  Matrix x = ToMatrix(f);
  Gaussian g;
  g.mean = x.colwise().mean();
  x.rowwise() -= g.mean.transpose();
  // The unbiased covariance, as in the published FID.
  g.covariance = x.transpose() * x / static_cast<double>(x.rows() - 1);
  return g;
}

// (x.y / d + 1)^3 between all rows.
Matrix CubicKernel(const Matrix& x, const Matrix& y) {
  const Matrix k = x * y.transpose() / static_cast<double>(x.cols());
  return (k.array() + 1).cube();
}

Matrix RandomRows(const Matrix& x, Eigen::Index n, RngKey key) {
  const std::vector<int> order = key.Permutation(static_cast<int>(x.rows()));
  Matrix chosen(n, x.cols());
  for (Eigen::Index i = 0; i < n; ++i) chosen.row(i) = x.row(order[i]);
  return chosen;
}

double MeanDistance(const Matrix& x, const Matrix& y) {
  double sum = 0;
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    sum += (y.rowwise() - x.row(i)).rowwise().norm().sum();
  }
  return sum / (static_cast<double>(x.rows()) * static_cast<double>(y.rows()));
}

// The squared distance of each row to its k-th neighbour among the others.
Eigen::VectorXd Radii(const Matrix& x, int k) {
  Eigen::VectorXd radii(x.rows());
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    Eigen::VectorXd d = (x.rowwise() - x.row(i)).rowwise().squaredNorm();
    std::nth_element(d.begin(), d.begin() + k, d.end());  // d[0] is itself
    radii[i] = d[k];
  }
  return radii;
}

// The part of `points` that lies in a ball around one of `centers`.
double Covered(const Matrix& points, const Matrix& centers,
               const Eigen::VectorXd& radii) {
  Eigen::Index covered = 0;
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    const Eigen::VectorXd d =
        (centers.rowwise() - points.row(i)).rowwise().squaredNorm();
    covered += (d.array() <= radii.array()).any() ? 1 : 0;
  }
  return static_cast<double>(covered) / static_cast<double>(points.rows());
}

}  // namespace

absl::StatusOr<double> FrechetDistance(const Features& real,
                                       const Features& fake) {
  GOSSAMER_RETURN_IF_ERROR(CheckBoth(real, fake, 2));
  const Gaussian a = Fit(real), b = Fit(fake);
  // tr (S1 S2)^(1/2) = tr (R S2 R)^(1/2) with R = S1^(1/2): symmetric, so that
  // rounding cannot make its root complex.
  const Eigen::SelfAdjointEigenSolver<Matrix> first(a.covariance);
  const Matrix root = first.eigenvectors() *
                      first.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() *
                      first.eigenvectors().transpose();
  const Eigen::SelfAdjointEigenSolver<Matrix> product(
      Matrix(root * b.covariance * root), Eigen::EigenvaluesOnly);
  const double cross = product.eigenvalues().cwiseMax(0).cwiseSqrt().sum();
  const double distance = (a.mean - b.mean).squaredNorm() +
                          a.covariance.trace() + b.covariance.trace() -
                          2 * cross;
  // Rounding may leave a little below 0 for equal sets.
  return std::max(0.0, distance);
}

absl::StatusOr<double> KernelDistance(const Features& real,
                                      const Features& fake, int subsets,
                                      size_t subset_size, RngKey key) {
  GOSSAMER_RETURN_IF_ERROR(CheckBoth(real, fake, 2));
  const Matrix x = ToMatrix(real), y = ToMatrix(fake);
  const auto n = static_cast<Eigen::Index>(
      std::min({subset_size, real.size(), fake.size()}));
  if (n < 2 || subsets < 1) {
    return absl::InvalidArgumentError(
        "the kernel distance needs a subset, of at least 2 samples");
  }
  const auto pairs = static_cast<double>(n) * static_cast<double>(n - 1);
  double sum = 0;
  for (int s = 0; s < subsets; ++s) {
    const Matrix a = RandomRows(x, n, key.Fold(s).Fold("real"));
    const Matrix b = RandomRows(y, n, key.Fold(s).Fold("fake"));
    const Matrix aa = CubicKernel(a, a), bb = CubicKernel(b, b);
    // The diagonals are left out: a sample's kernel with itself would bias the
    // estimate.
    sum += (aa.sum() - aa.trace() + bb.sum() - bb.trace()) / pairs -
           2 * CubicKernel(a, b).mean();
  }
  return sum / subsets;
}

absl::StatusOr<double> EnergyDistance(const Features& real,
                                      const Features& fake) {
  GOSSAMER_RETURN_IF_ERROR(CheckBoth(real, fake, 2));
  const Matrix x = ToMatrix(real), y = ToMatrix(fake);
  return std::max(
      // Distances of samples to themselves count: the estimate is then never
      // below 0, but for rounding, and 0 for equal sets.
      0.0, 2 * MeanDistance(x, y) - MeanDistance(x, x) - MeanDistance(y, y));
}

absl::StatusOr<PrecisionRecall> ComputePrecisionRecall(const Features& real,
                                                       const Features& fake,
                                                       int k) {
  if (k < 1) return absl::InvalidArgumentError("k must be at least 1");
  GOSSAMER_RETURN_IF_ERROR(CheckBoth(real, fake, static_cast<size_t>(k) + 1));
  const Matrix x = ToMatrix(real), y = ToMatrix(fake);
  // Precision is the part of the generated samples near real ones, recall the
  // part of the real ones near generated ones: a generator that has lost a mode
  // keeps the first and loses the second.
  return PrecisionRecall{.precision = Covered(y, x, Radii(x, k)),
                         .recall = Covered(x, y, Radii(y, k))};
}

absl::StatusOr<InceptionScore> ComputeInceptionScore(const Features& logits,
                                                     int splits) {
  if (splits < 1) return absl::InvalidArgumentError("splits must be positive");
  GOSSAMER_RETURN_IF_ERROR(
      Check(logits, "generated", static_cast<size_t>(splits)));
  Matrix log_p = ToMatrix(logits);
  for (Eigen::Index i = 0; i < log_p.rows(); ++i) {
    const double largest = log_p.row(i).maxCoeff();
    // The logarithm of softmax with the largest logit taken out, so that no
    // exponential overflows.
    log_p.row(i).array() -=
        largest + std::log((log_p.row(i).array() - largest).exp().sum());
  }
  // Parts and their deviation as in the published code, so that figures
  // compare.
  Eigen::VectorXd scores(splits);
  for (int s = 0; s < splits; ++s) {
    const Eigen::Index begin = log_p.rows() * s / splits;
    const Eigen::Index end = log_p.rows() * (s + 1) / splits;
    const Matrix part = log_p.middleRows(begin, end - begin);
    const Matrix p = part.array().exp();
    const Eigen::RowVectorXd marginal = p.colwise().mean();
    // 0 log 0 = 0: a class that nothing is taken for has no part in the sum.
    const Eigen::RowVectorXd log_marginal =
        marginal.cwiseMax(1e-300).array().log();
    const Matrix ratio = part.rowwise() - log_marginal;
    scores[s] = std::exp(p.cwiseProduct(ratio).rowwise().sum().mean());
  }
  const double mean = scores.mean();
  return InceptionScore{
      .mean = mean,
      .deviation = std::sqrt((scores.array() - mean).square().mean())};
}

}  // namespace gossamer
