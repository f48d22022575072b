#include "tests/simulation/nccl_faults.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gossamer::simulation {
namespace {

constexpr int kVersion = 22809;
constexpr int kOlderVersion = 22703;
constexpr double kEdgesOfAPeer = 4;  // about

absl::Duration WayOf(const Scenario& s) {
  return s.link.latency * (1 + s.link.jitter);
}

absl::Duration DeadlineOf(const Scenario& s) {
  return absl::Seconds(1) + 4 * WayOf(s) + 4 * s.nccl.operation;
}

absl::Duration MakingOf(const Scenario& s) {
  return absl::Seconds(10) + 10 * s.interval();
}

// Few polls make a fast simulation.
absl::Duration PollOf(const Scenario& s) {
  return std::max(absl::Milliseconds(1), s.step_time / 10);
}

}  // namespace

void DrawNccl(Scenario& s, Draws d, bool always) {
  const bool uses = d.Chance(0.2) || always;
  NcclScenario& n = s.nccl;
  n.hosts = d.Of({1, 1, 2, 3});
  n.shared_gpu = d.Chance(0.2);
  n.other_version = d.Chance(0.2);
  n.operation = s.step_time * d.Of({0.001, 0.03, 0.3});
  const auto rate = [&d](double share, double low, double high) {
    return d.Chance(share) ? d.Between(low, high) : 0.0;
  };
  n.hang = rate(0.4, 0.0005, 0.01);
  n.error = rate(0.4, 0.0005, 0.01);
  n.slow = rate(0.4, 0.01, 0.1);
  n.making_fault = rate(0.2, 0.05, 0.3);
  n.connecting = s.interval() * d.Of({0.1, 1.0, 20.0});
  n.used = uses;
  if (!s.centralized()) return;
  // NCCL makes the means of dense gradients alone, which one baseline in eight
  // has.  The others keep their methods, unless all fleets are to use it.
  n.used = always;
  if (!always) return;
  s.gradient_codec = "dense-f32";
  // There is one operation a round, where edges have one each.
  n.hang *= kEdgesOfAPeer;
  n.error *= kEdgesOfAPeer;
  n.partial = rate(0.9, 0.05, 0.3);
  if (d.Chance(0.9)) {
    n.hosts = 1;
    n.shared_gpu = n.other_version = false;
  }
}

NcclPlace PlaceOf(const Scenario& s, PeerId peer) {
  const auto hosts = static_cast<uint64_t>(s.nccl.hosts);
  const bool last = peer.value == static_cast<uint64_t>(s.peers);
  NcclPlace place{absl::StrCat("host", peer.value % hosts),
                  absl::StrCat("gpu", peer.value), kVersion};
  // The last peer is on the GPU of the one before it on its host.
  if (last && s.nccl.shared_gpu && peer.value > hosts) {
    place.gpu = absl::StrCat("gpu", peer.value - hosts);
  }
  if (peer.value == 1 && s.nccl.other_version) place.version = kOlderVersion;
  return place;
}

FakeNcclOptions FakeNcclOf(const Scenario& s) {
  return {.seed = s.seed,
          .latency = s.nccl.operation,
          .making = s.interval(),
          .connecting = s.nccl.connecting,
          .hang = s.nccl.hang,
          .error = s.nccl.error,
          .slow = s.nccl.slow,
          .slow_factor = 20,
          .partial = s.nccl.partial,
          .torn = 0.5,
          .making_hang = s.nccl.making_fault / 3,
          .connecting_hang = s.nccl.making_fault / 3,
          .making_error = s.nccl.making_fault / 3};
}

NcclOptions NcclOptionsOf(const Scenario& s, PeerId self) {
  NcclOptions options{.self = self, .min_bytes = 1};
  options.deadline = DeadlineOf(s);
  options.offer_timeout = absl::Milliseconds(50) + 2 * WayOf(s);
  options.making = MakingOf(s);
  options.poll = PollOf(s);
  return options;
}

NcclSumOptions NcclSumOptionsOf(const Scenario& s, PeerId self) {
  return {.self = self,
          .deadline = DeadlineOf(s),
          .making = MakingOf(s),
          .poll = PollOf(s)};
}

}  // namespace gossamer::simulation
