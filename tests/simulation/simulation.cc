#include "tests/simulation/simulation.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/simulation/balance.h"
#include "tests/simulation/composition.h"
#include "tests/simulation/end_checks.h"
#include "tests/simulation/nccl_faults.h"
#include "tests/simulation/simulation_run.h"

namespace gossamer::simulation {
namespace {

// Faults last for at most so many intervals, however slow they make the fleet.
// Every later phase must end within kPhaseTimeout and a number of its longest
// rounds.
constexpr int kLongestFaults = 400;
constexpr absl::Duration kPhaseTimeout = absl::Minutes(3);
constexpr uint64_t kRoundsToGather = 150;
constexpr uint64_t kRoundsToEnd = 10;

}  // namespace

Simulation::Simulation(const Scenario& scenario,
                       std::function<void(const std::string&)> trace)
    : scenario_(scenario),
      trace_(std::move(trace)),
      key_(RngKey(scenario.seed).Fold("simulation")),
      control_(&loop_),
      network_(&loop_, NetworkOf(scenario_)),
      service_(
          &loop_, ServiceOf(scenario_, &outcome_.faults),
          [this](const std::string& line) { Tell("service", line); },
          [this](const std::string& what) { Violation(what); }),
      nccl_(&loop_, FakeNcclOf(scenario_),
            [this](const FakeNccl::Circle& circle) { CheckCircle(circle); }),
      codec_(*Codec::Create(scenario_.codec, MakeGame(scenario_, 0)->layout())),
      disk_errors_{.write = scenario_.swarm.disk_error,
                   .read = scenario_.swarm.read_error,
                   .counts = &outcome_.faults},
      world_{scenario_,
             loop_,
             network_,
             service_,
             nccl_,
             ledger_,
             codec_,
             disk_errors_,
             views_,
             calm_,
             given_,
             outcome_.faults,
             [this](const std::string& what) { Violation(what); },
             [this](PeerId id, const std::string& what) {
               if (trace_) Tell(absl::StrCat("peer ", id.value), what);
             },
             [this](uint64_t value) { Note(value); }},
      hosts_(static_cast<size_t>(scenario_.peers)) {
  for (size_t i = 0; i < hosts_.size(); ++i) hosts_[i].machine->id = {i + 1};
  if (scenario_.swarm.fleet_stop) {
    stop_at_ = 5 + key_.Fold("stop").Below(scenario_.fault_rounds / 2, 0);
  }
}

Simulation::~Simulation() {
  swarm_.reset();
  for (SimHost& host : hosts_) {
    host.process.reset();
    host.older.process.reset();
  }
}

void Simulation::Tell(const std::string& who, const std::string& what) {
  if (!trace_) return;
  trace_(absl::StrFormat(
      "%9.3f %s: %s",
      absl::ToDoubleSeconds(loop_.Now() - absl::FromUnixSeconds(1'000'000'000)),
      who, what));
}

void Simulation::Violation(const std::string& what) {
  Tell("VIOLATION", what);
  if (!outcome_.violation.empty()) return;
  outcome_.violation = what;
  if (!trace_) return;
  service_.ReportMembers();
  for (const SimHost& host : hosts_) {
    if (host.process) host.process->ReportEdges();
  }
}

void Simulation::Enter(Phase phase, uint64_t rounds) {
  phase_ = phase;
  give_up_ = loop_.Now() + kPhaseTimeout + rounds * scenario_.LongestRound();
  Tell("fleet", absl::StrCat("phase ", static_cast<int>(phase), " at round ",
                             MaxRound(hosts_)));
}

// An operation whose agreement was lost with a connection may wait in a circle
// until the watchdog ends it.  Those that both ends have agreed on may not.
void Simulation::CheckCircle(const FakeNccl::Circle& circle) {
  std::string way;
  for (const FakeNccl::Wait& wait : circle) {
    const SimHost* who = nullptr;
    const SimHost* on = nullptr;
    for (const SimHost& host : hosts_) {
      if (!host.process) continue;
      if (host.process->gpu() == wait.who) who = &host;
      if (host.process->gpu() == wait.on) on = &host;
    }
    // Of means there is one operation at a time.
    if (who == nullptr || on == nullptr || on->process->nccl() == nullptr ||
        !on->process->nccl()->Expects(who->machine->id, wait.name)) {
      return;
    }
    absl::StrAppend(&way, who->machine->id.value, " for ",
                    on->machine->id.value, ", ");
  }
  Violation(absl::StrCat("operations of NCCL wait in a circle: ", way));
}

void Simulation::StopFaults() {
  swarm_.reset();
  nccl_.Calm();
  disk_errors_.write = disk_errors_.read = 0;
  if (!service_.up()) {
    const absl::Status started = service_.Start(/*old=*/false);
    if (!started.ok()) Violation(absl::StrCat("service: ", started.ToString()));
  }
  for (SimHost& host : hosts_) {
    if (host.process) host.process->crash().Disarm();
    if (host.down) StartProcess(host);
  }
}

void Simulation::Advance() {
  if (stopping_ == absl::InfiniteFuture() && phase_ <= Phase::kGathering &&
      std::ranges::any_of(hosts_, &SimHost::ended)) {
    stopping_ = loop_.Now();
  }
  if (stopping_ != absl::InfiniteFuture()) RestartStopped();
  switch (phase_) {
    case Phase::kFaults:
      if (stop_at_ != 0 && MaxRound(hosts_) >= stop_at_ && service_.up()) {
        stop_at_ = 0;
        Tell("fleet", "is asked to stop");
        service_.RequestStop();
      }
      if (MaxRound(hosts_) < scenario_.fault_rounds && loop_.Now() < give_up_)
        return;
      StopFaults();
      // The last view may begin many slow rounds from now.
      Enter(Phase::kGathering, kRoundsToGather);
      return;
    case Phase::kGathering:
      if (!AllJoined(hosts_, *service_.fleet(), loop_.Now())) break;
      calm_ = true;
      calm_from_ = MaxRound(hosts_);
      outcome_.distance_before = 0;
      SettleInCalm();
      // Slow peers may be far from the round at which faults were to end.
      Enter(Phase::kCalm, scenario_.ends_by_stop
                              ? scenario_.calm_rounds
                              : scenario_.rounds() + 1 - MinRound(hosts_));
      return;
    case Phase::kCalm:
      SettleInCalm();
      if (scenario_.ends_by_stop
              ? MinRound(hosts_) < calm_from_ + scenario_.calm_rounds
              : !AllEnded(hosts_)) {
        break;
      }
      if (scenario_.ends_by_stop) service_.RequestStop();
      Enter(Phase::kEnding, kRoundsToEnd);
      return;
    case Phase::kEnding:
      if (!AllEnded(hosts_)) break;
      CheckEnd();
      phase_ = Phase::kDone;
      return;
    case Phase::kDone:
      return;
  }
  if (loop_.Now() < give_up_) return;
  Violation(absl::StrCat("the fleet does not get on in phase ",
                         static_cast<int>(phase_),
                         "; rounds: ", DescribeRounds(hosts_)));
}

// Finds the largest distance of the calm's first quarter: the rest of the last
// gradients (the optimistic half, momentum) still moves parameters apart there.
void Simulation::SettleInCalm() {
  if (MinRound(hosts_) > calm_from_ + scenario_.calm_rounds / 4) return;
  std::vector<std::span<const float>> all;
  for (const SimHost& host : hosts_) {
    if (!host.process) return;
    all.push_back(host.process->parameters());
  }
  outcome_.distance_before =
      std::max(outcome_.distance_before, ConsensusDistance(all));
}

void Simulation::CheckEnd() {
  std::vector<std::span<const float>> all, brought;
  for (const SimHost& host : hosts_) {
    all.push_back(host.machine->last);
    brought.push_back(host.machine->brought);
    for (const float v : host.machine->last) Note(std::bit_cast<uint32_t>(v));
  }
  for (const std::string& wrong :
       {ledger_.Finish(), FindImbalance(brought, all),
        FindSilence(scenario_, service_.fleet()->record().view, ledger_,
                    calm_from_ + scenario_.calm_rounds / 2)}) {
    if (!wrong.empty()) Violation(wrong);
  }
  CheckDistance(all);
  CountMembers();
}

void Simulation::CountMembers() {
  const FleetCounts& counts = service_.fleet()->record().counts;
  Add({{"joins", counts.joins},
       {"leaves", counts.leaves},
       {"removals", counts.removals},
       {"returns", counts.returns}},
      outcome_.faults);
}

void Simulation::CheckDistance(const std::vector<std::span<const float>>& all) {
  outcome_.mixing = NameOf(MixingOf(scenario_, *codec_));
  outcome_.distance = ConsensusDistance(all);
  outcome_.distance_bound =
      DistanceBound(scenario_, *codec_, outcome_.distance_before, all);
  if (!(outcome_.distance <= outcome_.distance_bound)) {
    Violation(absl::StrFormat(
        "the consensus distance is %.3g, was %.3g before %d calm rounds, and "
        "may be %.3g",
        outcome_.distance, outcome_.distance_before, scenario_.calm_rounds,
        outcome_.distance_bound));
  }
}

Outcome Simulation::Run() {
  Tell("fleet", Describe(scenario_));
  const absl::Status up = service_.Start(/*old=*/false);
  if (!up.ok()) Violation(absl::StrCat("service: ", up.ToString()));
  for (SimHost& host : hosts_) {
    const bool joins = host.machine->id.value >
                       static_cast<uint64_t>(scenario_.peers - scenario_.late);
    const absl::Duration late =
        scenario_.interval() * (joins ? 20 : 1) *
        key_.Fold("start").Uniform(host.machine->id.value);
    control_.RunAt(control_.Now() + late,
                   [this, &host] { StartProcess(host); });
  }
  swarm_ = std::make_unique<FaultSwarm>(
      &loop_, &network_, &service_, scenario_,
      [this](PeerId id, const Death& death) { Kill(id, death); },
      [this](PeerId id) {
        if (hosts_[id.value - 1].process) hosts_[id.value - 1].process->Leave();
      },
      [this](PeerId id) {
        // One peer is spoilt at a time: a fleet without any parameters cannot
        // go on.
        const bool other = std::ranges::any_of(hosts_, [](const auto& host) {
          return host.process && host.process->spoilt();
        });
        const auto& process = hosts_[id.value - 1].process;
        if (!process || other) return;
        process->Spoil();
        outcome_.faults["spoils"] += process->spoilt();
      },
      [this](PeerId id) { StartTwin(id); },
      [this](const std::string& what) { Tell("swarm", what); },
      &outcome_.faults);
  const absl::Time begin = loop_.Now();
  give_up_ = begin + kLongestFaults * scenario_.interval();
  while (phase_ != Phase::kDone && outcome_.violation.empty()) {
    if (!loop_.Step()) Violation("nothing is left to happen");
    AfterEvent();
    Advance();
    if (outcome_.events > scenario_.max_events) {
      Violation(absl::StrCat("does not end within ", scenario_.max_events,
                             " events"));
    }
  }
  for (const SimHost& host : hosts_) {
    outcome_.peer_rounds += host.machine->rounds_done;
    outcome_.incarnations += *host.machine->incarnations;
  }
  outcome_.corrections = ledger_.corrections();
  outcome_.nccl_operations = nccl_.operations();
  Add(nccl_.faults(), outcome_.faults);
  outcome_.trace_hash = hash_;
  outcome_.virtual_seconds = absl::ToDoubleSeconds(loop_.Now() - begin);
  return outcome_;
}

Outcome Simulate(const Scenario& scenario,
                 std::function<void(const std::string&)> trace) {
  return Simulation(scenario, std::move(trace)).Run();
}

}  // namespace gossamer::simulation
