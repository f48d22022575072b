// Quality and bytes of compressed gradients.  The ranks run in one process
// without a network, with the real methods and all-reduces, and OAdam at each.
//
//   gradient_quality_benchmark --method dense-f32 --method scalecom:rate=100
//       [--game gaussian] [--seeds 1,2,3] [--peers 4] [--batch 64]
//       [--rounds 2000] [--rate 1e-3] [--by-kind]
//
// For each method the program prints the score at the end (energy distance of
// the Gaussian mixture, distance to the solution of the quadratic game,
// proxy-fid of pictures; smaller is better) as mean and standard deviation over
// the seeds.  It prints the bytes that a rank sends a round: over all rounds,
// over those after the start with dense gradients (a method's option full=),
// and over the later half.  It also prints the processor time of the method and
// its sums, as a share of that of the gradients. --by-kind averages
// convolutions, dense layers and small segments separately, and prints how much
// smaller the later half of each is than floats.

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/wire_layout.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/optim/local_step.h"
#include "gan_models/learned_coder.h"
#include "gan_models/make_game.h"
#include "runtime/base/command_line.h"
#include "tests/algorithms/compress/gradient_fleet.h"

namespace gossamer {
namespace {

struct Settings {
  std::vector<std::string> methods;
  std::vector<uint64_t> seeds = {1, 2, 3};
  std::string game = "gaussian";
  std::string data = "data/emoji-32";
  std::string optimizer = "oadam";
  int peers = 4, rounds = 2000, dimension = 4096;
  int batch = 64, width = 64;
  double rate = 1e-3, noise = 1, heterogeneity = 1, ema = 0.99;
  bool by_kind = false;
};

absl::StatusOr<std::unique_ptr<Game>> MakeGame(const Settings& s, int rank,
                                               uint64_t seed) {
  if (s.game == "quadratic") {
    GOSSAMER_ASSIGN_OR_RETURN(
        std::unique_ptr<Game> game,
        QuadraticGame::Create({.dimension = s.dimension,
                               .noise = s.noise / std::sqrt(s.batch),
                               .heterogeneity = s.heterogeneity},
                              rank, s.peers, seed));
    return game;
  }
  GanSpec gan;
  gan.width = s.width;
  gan.batch = s.batch;
  if (s.game == "gaussian") {
    gan.model = "mlp";
    gan.latent = 16;
    gan.gradient_penalty = 1;
    gan.data.name = "gaussian-mixture";
  } else {
    gan.data = {.path = s.data, .classes = {"face"}, .flip = true};
  }
  return MakeGan(gan, rank, s.peers, seed, /*threads=*/1);
}

// Segments that are averaged together, separately from the others.
struct Part {
  std::string kind;
  std::vector<Segment> segments;  // and their places in the whole vector
  std::unique_ptr<GradientFleet> fleet;
};

std::string KindOf(const Segment& segment) {
  if (segment.shape.size() < 2 || segment.extent.size < kMinQuantizedSize) {
    return "small";
  }
  return segment.shape.size() < 4 ? "dense" : "convolution";
}

// The ranks of one method.  Most methods treat every segment by itself, and so
// average the same with separate kinds or without.
class Ranks {
 public:
  using Vectors = GradientFleet::Vectors;

  Ranks(const std::string& method, const ParameterLayout& layout, int size,
        bool by_kind)
      : size_(size), mean_(layout.size()) {
    for (const Segment& s : layout.segments()) {
      PartOf(by_kind ? KindOf(s) : "all").segments.push_back(s);
    }
    for (Part& part : parts_) {
      part.fleet = std::make_unique<GradientFleet>(
          method, ParameterLayout(part.segments), size, "", MakeLearnedCoder);
    }
  }

  std::vector<float> Step(const Vectors& gradients) {
    for (Part& part : parts_) {
      Vectors own(gradients.size());
      for (size_t r = 0; r < own.size(); ++r) {
        for (const Segment& s : part.segments) {
          const auto g =
              std::span(gradients[r]).subspan(s.extent.offset, s.extent.size);
          own[r].insert(own[r].end(), g.begin(), g.end());
        }
      }
      const std::vector<float> mean = part.fleet->Step(own);
      auto at = mean.begin();
      for (const Segment& s : part.segments) {
        const auto size = static_cast<ptrdiff_t>(s.extent.size);
        std::copy(at, at + size,
                  mean_.begin() + static_cast<ptrdiff_t>(s.extent.offset));
        at += size;
      }
    }
    return mean_;
  }

  // Returns whether the next step has dense gradients.
  bool Dense() const {
    return std::ranges::all_of(parts_, [this](const Part& part) {
      const AllReduceForm form =
          part.fleet->rank(0).Form(part.fleet->step(), size_);
      size_t n = 0;
      for (const Segment& s : part.segments) n += s.extent.size;
      return form.floats == n && form.leader < 0 && form.payloads == nullptr;
    });
  }

  // Returns the bytes that a rank has sent so far, by part.
  std::vector<double> Sent() const {
    std::vector<double> sent;
    for (const Part& part : parts_) {
      double bytes = 0;
      for (int r = 0; r < size_; ++r) {
        bytes += static_cast<double>(part.fleet->bytes_sent(r)) / size_;
      }
      sent.push_back(bytes);
    }
    return sent;
  }

  // Returns the bytes of floats in the messages of the same all-reduce, by
  // part.
  std::vector<double> Floats() const {
    std::vector<double> floats;
    for (const Part& part : parts_) {
      double n = 0;
      for (const Segment& s : part.segments) {
        n += static_cast<double>(s.extent.size);
      }
      const double copies = part.fleet->rank(0).summable() ? 2.0 / size_ : 1.0;
      floats.push_back(sizeof(float) * n * copies * (size_ - 1));
    }
    return floats;
  }

  const std::vector<Part>& parts() const { return parts_; }

 private:
  Part& PartOf(const std::string& kind) {
    const auto it = std::ranges::find(parts_, kind, &Part::kind);
    return it != parts_.end() ? *it : parts_.emplace_back(Part{kind, {}, {}});
  }

  const int size_;
  std::vector<Part> parts_;
  std::vector<float> mean_;
};

struct Kind {
  std::string name;
  double floats = 0, sent = 0;  // bytes of a rank and round
};

struct Result {
  double score = 0;
  // A rank's bytes in a round: over all rounds, after the dense gradients, and
  // over the later half.
  double all = 0, after = 0, later = 0;
  double share = 0;  // share of the gradient's floats, in the later half
  double work = 0;   // share of the gradients' processor time
  std::vector<Kind> kinds;
};

// Returns the processor time of this thread, which does all the work.
double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The bytes sent when the rounds of dense gradients had ended, and when the
// later half began.
struct Sent {
  // Called before each round.  A method that is dense throughout has no start.
  void Note(int round, const Settings& s, const std::string& method,
            const Ranks& ranks) {
    if (round == dense_rounds && method != GradientCompressor::kDense &&
        ranks.Dense()) {
      ++dense_rounds;
    }
    if (round == dense_rounds) dense = ranks.Sent();
    if (round == std::max(s.rounds / 2, dense_rounds)) before = ranks.Sent();
  }

  int dense_rounds = 0;
  std::vector<double> dense, before;
};

void Count(const Settings& s, const Sent& then, const Ranks& ranks,
           Result& result) {
  const int later = s.rounds - std::max(s.rounds / 2, then.dense_rounds);
  const std::vector<double> sent = ranks.Sent(), floats = ranks.Floats();
  for (size_t p = 0; p < sent.size(); ++p) {
    result.all += sent[p] / s.rounds;
    result.after += (sent[p] - then.dense[p]) / (s.rounds - then.dense_rounds);
    const double bytes = (sent[p] - then.before[p]) / later;
    result.later += bytes;
    result.kinds.push_back({ranks.parts()[p].kind, floats[p], bytes});
  }
}

absl::StatusOr<Result> Train(const Settings& s, const std::string& method,
                             uint64_t seed) {
  std::vector<std::unique_ptr<Game>> games;
  std::vector<std::unique_ptr<LocalStep>> steps;
  LocalStepSpec spec;
  spec.generator = {.name = s.optimizer, .learning_rate = s.rate};
  spec.discriminator = spec.generator;
  spec.decay_from_round = static_cast<uint64_t>(s.rounds) / 2;
  spec.last_round = static_cast<uint64_t>(s.rounds);
  for (int r = 0; r < s.peers; ++r) {
    GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<Game> game, MakeGame(s, r, seed));
    games.push_back(std::move(game));
    GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<LocalStep> step,
                              LocalStep::Create(spec, games.back().get()));
    steps.push_back(std::move(step));
  }
  const ParameterLayout& layout = games[0]->layout();
  GOSSAMER_RETURN_IF_ERROR(GradientCompressor::Create(
                               method, layout, HostKernels(), MakeLearnedCoder)
                               .status());
  Ranks ranks(method, layout, s.peers, s.by_kind);
  const auto generator =
      games[0]->parameters().first(layout.extent(Player::kGenerator).size);
  std::vector<float> average(generator.begin(), generator.end());
  double computing = 0, averaging = 0;
  Sent sent;
  for (int round = 0; round < s.rounds; ++round) {
    sent.Note(round, s, method, ranks);
    const double start = CpuSeconds();
    const auto step = static_cast<uint64_t>(round);
    GradientFleet::Vectors gradients;
    for (int r = 0; r < s.peers; ++r) {
      GOSSAMER_RETURN_IF_ERROR(
          steps[r]->Gradient(step, RngKey(seed).Fold(r).Fold(step)).status());
      const auto g = games[r]->gradients();
      gradients.emplace_back(g.begin(), g.end());
    }
    const double computed = CpuSeconds();
    const std::vector<float> mean = ranks.Step(gradients);
    computing += computed - start;
    averaging += CpuSeconds() - computed;
    for (auto& local : steps) local->Apply(step, step + 1, mean);
    HostKernels().ema(static_cast<float>(1 - s.ema), generator, average);
  }
  if (sent.before.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(method, " has dense gradients in all rounds"));
  }
  Result result;
  // A moving average would hide the last point of a closed-form game.
  const bool closed = s.game == "quadratic";
  GOSSAMER_ASSIGN_OR_RETURN(
      result.score,
      games[0]->evaluator()->Score(closed ? generator : average, RngKey(7)));
  result.work = averaging / computing;
  Count(s, sent, ranks, result);
  result.share = result.later / (4.0 * static_cast<double>(layout.size()));
  return result;
}

// Prints, over all seeds, the scores with mean and deviation, and the mean of
// the rest.
void Print(const std::string& method, const std::vector<Result>& results) {
  const auto n = static_cast<double>(results.size());
  double sum = 0, squares = 0;
  std::vector<std::string> scores;
  Result mean;
  for (const Result& r : results) {
    sum += r.score;
    squares += r.score * r.score;
    scores.push_back(absl::StrFormat("%.4g", r.score));
    mean.all += r.all / n;
    mean.after += r.after / n;
    mean.later += r.later / n;
    mean.share += r.share / n;
    mean.work += r.work / n;
    mean.kinds.resize(r.kinds.size());
    for (size_t k = 0; k < r.kinds.size(); ++k) {
      mean.kinds[k].name = r.kinds[k].name;
      mean.kinds[k].floats = r.kinds[k].floats;
      mean.kinds[k].sent += r.kinds[k].sent / n;
    }
  }
  const double deviation =
      std::sqrt(std::max(0.0, squares - sum * sum / n) / std::max(1.0, n - 1));
  absl::PrintF(
      "| `%s` | %.4g ± %.2g (%s) | %.0f | %.0f | %.0f | %.4g | %.3g |\n",
      method, sum / n, deviation, absl::StrJoin(scores, ", "), mean.all,
      mean.after, mean.later, mean.share, mean.work);
  if (mean.kinds.size() > 1) {
    for (const Kind& kind : mean.kinds) {
      absl::PrintF("|   %s | 1/%.3g of floats | | | %.0f | | |\n", kind.name,
                   kind.floats / kind.sent, kind.sent);
    }
  }
  std::fflush(stdout);
}

int Main(const Settings& s) {
  absl::PrintF(
      "| method | score | bytes | after the start | later half | of 4n | time "
      "|\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const std::string& method : s.methods) {
    std::vector<Result> results;
    for (const uint64_t seed : s.seeds) {
      auto result = Train(s, method, seed);
      if (!result.ok()) {
        absl::FPrintF(stderr, "%s\n", result.status().ToString());
        return 1;
      }
      results.push_back(*std::move(result));
    }
    Print(method, results);
  }
  return 0;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::Settings s;
  gossamer::Command program(
      {.name = "gradient_quality_benchmark",
       .about = "Trains on compressed gradients in one process.",
       .run = [&] { return gossamer::Main(s); }});
  const auto add = [&program](const std::string& name,
                              gossamer::OptionTarget target) {
    program.AddOption(name, target, "", {.show_default = true});
  };
  program.AddOption("--method", &s.methods, "a mixing.gradient_codec",
                    {.required = true, .one_at_a_time = true});
  program.AddOption("--seeds", &s.seeds, "", {.delimiter = ','});
  program.AddOption(
      "--game", &s.game, "",
      {.show_default = true, .choices = {"gaussian", "quadratic", "emoji"}});
  add("--data", &s.data);
  add("--optimizer", &s.optimizer);
  add("--peers", &s.peers);
  add("--rounds", &s.rounds);
  program.AddOption("--by-kind", &s.by_kind,
                    "convolutions, dense layers and small segments apart");
  add("--dimension", &s.dimension);
  add("--batch", &s.batch);
  add("--width", &s.width);
  add("--rate", &s.rate);
  add("--noise", &s.noise);
  add("--heterogeneity", &s.heterogeneity);
  add("--ema", &s.ema);
  return program.Run(argc, argv);
}
