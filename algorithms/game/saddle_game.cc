#include "algorithms/game/saddle_game.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

// Each costs O(d) and turns one direction around.
constexpr int kReflections = 3;
constexpr int kMaxDimension = 1 << 26;

double Dot(std::span<const double> x, std::span<const double> y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// x ← (I − nnᵀ)x, a reflection for ‖n‖² = 2.
void Reflect(std::span<const double> normal, std::span<double> x) {
  const double projection = Dot(normal, x);
  for (size_t i = 0; i < x.size(); ++i) x[i] -= projection * normal[i];
}

// Columns, not vectors: a codec quantizes only what has two dimensions.
ParameterLayout MakeLayout(int dimension) {
  return ParameterLayout({{.name = "generator.u",
                           .player = Player::kGenerator,
                           .shape = {dimension, 1},
                           .extent = {}},
                          {.name = "discriminator.v",
                           .player = Player::kDiscriminator,
                           .shape = {dimension, 1},
                           .extent = {}}});
}

double Distance(std::span<const float> x, std::span<const double> y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - y[i];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

}  // namespace

absl::Status CheckRank(int rank, int peers) {
  if (rank >= 0 && rank < peers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("game: rank is ", rank, ", must be in [0, ", peers, ")"));
}

OrthogonalMatrix::OrthogonalMatrix(int dimension, RngKey key)
    : normals_(kReflections, std::vector<double>(dimension)) {
  for (int k = 0; k < kReflections; ++k) {
    const RngKey draw = key.Fold(static_cast<uint64_t>(k));
    std::vector<double>& normal = normals_[k];
    for (int i = 0; i < dimension; ++i) normal[i] = draw.Gaussian(i);
    const double scale = std::sqrt(2 / Dot(normal, normal));
    for (double& value : normal) value *= scale;
  }
}

void OrthogonalMatrix::Apply(std::span<double> x) const {
  for (size_t k = normals_.size(); k-- > 0;) Reflect(normals_[k], x);
}

// A reflection is its own transpose, so the transposed product is the same ones
// in the other order.
void OrthogonalMatrix::ApplyTransposed(std::span<double> x) const {
  for (const std::vector<double>& normal : normals_) Reflect(normal, x);
}

SaddleGame::SaddleGame(const Coefficients& coefficients,
                       std::span<const double> shift, uint64_t seed)
    : coefficients_(coefficients),
      layout_(MakeLayout(coefficients.dimension)),
      coupling_(coefficients.dimension, RngKey(seed).Fold("coupling")),
      solution_(layout_.size()),
      own_solution_(layout_.size()),
      parameters_(layout_.size()),
      gradients_(layout_.size()) {
  const RngKey key(seed);
  for (size_t i = 0; i < solution_.size(); ++i) {
    solution_[i] = key.Fold("solution").Gaussian(i);
    own_solution_[i] = solution_[i] + shift[i];
  }
  key.Fold("parameters").FillGaussian(parameters_);
}

Problems ProblemsOfSaddle(int dimension, double noise) {
  Problems problems;
  problems.Range("dimension", dimension, 1, kMaxDimension);
  problems.NotNegative("noise", noise);
  return problems;
}

absl::StatusOr<Losses> SaddleGame::Gradient(Players players, RngKey key) {
  const size_t d = static_cast<size_t>(coefficients_.dimension);
  const double mu = coefficients_.curvature;
  std::vector<double> from_solution(2 * d);
  for (size_t i = 0; i < 2 * d; ++i) {
    from_solution[i] = parameters_[i] - own_solution_[i];
  }
  const std::span<const double> u(from_solution.data(), d);
  const std::span<const double> v(from_solution.data() + d, d);
  // ∇_u f = μ(u − a) + A(v − b);  ∇_v(−f) = μ(v − b) − Aᵀ(u − a).
  std::vector<double> for_u(v.begin(), v.end());
  std::vector<double> for_v(u.begin(), u.end());
  coupling_.Apply(for_u);
  coupling_.ApplyTransposed(for_v);
  const double value = mu / 2 * (Dot(u, u) - Dot(v, v)) + Dot(u, for_u);

  const RngKey noise = key.Fold("gradient-noise");
  std::vector<float> gradient(2 * d);
  const size_t first = players == Players::kBoth ? 0 : d;
  bool finite = std::isfinite(value);
  for (size_t i = first; i < 2 * d; ++i) {
    // In double, and rounded once: near the solution the terms cancel.
    double g = mu * from_solution[i] + (i < d ? for_u[i] : -for_v[i - d]);
    if (coefficients_.noise > 0) g += coefficients_.noise * noise.Gaussian(i);
    finite = finite && std::abs(g) <= std::numeric_limits<float>::max();
    if (!finite) {
      return absl::DataLossError(
          absl::StrCat("loss or gradient of ", layout_.At(i).name,
                       " is not finite: the game has diverged"));
    }
    gradient[i] = static_cast<float>(g);
  }
  // Copied only when all of it is finite: an error leaves the last gradient in
  // place.
  std::copy(gradient.begin() + first, gradient.end(),
            gradients_.begin() + first);
  // A zero-sum game: each player descends its own loss.
  return Losses{value, -value};
}

double SaddleGame::DistanceToSolution(std::span<const float> x) const {
  return Distance(x, solution_);
}

absl::StatusOr<double> SaddleGame::Score(std::span<const float> generator,
                                         RngKey key) {
  const Extent extent = layout_.extent(Player::kGenerator);
  if (generator.size() != extent.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("distance: generator has ", generator.size(),
                     " parameters, this game's has ", extent.size));
  }
  return Distance(generator, std::span(solution_).first(extent.size));
}

absl::Status SaddleGame::WriteSamples(std::span<const float> generator,
                                      RngKey key, const std::string& path) {
  return absl::UnimplementedError(
      "a closed-form game has no pictures to write; it has a score, "
      "\"distance\"");
}

}  // namespace gossamer
