#include "tests/simulation/fault_plan.h"

namespace gossamer::simulation {
namespace {

// Returns a duration uniform in [low, high] intervals, by draw i.
absl::Duration Between(const FaultPlan& plan, int low, int high, RngKey draw,
                       uint64_t i) {
  return plan.interval * (low + (high - low) * draw.Uniform(i));
}

}  // namespace

FaultInjector::FaultInjector(VirtualLoop* loop, SimNetwork* network,
                             FaultPlan plan)
    : loop_(loop), network_(network), plan_(plan) {
  loop_.Post([this] { Tick(); });
}

void FaultInjector::Tick() {
  // Every draw has a key of its own: another number of peers or of faults does
  // not change the draws of the rest.
  const RngKey key = RngKey(plan_.seed).Fold("faults").Fold(tick_++);
  const bool links = plan_.break_rate > 0 || plan_.stall_rate > 0;
  // The pairs are listed only if a fault of links is wanted, since that costs
  // time with many peers.
  for (const auto& [a, b] : links ? network_->Pairs() : SimNetwork::PairSet()) {
    const RngKey draw = key.Fold("pair").Fold(a.value).Fold(b.value);
    if (draw.Uniform(0) < plan_.break_rate) Break(a, b, draw.Fold("break"));
    if (draw.Uniform(1) < plan_.stall_rate) Stall(a, b, draw.Fold("stall"));
  }
  for (PeerId peer : network_->Peers()) {
    const RngKey draw = key.Fold("peer").Fold(peer.value);
    if (draw.Uniform(0) >= plan_.freeze_rate) continue;
    ++freezes_;
    network_->Freeze(peer,
                     loop_.Now() + Between(plan_, plan_.shortest_freeze,
                                           plan_.longest_freeze, draw, 1));
  }
  loop_.RunAt(loop_.Now() + plan_.interval, [this] { Tick(); });
}

void FaultInjector::Break(PeerId a, PeerId b, RngKey draw) {
  ++breaks_;
  network_->Break(a, b, Between(plan_, 0, plan_.longest_closed, draw, 0));
}

void FaultInjector::Stall(PeerId a, PeerId b, RngKey draw) {
  ++stalls_;
  const absl::Time until = loop_.Now() + Between(plan_, plan_.shortest_stall,
                                                 plan_.longest_stall, draw, 0);
  const uint64_t ways = draw.Below(3, 1);  // one direction, the other, both
  if (ways != 1) network_->Stall(a, b, until);
  if (ways != 0) network_->Stall(b, a, until);
}

}  // namespace gossamer::simulation
