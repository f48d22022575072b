// gossamer graph: the mixing rate of a topology, in numbers and as a picture.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/cli/command.h"
#include "runtime/telemetry/graph_picture.h"
#include "topology/mixing_matrix.h"
#include "topology/mixing_schedule.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kExamples[] = R"(examples:
  gossamer graph --graph torus --peers 16
  gossamer graph --graph permuted-ring --peers 8 --round 3 --out ring.png
  gossamer graph --graph edge-list --edges "0-1 1-2 2-0" --peers 3 --json
  gossamer graph --graph locality-skewed --sites "paris:1-8 sydney:9-16" --peers 16

JSON keys: graph, peers, round, edges, least_degree,
most_degree, row_sum_error, column_sum_error, symmetry_error, smallest_entry,
spectral_gap (of this round's matrix; these five are null with more than 1024
peers), schedule_gap (of a fixed matrix that contracts as fast as the schedule),
contraction (of the squared distance to consensus, per round, expected),
contraction_standard_error, contraction_estimated (by Monte-Carlo),
rounds_to_tenth (of the squared distance; null if it never gets there), picture
(path or null).)";

struct Options {
  ScheduleSpec spec;
  int peers = 8;
  uint64_t seed = 1;
  uint64_t round = 1;
  std::string out;
  bool json = false;
};

struct Answer {
  std::optional<MixingReport> report;  // up to kMaxDense peers
  Contraction contraction;
  size_t edges = 0;
  int least_degree = 0;
  int most_degree = 0;

  // Returns the rounds in which the squared distance falls to a tenth; infinite
  // if it never does.
  double RoundsToTenth() const {
    // One round is enough; the logarithm would be of zero.
    if (contraction.factor < 1e-12) return 1;
    if (contraction.factor > 1 - 1e-12) return INFINITY;
    return std::log(0.1) / std::log(contraction.factor);
  }
};

absl::StatusOr<Answer> Analyze(const Options& options) {
  GOSSAMER_ASSIGN_OR_RETURN(
      const std::unique_ptr<MixingSchedule> schedule,
      MakeSchedule(options.spec, options.peers, options.seed));
  Answer answer{.report = {}, .contraction = ExpectedContraction(*schedule)};
  answer.least_degree = options.peers;
  for (int rank = 0; rank < options.peers; ++rank) {
    const int degree =
        static_cast<int>(schedule->Row(rank, options.round).neighbors.size());
    answer.least_degree = std::min(answer.least_degree, degree);
    answer.most_degree = std::max(answer.most_degree, degree);
    answer.edges += static_cast<size_t>(degree);
  }
  answer.edges /= 2;  // each was counted at both ends
  if (options.peers > kMaxDense) {
    if (options.out.empty()) return answer;
    return absl::InvalidArgumentError(absl::StrCat(
        "--out: a picture has at most ", kMaxDense,
        " peers; leave it out for the numbers, or draw a smaller graph"));
  }
  const MixingMatrix w = MatrixOfRound(*schedule, options.round);
  GOSSAMER_RETURN_IF_ERROR(CheckMixingMatrix(w));
  answer.report = Analyze(w);
  // A matrix of one round says little of a time-varying graph: the gap is then
  // that of the expected contraction.  Its peers are drawn on a circle: no
  // shape suits the edges of all rounds.
  const bool changes = IsTimeVarying(options.spec.graph);
  if (!options.out.empty()) {
    GOSSAMER_RETURN_IF_ERROR(DrawMixing(
        w, LayOut(changes ? "ring" : options.spec.graph, w),
        absl::StrFormat("%s of %d%s, gap %.3g", options.spec.graph,
                        options.peers,
                        changes ? absl::StrCat(", round ", options.round) : "",
                        answer.contraction.gap()),
        options.out));
  }
  return answer;
}

void PrintText(const Options& options, const Answer& a) {
  const bool changes = IsTimeVarying(options.spec.graph);
  absl::PrintF("graph         %s of %d peers, %d edges, degrees %d to %d%s\n",
               options.spec.graph, options.peers, a.edges, a.least_degree,
               a.most_degree,
               changes ? absl::StrCat(" in round ", options.round) : "");
  if (const auto& r = a.report) {
    absl::PrintF(
        "W             row and column sums within %.1e of 1, symmetric "
        "within %.1e\n",
        std::max(r->row_sum_error, r->column_sum_error), r->symmetry_error);
  }
  // The matrix of one round of disjoint pairs has no gap of its own.
  absl::PrintF("spectral gap  %.6g%s\n", a.contraction.gap(),
               changes ? ", of a fixed W that contracts as fast" : "");
  absl::PrintF("contraction   %.6g%s of the squared distance, per round\n",
               a.contraction.factor,
               a.contraction.estimated
                   ? absl::StrFormat(" +- %.1g", a.contraction.standard_error)
                   : "");
  absl::PrintF("a tenth of it after %.3g rounds\n", a.RoundsToTenth());
  if (!options.out.empty()) absl::PrintF("picture       %s\n", options.out);
}

void PrintJson(const Options& options, const Answer& a) {
  const double tenth = a.RoundsToTenth();
  const auto of_matrix = [&a](double MixingReport::*number) {
    return a.report ? Json((*a.report).*number) : Json();
  };
  Json json = {{"graph", options.spec.graph},
               {"peers", options.peers},
               {"round", options.round},
               {"edges", a.edges},
               {"least_degree", a.least_degree},
               {"most_degree", a.most_degree},
               {"row_sum_error", of_matrix(&MixingReport::row_sum_error)},
               {"column_sum_error", of_matrix(&MixingReport::column_sum_error)},
               {"symmetry_error", of_matrix(&MixingReport::symmetry_error)},
               {"smallest_entry", of_matrix(&MixingReport::smallest_entry)},
               {"spectral_gap", of_matrix(&MixingReport::spectral_gap)},
               {"schedule_gap", a.contraction.gap()},
               {"contraction", a.contraction.factor},
               {"contraction_standard_error", a.contraction.standard_error},
               {"contraction_estimated", a.contraction.estimated}};
  // JSON has no infinity.
  json["rounds_to_tenth"] = std::isfinite(tenth) ? Json(tenth) : Json();
  json["picture"] = options.out.empty() ? Json() : Json(options.out);
  std::cout << json.dump(2) << "\n";
}

int RunGraph(const Options& options) {
  const absl::StatusOr<Answer> answer = Analyze(options);
  if (!answer.ok()) return PrintError("graph", answer.status());
  if (options.json) {
    PrintJson(options, *answer);
  } else {
    PrintText(options, *answer);
  }
  return kOk;
}

}  // namespace

void AddGraph(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command =
      program.AddCommand({.name = "graph",
                          .about = "Say how fast a graph mixes, and draw it",
                          .footer = kExamples,
                          .run = [options] { return RunGraph(*options); }});
  const OptionRules shown = {.show_default = true};
  ScheduleSpec& spec = options->spec;
  const std::vector<std::string> graphs(GraphNames().begin(),
                                        GraphNames().end());
  command.AddOption("--graph", &spec.graph, absl::StrJoin(graphs, ", "), shown);
  command.AddOption("--degree", &spec.degree, "of a random-regular graph",
                    shown);
  command.AddOption("--edge-probability", &spec.edge_probability,
                    "of erdos-renyi", shown);
  command.AddOption("--edges", &spec.edges,
                    "of an edge-list, as \"0-1 1-2:0.3\"");
  command.AddOption("--sites", &spec.sites,
                    "of locality-skewed, as \"paris:1-8 sydney:9-16\"");
  command.AddOption("--variance-budget", &spec.variance_budget,
                    "of locality-skewed: more is less traffic between sites",
                    shown);
  command.AddOption("--peers", &options->peers, "how many", shown);
  command.AddOption("--seed", &options->seed, "of what is random", shown);
  command.AddOption("--round", &options->round, "which matrix to look at",
                    shown);
  command.AddOption("--out", &options->out, "draw graph and matrix",
                    {.value_name = "PNG"});
  command.AddOption("--json", &options->json, "answer as JSON");
}

}  // namespace gossamer
