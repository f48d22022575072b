#include "tests/testing/serviced_fleet.h"

#include <algorithm>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/composition.h"
#include "tests/simulation/end_checks.h"
#include "tests/simulation/nccl_faults.h"

namespace gossamer {

using simulation::MakeGame;
using simulation::NetworkOf;
using simulation::ServiceOf;
using simulation::SimHost;
using simulation::SimProcess;

simulation::Scenario UsualFleet(int peers) {
  simulation::Scenario s;
  s.peers = peers;
  s.schedule.graph = "permuted-ring";
  s.codec = "innov-int4:least=16";
  s.quantized = true;
  s.game = "quadratic";
  s.dimension = 16;
  s.optimizer = {.name = "oadam", .learning_rate = 1e-2};
  s.checkpoint_every = 500;
  s.link.latency = absl::Milliseconds(5);
  s.step_jitter = 0.1;
  s.heartbeat = absl::Seconds(1);
  s.lease = absl::Seconds(4);
  s.suspect_after = absl::Seconds(2);
  return s;
}

ServicedFleet::ServicedFleet(simulation::Scenario scenario)
    : scenario_(std::move(scenario)),
      network_(&loop_, NetworkOf(scenario_)),
      service_(
          &loop_, ServiceOf(scenario_), [](const std::string&) {},
          [this](const std::string& what) { Violation(what); }),
      nccl_(&loop_, FakeNcclOf(scenario_),
            [this](const FakeNccl::Circle&) {
              Violation("operations of NCCL wait for each other in a circle");
            }),
      codec_(*Codec::Create(scenario_.codec, MakeGame(scenario_, 0)->layout())),
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
             counts_,
             [this](const std::string& what) { Violation(what); },
             [this](PeerId, const std::string& what) { told_.push_back(what); },
             [](uint64_t) {}},
      hosts_(static_cast<size_t>(scenario_.peers)) {
  const absl::Status started = service_.Start(/*old=*/false);
  if (!started.ok()) Violation(started.ToString());
  for (size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].machine->id = {i + 1};
    if (i + static_cast<size_t>(scenario_.late) < hosts_.size()) Join(i + 1);
  }
}

ServicedFleet::~ServicedFleet() {
  for (SimHost& host : hosts_) host.process.reset();
}

void ServicedFleet::Join(uint64_t id) {
  SimHost& host = hosts_[id - 1];
  host.process =
      std::make_unique<SimProcess>(world_, *host.machine, /*resume=*/false);
}

void ServicedFleet::Restart(uint64_t id) {
  SimHost& host = hosts_[id - 1];
  ledger_.Crash({id}, host.process->number());
  host.process.reset();
  host.process =
      std::make_unique<SimProcess>(world_, *host.machine, /*resume=*/true);
  host.seen = 0;
}

void ServicedFleet::Violation(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void ServicedFleet::AfterEvent() {
  for (SimHost& host : hosts_) {
    if (!host.process) continue;
    const uint64_t runs = host.process->loop().runs();
    if (runs != host.seen) {
      host.seen = runs;
      host.process->Check();
    }
    if (!host.process->ended()) continue;
    if (!host.process->status().ok()) {
      Violation(absl::StrCat("peer ", host.machine->id.value, " ends with: ",
                             host.process->status().ToString()));
    }
    host.process.reset();
    host.ended = true;
  }
}

bool ServicedFleet::Until(const std::function<bool()>& holds,
                          absl::Duration limit) {
  const absl::Time end = loop_.Now() + limit;
  while (violation_.empty() && !holds()) {
    if (loop_.Now() > end || !loop_.Step()) return false;
    AfterEvent();
  }
  return violation_.empty();
}

bool ServicedFleet::Together() const {
  return service_.up() && AllJoined(hosts_, *service_.fleet(), loop_.Now());
}

std::string ServicedFleet::Finish(absl::Duration limit) {
  if (!Until([this] { return AllEnded(hosts_); }, limit)) {
    return violation_.empty() ? "not everybody has ended" : violation_;
  }
  return ledger_.Finish();
}

std::string ServicedFleet::Stop() {
  service_.RequestStop();
  return Finish(absl::Minutes(3));
}

std::set<PeerId> ServicedFleet::Everybody() const {
  std::set<PeerId> ids;
  for (const SimHost& host : hosts_) ids.insert(host.machine->id);
  return ids;
}

std::pair<uint64_t, uint64_t> ServicedFleet::RoundsOf(
    const std::set<PeerId>& ids) const {
  std::pair<uint64_t, uint64_t> rounds = {UINT64_MAX, 0};
  for (const PeerId id : ids) {
    const SimHost& host = hosts_[id.value - 1];
    const uint64_t round = host.process ? host.process->round() : 0;
    rounds.first = std::min(rounds.first, round);
    rounds.second = std::max(rounds.second, round);
  }
  return rounds;
}

std::vector<double> ServicedFleet::MeanOf(const std::set<PeerId>& ids) const {
  std::vector<double> mean;
  for (const PeerId id : ids) {
    const std::span<const float> x = hosts_[id.value - 1].process->parameters();
    mean.resize(x.size());
    for (size_t k = 0; k < x.size(); ++k) {
      mean[k] += x[k] / static_cast<double>(ids.size());
    }
  }
  return mean;
}

double ServicedFleet::ConsensusDistance(const std::set<PeerId>& ids) const {
  std::vector<std::span<const float>> all;
  for (const PeerId id : ids) {
    all.push_back(hosts_[id.value - 1].process->parameters());
  }
  return simulation::ConsensusDistance(all);
}

int ServicedFleet::Count(const std::string& kind) const {
  return CountText(absl::StrCat(": ", kind, ": "));
}

int ServicedFleet::CountText(const std::string& words) const {
  return static_cast<int>(std::ranges::count_if(
      told_,
      [&](const std::string& line) { return absl::StrContains(line, words); }));
}

}  // namespace gossamer
