#include "tests/simulation/fault_swarm.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gossamer::simulation {
namespace {

// A peer dies within its next effects, which is a round or two.
constexpr uint64_t kMaxEffects = 60;
constexpr int kStorm = 12;  // intervals
constexpr double kStormDeaths = 0.15;
constexpr int kStormDowntime = 2;

}  // namespace

FaultSwarm::FaultSwarm(VirtualLoop* loop, SimNetwork* network,
                       SimService* service, const Scenario& scenario, Kill kill,
                       Act leave, Act spoil, Act twin, Tell tell,
                       FaultCounts* counts)
    : loop_(loop),
      network_(network),
      service_(service),
      scenario_(scenario),
      kill_(std::move(kill)),
      leave_(std::move(leave)),
      spoil_(std::move(spoil)),
      twin_(std::move(twin)),
      tell_(std::move(tell)),
      counts_(*counts),
      key_(RngKey(scenario.seed).Fold("swarm")),
      links_(loop, network, scenario.swarm.links) {
  network_->SetChaos(scenario_.swarm.chaos);
  service_->SetLoss(scenario_.swarm.control_loss);
  service_->SetDiskError(scenario_.swarm.service_disk_error);
  loop_.RunAt(loop_.Now() + scenario_.interval(), [this] { Tick(); });
}

FaultSwarm::~FaultSwarm() {
  Add({{"breaks", links_.breaks()},
       {"stalls", links_.stalls()},
       {"freezes", links_.freezes()},
       {"lost_frames", network_->chaos_seen().lost},
       {"repeated_frames", network_->chaos_seen().duplicated},
       {"reordered_frames", network_->chaos_seen().reordered}},
      counts_);
  network_->Heal();
  network_->SetChaos({});
  service_->SetLoss(0);
  service_->Cut({}, {});
  service_->SetDiskError(0);
  // A frame that was lost on a living connection is resent on the next
  // connection only (PROTOCOL.md 8), so all connections break once.
  const SimChaos& chaos = scenario_.swarm.chaos;
  if (chaos.lose > 0 || chaos.reorder > 0) {
    for (const auto& [a, b] : network_->Pairs()) network_->Break(a, b);
  }
}

absl::Duration FaultSwarm::Intervals(int most, RngKey draw) const {
  return scenario_.interval() * (most * draw.Uniform(0));
}

void FaultSwarm::Tick() {
  const RngKey draw = key_.Fold(tick_++);
  TickLinks(draw.Fold("links"));
  TickPeers(draw.Fold("peers"));
  TickService(draw.Fold("service"));
  loop_.RunAt(loop_.Now() + scenario_.interval(), [this] { Tick(); });
}

void FaultSwarm::TickLinks(RngKey draw) {
  const Swarm& f = scenario_.swarm;
  if (f.flapping > 0 && tick_ % static_cast<uint64_t>(f.flapping) == 0) {
    const auto pairs = network_->Pairs();
    if (!pairs.empty()) {
      const auto& [a, b] = *std::next(
          pairs.begin(), static_cast<int64_t>(key_.Below(pairs.size(), 0)));
      network_->Break(a, b);
      ++counts_["flaps"];
    }
  }
  if (partitioned_ || draw.Uniform(0) >= f.partition_rate) return;
  std::set<PeerId> side;
  for (int i = 1; i <= scenario_.peers; ++i) {
    const auto id = static_cast<uint64_t>(i);
    if (draw.Fold("side").Uniform(id) < 0.5) side.insert({id});
  }
  const bool one_way = draw.Fold("way").Uniform(0) < 0.3;
  tell_(absl::StrCat("partition: ", side.size(), " of ", scenario_.peers,
                     one_way ? " are not heard" : ""));
  ++counts_[one_way ? "one_way_partitions" : "partitions"];
  network_->Partition(std::move(side), one_way);
  partitioned_ = true;
  loop_.RunAt(loop_.Now() + Intervals(f.longest_partition, draw.Fold("long")),
              [this] {
                network_->Heal();
                partitioned_ = false;
              });
}

void FaultSwarm::TickPeers(RngKey draw) {
  const Swarm& f = scenario_.swarm;
  const bool outage = draw.Uniform(0) < f.outage_rate;
  if (draw.Fold("storm").Uniform(0) < f.storm_rate) {
    tell_("a storm of views");
    storm_left_ = kStorm;
    ++counts_["storms"];
  }
  counts_["outages"] += outage;
  const bool storm = storm_left_ > 0 && storm_left_-- > 0;
  for (int i = 1; i <= scenario_.peers; ++i) {
    const auto id = static_cast<uint64_t>(i);
    const RngKey own = draw.Fold(id);
    if (own.Fold("leave").Uniform(0) < f.leave_rate) leave_({id});
    if (own.Fold("twin").Uniform(0) < f.twin_rate) twin_({id});
    if (own.Fold("spoil").Uniform(0) < f.spoil_rate) spoil_({id});
    if (storm && own.Fold("storm").Uniform(0) < kStormDeaths) {
      kill_({id}, {.effects = own.Below(kMaxEffects, 1),
                   .downtime = Intervals(kStormDowntime, own.Fold("down"))});
    }
    if (!outage && own.Uniform(0) >= f.crash_rate) continue;
    kill_({id}, {.effects = outage ? 0 : own.Below(kMaxEffects, 1),
                 .downtime = Intervals(f.longest_downtime, own.Fold("down")),
                 .power_loss = (outage ? draw : own).Uniform(2) < f.power_loss,
                 .new_disk = !outage && own.Uniform(3) < f.new_disk});
  }
}

void FaultSwarm::TickService(RngKey draw) {
  const Swarm& f = scenario_.swarm;
  CutFromService(draw.Fold("cut"));
  if (draw.Uniform(0) < 0.05) service_->BackUp();
  if (!service_->up() || draw.Uniform(1) >= f.service_crash_rate) return;
  tell_("the service dies");
  ++counts_["service_deaths"];
  service_->Crash();
  const bool old = draw.Uniform(2) < f.service_old_disk;
  if (draw.Fold("lost").Uniform(0) < f.service_lost_disk) service_->LoseDisk();
  loop_.RunAt(
      loop_.Now() + Intervals(f.longest_service_downtime, draw.Fold("down")),
      [this, old] {
        if (!service_->up() && service_->Start(old).ok()) {
          tell_("the service is back");
        }
      });
}

void FaultSwarm::CutFromService(RngKey draw) {
  const Swarm& f = scenario_.swarm;
  if (service_cut_ || draw.Uniform(0) >= f.service_cut_rate) return;
  const uint64_t way = draw.Below(3, 1);  // one, the other, both
  std::set<PeerId> calls, answers;
  for (int i = 1; i <= scenario_.peers; ++i) {
    const auto id = static_cast<uint64_t>(i);
    if (draw.Fold("who").Uniform(id) >= 0.5) continue;
    if (way != 1) calls.insert({id});
    if (way != 0) answers.insert({id});
  }
  tell_(absl::StrCat("the service is cut off: ", calls.size(),
                     " are not heard, ", answers.size(), " hear nothing"));
  ++counts_["service_cuts"];
  service_->Cut(std::move(calls), std::move(answers));
  service_cut_ = true;
  loop_.RunAt(loop_.Now() + Intervals(f.longest_service_cut, draw.Fold("long")),
              [this] {
                service_->Cut({}, {});
                service_cut_ = false;
              });
}

}  // namespace gossamer::simulation
