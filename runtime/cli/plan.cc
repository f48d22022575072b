// gossamer plan: which ring order, graph, codec and overlap a network wants.

#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/base/status_macros.h"
#include "runtime/cli/command.h"
#include "runtime/cli/plan_check.h"
#include "runtime/cli/plan_input.h"
#include "runtime/cli/plan_report.h"
#include "runtime/plan/matrix_text.h"
#include "runtime/plan/planner.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(examples:
  gossamer plan --scenario deploy/lab/three_continents.textproto \
      --parameters 2258308 --step-time 40ms
  gossamer plan --matrix ours.txt --parameters 2258308 --step-time 40ms --json
  gossamer plan --scenario deploy/lab/wan_200ms_100mbit.textproto --peers 4 \
      --config deploy/configs/synthetic.textproto --check         # as root

A matrix file (gossamer measure makes one of a running fleet), ranks from 0 in
rows and columns, rates from row to column:
  names virginia frankfurt tokyo       # may be left out
  rtt_ms
    -  90 148
   90   - 228
  148 228   -
  mbit 100
A value after rtt_ms or mbit holds for all pairs; else rows follow.  mbit may
be unlimited.  Rates are of each pair and direction: peers do not share an
uplink over their links here.

Candidates are all graphs that the number of peers allows (the ring in its best
order and as numbered, torus, complete, permuted-ring, random-matching,
one-peer-exponential), five codecs, and overlaps 0 to 8.  First come those
within 3 % of the fastest, of these those within 3 % of the smallest consensus
distance, of these the one that sends least.

--check trains the recommendation, the same without overlap, and the default
configuration in the lab with steps of that length, in RUNS/plan-NETWORK/, and
prints predicted and measured rounds/s.

JSON keys: network, peers, hosts, parameters, step_seconds, warnings,
recommended (a candidate with configuration and reasons), candidates (the ten
best: name, graph, schedule, edges, codec, overlap_steps, gamma,
rounds_per_second, seconds_per_round, hidden, busy_seconds (of a round without a
network), exchange_seconds, bytes_per_round, consensus_distance, contraction), centralized (all_reduce, rounds_per_second),
sites (as mixing.sites takes them, where round trips show some, else ""),
checks (null, or a list of why, candidate, folder, measured_rounds_per_second,
error, measured_step_seconds, predicted_with_that_step, error_with_that_step,
measured_exchange_seconds, whole_run_rounds_per_second).)";

int RunPlan(const PlanOptions& options) {
  const absl::StatusOr<PlanInput> input = LoadPlanInput(options);
  if (!input.ok()) return Complain("plan", input.status());
  const absl::StatusOr<Plan> plan = MakePlan(input->request);
  if (!plan.ok()) return Complain("plan", plan.status());
  if (!options.json) std::cout << PlanText(*input, *plan) << std::flush;
  std::vector<PlanCheck> checks;
  if (options.check) {
    absl::StatusOr<std::vector<PlanCheck>> run =
        CheckPlan(options, *input, *plan);
    if (!run.ok()) return Complain("plan", run.status());
    checks = *std::move(run);
    if (!options.json)
      std::cout << ChecksText(checks, input->request.step_seconds);
  }
  if (options.json) {
    std::cout << PlanJson(*input, *plan, checks).dump(2) << "\n";
  }
  return kOk;
}

}  // namespace

void AddPlan(Command& program) {
  auto options = std::make_shared<PlanOptions>();
  Command& command = program.AddCommand(
      {.name = "plan",
       .about =
           "Say which ring order, graph, codec and overlap a network wants",
       .footer = kExamples,
       .run = [options] { return RunPlan(*options); }});
  command.AddOption("--scenario", &options->scenario,
                    "the network, as for gossamer lab", {.value_name = "FILE"});
  command.AddOption("--matrix", &options->matrix,
                    "the network, as round trips and rates of all pairs",
                    {.value_name = "FILE", .excludes = "--scenario"});
  command.AddOption("--parameters", &options->parameters,
                    "of generator and discriminator together",
                    {.positive = true});
  command.AddOption("--step-time", &options->step_time,
                    "of one step without any network, such as 40ms",
                    {.value_name = "TIME"});
  command.AddOption("--config", &options->config,
                    "take peers and seed from it, of a synthetic game also "
                    "parameters and step time",
                    {.value_name = "FILE"});
  command.AddOption("--set", &options->set, "change one field of --config",
                    {.value_name = "FIELD=VALUE", .one_at_a_time = true});
  command.AddOption("--peers", &options->peers,
                    "how many, where the scenario leaves it open; else the "
                    "first ones",
                    {.range = std::pair(2.0, double{kMostMatrixPeers})});
  command.AddOption("--codec-rate", &options->codec_rate,
                    "GB/s of memory that a codec reads and writes "
                    "(codec_benchmark measures it)",
                    {.show_default = true, .range = std::pair(0.01, 1e5)});
  command.AddOption("--check", &options->check,
                    "run some candidates in the lab; needs root");
  command.AddOption("--runs", &options->runs, "folder of the runs of --check",
                    {.show_default = true, .value_name = "DIR"});
  command.AddOption("--json", &options->json, "answer as JSON");
}

}  // namespace gossamer
