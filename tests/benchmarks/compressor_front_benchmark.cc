// Bytes against quality of the compressors of edges, each at its own learning
// rate.  Peers on a ring run in one process, with the real ends of edges and
// without a network.
//
//   compressor_front_benchmark --game quadratic --codec innov-int4
//       --codec innov-lm2 --rates 0.01,0.03,0.1 [--seeds 1,2,3] [--json]
//
// Every rate is tried with the first seed, and the best one runs with all
// seeds.  A codec's cost is the bits that travel per parameter and exchange,
// over all exchanges of a run.  Its score is the distance of the peers to the
// solution (quadratic, whose games differ from peer to peer, and bilinear, one
// game of which each peer sees noisy gradients) or the energy distance of the
// first peer's averaged generator to the Gaussian mixture (gaussian); smaller
// is better.  A codec is on the front unless another one of fewer bits is worse
// by at most the codec's deviation, or one of as many bits is better by more
// than it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/edge/edge_codec_state.h"
#include "algorithms/game/bilinear_game.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/optim/local_step.h"
#include "gan_models/make_game.h"
#include "runtime/base/command_line.h"

namespace gossamer {
namespace {

struct Settings {
  std::string game = "quadratic";
  std::vector<std::string> codecs, rates;
  std::vector<uint64_t> seeds = {1, 2, 3};
  int peers = 8, rounds = 1000, dimension = 2048, batch = 64, width = 64;
  double heterogeneity = 1, noise = 0.1, ema = 0.99;
  bool json = false;
};

struct Outcome {
  double score = std::numeric_limits<double>::infinity();
  double bits = 0;
};

struct Row {
  std::string codec, rate;
  double mean = 0, deviation = 0, bits = 0;
  bool front = true;
};

absl::StatusOr<std::unique_ptr<Game>> MakeGame(const Settings& s, int rank,
                                               uint64_t seed) {
  if (s.game == "quadratic") {
    GOSSAMER_ASSIGN_OR_RETURN(
        std::unique_ptr<Game> game,
        QuadraticGame::Create({.dimension = s.dimension,
                               .noise = s.noise,
                               .heterogeneity = s.heterogeneity},
                              rank, s.peers, seed));
    return game;
  }
  if (s.game == "bilinear") {
    GOSSAMER_ASSIGN_OR_RETURN(
        std::unique_ptr<Game> game,
        BilinearGame::Create({.dimension = s.dimension, .noise = s.noise},
                             seed));
    return game;
  }
  GanSpec gan;
  gan.model = "mlp";
  gan.width = s.width;
  gan.batch = s.batch;
  gan.latent = 16;
  gan.gradient_penalty = 1;
  gan.data.name = "gaussian-mixture";
  return MakeGan(gan, rank, s.peers, seed, /*threads=*/1);
}

struct Peer {
  std::unique_ptr<Game> game;
  std::unique_ptr<LocalStep> step;
  std::shared_ptr<SnapshotCache> cache = std::make_shared<SnapshotCache>();
};

// Both ends of an edge, each with its own state as in two processes.
struct Pair {
  int low, high;
  EdgeCodecState ends[2];
};

class Ring {
 public:
  static absl::StatusOr<std::unique_ptr<Ring>> Create(const Settings& s,
                                                      const std::string& codec,
                                                      double rate,
                                                      uint64_t seed) {
    auto ring = std::unique_ptr<Ring>(new Ring);
    LocalStepSpec spec;
    spec.generator = {.name = s.game == "quadratic"  ? "sgd"
                              : s.game == "bilinear" ? "ogda"
                                                     : "oadam",
                      .learning_rate = rate};
    spec.discriminator = spec.generator;
    spec.decay_from_round = static_cast<uint64_t>(s.rounds) / 2;
    spec.last_round = static_cast<uint64_t>(s.rounds);
    for (int r = 0; r < s.peers; ++r) {
      Peer& peer = ring->peers_.emplace_back();
      GOSSAMER_ASSIGN_OR_RETURN(peer.game, MakeGame(s, r, seed));
      GOSSAMER_ASSIGN_OR_RETURN(peer.step,
                                LocalStep::Create(spec, peer.game.get()));
    }
    GOSSAMER_ASSIGN_OR_RETURN(
        ring->codec_, Codec::Create(codec, ring->peers_[0].game->layout()));
    for (int r = 0; r < s.peers; ++r) {
      const int next = (r + 1) % s.peers;
      Pair pair{std::min(r, next), std::max(r, next), {}};
      for (const int end : {0, 1}) {
        Peer& peer = ring->peers_[end == 0 ? pair.low : pair.high];
        pair.ends[end] =
            EdgeCodecState(ring->codec_, peer.game->parameters(), peer.cache,
                           RngKey(seed).Fold(r).Bits(0),
                           /*upper=*/end == 1);
        pair.ends[end].set_coefficient(ring->codec_->gamma() / 3);
        pair.ends[end].OnReset();
      }
      ring->edges_.push_back(std::move(pair));
    }
    return ring;
  }

  // All messages are of the same parameters, as the corrections of one round
  // are.
  absl::Status Mix(uint64_t round) {
    const ExchangeId id = MakeExchangeId(round);
    std::vector<EdgeMessage> messages;
    for (Pair& pair : edges_) {
      for (EdgeCodecState& end : pair.ends) {
        messages.push_back(end.OnEmit(id));
        bytes_ += static_cast<double>(messages.back().bytes.size());
        ++sent_;
      }
    }
    for (size_t e = 0; e < edges_.size(); ++e) {
      for (const size_t end : {0, 1}) {
        const EdgeMessage& mine = messages[2 * e + end];
        const EdgeMessage& theirs = messages[2 * e + 1 - end];
        GOSSAMER_ASSIGN_OR_RETURN(
            const EdgeMessage received,
            edges_[e].ends[end].Receive(id, theirs.format, theirs.c,
                                        theirs.bytes));
        edges_[e].ends[end].OnComplete(id, &mine, &received);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Step(uint64_t round, uint64_t seed) {
    for (size_t r = 0; r < peers_.size(); ++r) {
      const RngKey key = RngKey(seed).Fold(r).Fold(round);
      GOSSAMER_RETURN_IF_ERROR(
          peers_[r].step->Run(round - 1, round, key).status());
    }
    return absl::OkStatus();
  }

  std::vector<Peer>& peers() { return peers_; }
  double BitsPerParameter() const {
    const auto n = static_cast<double>(peers_[0].game->layout().size());
    return 8 * bytes_ / sent_ / n;
  }

 private:
  Ring() = default;

  std::vector<Peer> peers_;
  std::shared_ptr<const Codec> codec_;
  std::vector<Pair> edges_;
  double bytes_ = 0, sent_ = 0;
};

std::span<const float> GeneratorOf(Game& game) {
  return game.parameters().first(game.layout().extent(Player::kGenerator).size);
}

absl::StatusOr<Outcome> Train(const Settings& s, const std::string& codec,
                              double rate, uint64_t seed) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::unique_ptr<Ring> ring,
                            Ring::Create(s, codec, rate, seed));
  Game& first = *ring->peers()[0].game;
  const auto start = GeneratorOf(first);
  std::vector<float> average(start.begin(), start.end());
  for (int i = 1; i <= s.rounds; ++i) {
    const auto round = static_cast<uint64_t>(i);
    // A run that is not finite has no score.
    if (!ring->Mix(round).ok() || !ring->Step(round, seed).ok()) {
      return Outcome{.bits = ring->BitsPerParameter()};
    }
    const auto keep = static_cast<float>(s.ema);
    HostKernels().ema(1 - keep, GeneratorOf(first), average);
  }
  Outcome outcome{.score = 0, .bits = ring->BitsPerParameter()};
  if (s.game != "gaussian") {
    // The root mean square over the peers counts their disagreement too.
    double squares = 0;
    for (Peer& peer : ring->peers()) {
      GOSSAMER_ASSIGN_OR_RETURN(
          const double distance,
          peer.game->evaluator()->Score(GeneratorOf(*peer.game), RngKey(7)));
      squares += distance * distance;
    }
    outcome.score = std::sqrt(squares / s.peers);
  } else {
    GOSSAMER_ASSIGN_OR_RETURN(outcome.score,
                              first.evaluator()->Score(average, RngKey(7)));
  }
  if (!std::isfinite(outcome.score)) {
    outcome.score = std::numeric_limits<double>::infinity();
  }
  return outcome;
}

absl::StatusOr<Row> Measure(const Settings& s, const std::string& codec) {
  Row row;
  row.codec = codec;
  Outcome best;
  double best_rate = 0;
  for (const std::string& text : s.rates) {
    double rate = 0;
    if (!absl::SimpleAtod(text, &rate) || rate <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--rates: \"", text, "\" is no learning rate"));
    }
    GOSSAMER_ASSIGN_OR_RETURN(const Outcome outcome,
                              Train(s, codec, rate, s.seeds[0]));
    if (!row.rate.empty() && !(outcome.score < best.score)) continue;
    best = outcome;
    best_rate = rate;
    row.rate = text;
  }
  std::vector<double> scores = {best.score};
  for (size_t i = 1; i < s.seeds.size(); ++i) {
    GOSSAMER_ASSIGN_OR_RETURN(const Outcome outcome,
                              Train(s, codec, best_rate, s.seeds[i]));
    scores.push_back(outcome.score);
  }
  const auto n = static_cast<double>(scores.size());
  for (const double score : scores) row.mean += score / n;
  double squares = 0;
  for (const double score : scores) squares += std::pow(score - row.mean, 2);
  row.deviation = std::sqrt(squares / std::max(1.0, n - 1));
  row.bits = best.bits;
  return row;
}

void FindFront(std::vector<Row>& rows) {
  for (Row& row : rows) {
    row.front = std::isfinite(row.mean) &&
                std::ranges::none_of(rows, [&](const Row& other) {
                  if (other.bits < row.bits) {
                    return other.mean <= row.mean + row.deviation;
                  }
                  return other.bits == row.bits &&
                         other.mean < row.mean - row.deviation;
                });
  }
}

int Main(const Settings& s) {
  std::vector<Row> rows;
  for (const std::string& codec : s.codecs) {
    absl::StatusOr<Row> row = Measure(s, codec);
    if (!row.ok()) {
      absl::FPrintF(stderr, "%s\n", row.status().ToString());
      return 1;
    }
    absl::FPrintF(stderr, "%s %s %.3f bits %.4g ± %.2g\n", codec, row->rate,
                  row->bits, row->mean, row->deviation);
    rows.push_back(*std::move(row));
  }
  std::ranges::sort(rows, {}, &Row::bits);
  FindFront(rows);
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    if (s.json) {
      // JSON has no infinity.
      const std::string score =
          std::isfinite(row.mean) ? absl::StrFormat("%.6g, \"deviation\": %.3g",
                                                    row.mean, row.deviation)
                                  : "null, \"deviation\": null";
      lines.push_back(absl::StrFormat(
          "    {\"codec\": \"%s\", \"rate\": %s, \"bits\": %.4f, "
          "\"score\": %s, \"front\": %s}",
          row.codec, row.rate, row.bits, score, row.front ? "true" : "false"));
    } else {
      lines.push_back(absl::StrFormat("| `%s` | %.3f | %s | %.4g ± %.2g | %s |",
                                      row.codec, row.bits, row.rate, row.mean,
                                      row.deviation, row.front ? "yes" : ""));
    }
  }
  if (s.json) {
    absl::PrintF(
        "{\"game\": \"%s\", \"peers\": %d, \"rounds\": %d, \"rows\": "
        "[\n%s\n]}\n",
        s.game, s.peers, s.rounds, absl::StrJoin(lines, ",\n"));
  } else {
    absl::PrintF(
        "| codec | bits | rate | score | front |\n"
        "| --- | --- | --- | --- | --- |\n%s\n",
        absl::StrJoin(lines, "\n"));
  }
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::Settings s;
  gossamer::Command program(
      {.name = "compressor_front_benchmark",
       .about = "Bytes against quality of the compressors of edges.",
       .run = [&] { return gossamer::Main(s); }});
  const auto add = [&program](const std::string& name,
                              gossamer::OptionTarget target) {
    program.AddOption(name, target, "", {.show_default = true});
  };
  program.AddOption("--codec", &s.codecs, "a mixing.codec",
                    {.required = true, .one_at_a_time = true});
  program.AddOption("--rates", &s.rates, "learning rates to try",
                    {.required = true, .delimiter = ','});
  program.AddOption("--seeds", &s.seeds, "", {.delimiter = ','});
  program.AddOption(
      "--game", &s.game, "",
      {.show_default = true, .choices = {"bilinear", "gaussian", "quadratic"}});
  program.AddOption("--json", &s.json, "JSON, not a table");
  add("--peers", &s.peers);
  add("--rounds", &s.rounds);
  add("--dimension", &s.dimension);
  add("--batch", &s.batch);
  add("--width", &s.width);
  add("--heterogeneity", &s.heterogeneity);
  add("--noise", &s.noise);
  add("--ema", &s.ema);
  return program.Run(argc, argv);
}
