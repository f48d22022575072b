#include "tests/testing/serviced_fleet.h"

#include <algorithm>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/composition.h"
#include "tests/simulation/end_checks.h"

namespace gossamer {

using simulation::MakeGame;
using simulation::NetworkOf;
using simulation::Seat;
using simulation::ServiceOf;
using simulation::SimLife;

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
      codec_(*Codec::Create(scenario_.codec, MakeGame(scenario_, 0)->layout())),
      world_{scenario_,
             loop_,
             network_,
             service_,
             ledger_,
             codec_,
             disk_errors_,
             views_,
             calm_,
             given_,
             [this](const std::string& what) { Violation(what); },
             [this](PeerId, const std::string& what) { told_.push_back(what); },
             [](uint64_t) {}},
      seats_(static_cast<size_t>(scenario_.peers)) {
  const absl::Status started = service_.Start(/*old=*/false);
  if (!started.ok()) Violation(started.ToString());
  for (size_t i = 0; i < seats_.size(); ++i) {
    seats_[i].machine.id = {i + 1};
    if (i + static_cast<size_t>(scenario_.late) < seats_.size()) Join(i + 1);
  }
}

ServicedFleet::~ServicedFleet() {
  for (Seat& seat : seats_) seat.life.reset();
}

void ServicedFleet::Join(uint64_t id) {
  Seat& seat = seats_[id - 1];
  seat.life = std::make_unique<SimLife>(world_, seat.machine, /*resume=*/false);
}

void ServicedFleet::Restart(uint64_t id) {
  Seat& seat = seats_[id - 1];
  ledger_.Crash({id}, seat.life->number());
  seat.life.reset();
  seat.life = std::make_unique<SimLife>(world_, seat.machine, /*resume=*/true);
  seat.seen = 0;
}

void ServicedFleet::Violation(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void ServicedFleet::AfterEvent() {
  for (Seat& seat : seats_) {
    if (!seat.life) continue;
    const uint64_t runs = seat.life->loop().runs();
    if (runs != seat.seen) {
      seat.seen = runs;
      seat.life->Check();
    }
    if (!seat.life->ended()) continue;
    if (!seat.life->status().ok()) {
      Violation(absl::StrCat("peer ", seat.machine.id.value,
                             " ends with: ", seat.life->status().ToString()));
    }
    seat.life.reset();
    seat.ended = true;
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
  return service_.up() && AllJoined(seats_, *service_.fleet(), loop_.Now());
}

std::string ServicedFleet::Finish(absl::Duration limit) {
  if (!Until([this] { return AllEnded(seats_); }, limit)) {
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
  for (const Seat& seat : seats_) ids.insert(seat.machine.id);
  return ids;
}

std::pair<uint64_t, uint64_t> ServicedFleet::RoundsOf(
    const std::set<PeerId>& ids) const {
  std::pair<uint64_t, uint64_t> rounds = {UINT64_MAX, 0};
  for (const PeerId id : ids) {
    const Seat& seat = seats_[id.value - 1];
    const uint64_t round = seat.life ? seat.life->round() : 0;
    rounds.first = std::min(rounds.first, round);
    rounds.second = std::max(rounds.second, round);
  }
  return rounds;
}

std::vector<double> ServicedFleet::MeanOf(const std::set<PeerId>& ids) const {
  std::vector<double> mean;
  for (const PeerId id : ids) {
    const std::span<const float> x = seats_[id.value - 1].life->parameters();
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
    all.push_back(seats_[id.value - 1].life->parameters());
  }
  return simulation::ConsensusDistance(all);
}

int ServicedFleet::Count(const std::string& kind) const {
  return static_cast<int>(
      std::ranges::count_if(told_, [&](const std::string& line) {
        return absl::StrContains(line, absl::StrCat(": ", kind, ": "));
      }));
}

}  // namespace gossamer
