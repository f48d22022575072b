#include "algorithms/game/synthetic_game.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/game/saddle_game.h"

namespace gossamer {
namespace {

// A gibibyte of floats; game, gradients and the two solutions have as many
// each.
constexpr int64_t kMaxParameters = int64_t{1} << 28;

// Columns, not vectors: a codec quantizes only what has two dimensions.
ParameterLayout MakeLayout(int64_t parameters) {
  const int64_t half = parameters / 2;
  return ParameterLayout({{.name = "generator.u",
                           .player = Player::kGenerator,
                           .shape = {parameters - half, 1},
                           .extent = {}},
                          {.name = "discriminator.v",
                           .player = Player::kDiscriminator,
                           .shape = {half, 1},
                           .extent = {}}});
}

}  // namespace

Problems ProblemsOf(const SyntheticSpec& spec) {
  Problems problems;
  problems.Range<int64_t>("parameters", spec.parameters, 2, kMaxParameters);
  problems.NotNegative("heterogeneity", spec.heterogeneity);
  return problems;
}

absl::StatusOr<std::unique_ptr<SyntheticGame>> SyntheticGame::Create(
    const SyntheticSpec& spec, int rank, int peers, uint64_t seed) {
  GOSSAMER_RETURN_IF_ERROR(ProblemsOf(spec).ToStatus());
  GOSSAMER_RETURN_IF_ERROR(CheckRank(rank, peers));
  return std::unique_ptr<SyntheticGame>(
      new SyntheticGame(spec, rank, peers, seed));
}

SyntheticGame::SyntheticGame(const SyntheticSpec& spec, int rank, int peers,
                             uint64_t seed)
    : layout_(MakeLayout(spec.parameters)),
      solution_(layout_.size()),
      parameters_(layout_.size()),
      gradients_(layout_.size()) {
  const RngKey key(seed);
  key.Fold("solution").FillGaussian(solution_);
  key.Fold("parameters").FillGaussian(parameters_);
  own_solution_ = solution_;
  if (spec.heterogeneity == 0 || peers == 1) return;
  // Each peer's draw less that of the next in a circle: the sum is zero, the
  // deviation √2 of a draw's, and a fleet of any size costs two draws.
  const auto scale = static_cast<float>(spec.heterogeneity / std::sqrt(2.0));
  std::vector<float> draw(layout_.size());
  for (const int peer : {rank, (rank + 1) % peers}) {
    key.Fold("shift").Fold(static_cast<uint64_t>(peer)).FillGaussian(draw);
    const float sign = peer == rank ? scale : -scale;
    for (size_t i = 0; i < draw.size(); ++i) {
      own_solution_[i] += sign * draw[i];
    }
  }
}

absl::StatusOr<Losses> SyntheticGame::Gradient(Players players, RngKey key) {
  const size_t half = layout_.extent(Player::kDiscriminator).size;
  const size_t v0 = layout_.extent(Player::kDiscriminator).offset;
  // The gradient is linear, so parameters are read once and nothing is stored
  // in between.
  const auto x = [this](size_t i) { return parameters_[i] - own_solution_[i]; };
  const auto y = [&x, v0](size_t i) { return x(v0 + i); };
  // As many sums as let it run at the speed of memory: one is a chain of
  // additions that takes four times as long.
  std::array<double, 8> values = {};
  const size_t whole = half - half % values.size();
  const auto term = [&](size_t i) {
    return 0.5F * (x(i) * x(i) - y(i) * y(i)) + x(i) * y(i);
  };
  for (size_t i = 0; i < whole; i += values.size()) {
    for (size_t lane = 0; lane < values.size(); ++lane) {
      values[lane] += term(i + lane);
    }
  }
  for (size_t i = whole; i < half; ++i) values[i - whole] += term(i);
  // An odd size: the last of u has no partner.
  for (size_t i = half; i < v0; ++i) values[0] += 0.5F * x(i) * x(i);
  const double value = std::accumulate(values.begin(), values.end(), 0.0);
  // The sum of squares is not finite if any parameter is not, so no second pass
  // over the gradients is needed.
  if (!std::isfinite(value)) {
    return absl::DataLossError("the loss is not finite: the game has diverged");
  }
  // ∇_u f = x + y;  ∇_v(−f) = y − x.
  float* const du = gradients_.data();
  float* const dv = du + v0;
  if (players == Players::kBoth) {
    for (size_t i = 0; i < half; ++i) {
      const float of_u = x(i);
      const float of_v = y(i);
      du[i] = of_u + of_v;
      dv[i] = of_v - of_u;
    }
    for (size_t i = half; i < v0; ++i) du[i] = x(i);
  } else {
    for (size_t i = 0; i < half; ++i) dv[i] = y(i) - x(i);
  }
  return Losses{value, -value};
}

absl::StatusOr<double> SyntheticGame::Score(std::span<const float> generator,
                                            RngKey key) {
  const size_t size = layout_.extent(Player::kGenerator).size;
  if (generator.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("distance: generator has ", generator.size(),
                     " parameters, this game's has ", size));
  }
  double sum = 0;
  for (size_t i = 0; i < size; ++i) {
    const double difference = double{generator[i]} - solution_[i];
    sum += difference * difference;
  }
  // The root mean square, so that scores of games of different sizes compare.
  return std::sqrt(sum / static_cast<double>(size));
}

absl::Status SyntheticGame::WriteSamples(std::span<const float> generator,
                                         RngKey key, const std::string& path) {
  return absl::UnimplementedError("a synthetic game has no pictures to write");
}

}  // namespace gossamer
