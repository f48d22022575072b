#include "gan_models/data/shards.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// The logarithm of a Gamma(alpha, 1) variate: Marsaglia and Tsang, TOMS 2000;
// for alpha < 1 from Gamma(alpha + 1) and a uniform.  In logarithms, because
// at small alpha the variates themselves underflow.
double LogGamma(double alpha, RngKey key) {
  const double boost =
      alpha < 1 ? std::log(1 - key.Fold("boost").Uniform(0)) / alpha : 0;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (uint64_t i = 0;; ++i) {
    const double x = key.Fold("normal").Gaussian(i);
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - key.Fold("uniform").Uniform(i);
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d * v) + boost;
    }
  }
}

}  // namespace

std::vector<std::vector<int>> IidShards(int size, int peers, RngKey key) {
  const std::vector<int> order = key.Permutation(size);
  std::vector<std::vector<int>> shards(peers);
  for (int p = 0; p < peers; ++p) {
    // Ends are computed and not counted up, so that sizes differ by at most
    // one.
    const int64_t begin = int64_t{size} * p / peers;
    const int64_t end = int64_t{size} * (p + 1) / peers;
    shards[p].assign(order.begin() + begin, order.begin() + end);
    // In the order of the file: a shard is a set, and is read in one direction.
    std::sort(shards[p].begin(), shards[p].end());
  }
  return shards;
}

std::vector<double> SampleDirichlet(int n, double alpha, RngKey key) {
  std::vector<double> p(n);
  for (int i = 0; i < n; ++i) p[i] = LogGamma(alpha, key.Fold(i));
  // Relative to the largest, which becomes 1: the sum cannot underflow.
  const double largest = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - largest);
  for (double& x : p) x /= sum;
  return p;
}

absl::StatusOr<std::vector<std::vector<int>>> DirichletShards(
    std::span<const int> labels, int peers, double alpha, RngKey key) {
  if (!(alpha > 0) || !std::isfinite(alpha)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "game.gan.data.dirichlet_alpha is ", alpha, "; it must be above 0"));
  }
  std::map<int, std::vector<int>> by_label;
  for (size_t i = 0; i < labels.size(); ++i) {
    by_label[labels[i]].push_back(static_cast<int>(i));
  }
  constexpr uint64_t kAttempts = 100;
  // A peer without an example could not train.  Every peer makes the same
  // attempts and stops at the same one.
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<std::vector<int>> shards(peers);
    for (const auto& [label, indices] : by_label) {
      const RngKey draw = key.Fold(attempt).Fold(label);
      const auto share = SampleDirichlet(peers, alpha, draw.Fold("share"));
      const auto n = static_cast<int>(indices.size());
      const auto order = draw.Fold("order").Permutation(n);
      double cumulative = 0;
      int begin = 0;
      for (int p = 0; p < peers; ++p) {
        cumulative += share[p];
        const int end =
            // The last peer takes what rounding leaves, so that every example
            // has a peer.
            p + 1 == peers
                ? n
                : std::clamp(static_cast<int>(std::lround(cumulative * n)),
                             begin, n);
        for (; begin < end; ++begin) {
          shards[p].push_back(indices[order[begin]]);
        }
      }
    }
    if (std::none_of(shards.begin(), shards.end(),
                     [](const auto& s) { return s.empty(); })) {
      for (auto& s : shards) std::sort(s.begin(), s.end());
      return shards;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("game.gan.data.dirichlet_alpha ", alpha, " left one of ",
                   peers, " peers without an image in each of ", kAttempts,
                   " draws; take a larger alpha or fewer peers"));
}

absl::StatusOr<std::vector<int>> ShardOf(int size, std::span<const int> labels,
                                         double alpha, int rank, int peers,
                                         absl::string_view source, RngKey key) {
  if (size < peers) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, " has ", size, " training pictures of the chosen classes for ",
        peers, " peers; choose more classes"));
  }
  if (alpha <= 0) return IidShards(size, peers, key)[rank];
  GOSSAMER_ASSIGN_OR_RETURN(std::vector<std::vector<int>> shards,
                            DirichletShards(labels, peers, alpha, key));
  return std::move(shards[rank]);
}

}  // namespace gossamer
