#include "runtime/sim/rehearsal.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/service/options.h"

namespace gossamer {
namespace {

// The bytes of IPv4, TCP and timestamps in each packet of the lab: a link's
// rate counts whole packets.
constexpr double kHeaderBytes = 52;

simulation::SimServiceOptions ServiceOf(const RehearsalSpec& spec) {
  simulation::SimServiceOptions options;
  options.fleet = FleetOptionsOf(spec.config);
  options.seed = spec.config.seed();
  // It is on the first host; the farthest peer sets the pace.
  Nanos longest = 0;
  for (const auto& row : spec.scenario.links) {
    longest = std::max(longest, row[0].delay);
  }
  options.latency = absl::Nanoseconds(longest);
  return options;
}

}  // namespace

Rehearsal::Rehearsal(RehearsalSpec spec)
    : spec_(std::move(spec)),
      begin_(loop_.Now()),
      network_(&loop_, {.seed = spec_.scenario.seed}),
      service_(&loop_, ServiceOf(spec_), [](const std::string&) {}),
      outages_(&loop_) {}

Rehearsal::~Rehearsal() = default;

absl::StatusOr<std::unique_ptr<Rehearsal>> Rehearsal::Create(
    RehearsalSpec spec) {
  const size_t size = spec.config.peers();
  if (spec.scenario.hosts.size() < size) {
    return absl::InvalidArgumentError(
        absl::StrCat("network \"", spec.scenario.name, "\" has ",
                     spec.scenario.hosts.size(), " hosts for ", size,
                     " peers; take a larger one, or fewer with --set peers="));
  }
  std::unique_ptr<Rehearsal> made(new Rehearsal(std::move(spec)));
  // The service comes first: peers register as soon as the loop runs.
  GOSSAMER_RETURN_IF_ERROR(made->service_.Start(/*old=*/false));
  for (int from = 0; from < static_cast<int>(size); ++from) {
    made->network_.SetUplink(
        RehearsedPeer::IdOf(from),
        made->PayloadRate(made->spec_.scenario.hosts[from].uplink));
    for (int to = 0; to < static_cast<int>(size); ++to) {
      if (from != to) made->Connect(from, to);
    }
  }
  for (int rank = 0; rank < static_cast<int>(size); ++rank) {
    const RehearsalSpec& s = made->spec_;
    GOSSAMER_ASSIGN_OR_RETURN(
        auto peer,
        RehearsedPeer::Create(
            {.config = s.config,
             .rank = rank,
             .step_time =
                 [&s, rank](uint64_t call) { return s.step_time(rank, call); },
             .bytes_per_second = s.bytes_per_second,
             .sink = s.sink(rank)},
            &made->loop_, made->network_, made->service_));
    made->peers_.push_back(std::move(peer));
  }
  return made;
}

// Frames are payload: the rest of each packet is headers.
double Rehearsal::PayloadRate(uint64_t bytes_per_second) const {
  return (spec_.scenario.mtu - kHeaderBytes) / spec_.scenario.mtu *
         static_cast<double>(bytes_per_second);
}

void Rehearsal::Connect(int from, int to) {
  const LinkSpec& link = spec_.scenario.links[from][to];
  const auto delay = static_cast<double>(link.delay);
  network_.SetLink(
      RehearsedPeer::IdOf(from), RehearsedPeer::IdOf(to),
      {.latency = absl::Nanoseconds(link.delay),
       .jitter = delay > 0 ? static_cast<double>(link.jitter) / delay : 0,
       .bytes_per_second = PayloadRate(link.bytes_per_second)});
  Outages(from, to);
}

// TCP holds on to what an outage keeps back, so a link that is down delays.
void Rehearsal::Outages(int from, int to) {
  for (const Outage& outage : spec_.scenario.links[from][to].outages) {
    const absl::Time at = begin_ + absl::Nanoseconds(outage.from);
    struct Again {
      Rehearsal* self;
      PeerId from, to;
      absl::Duration length, every;
      void operator()(absl::Time begin) const {
        self->outages_.RunAt(begin, [again = *this, begin] {
          again.self->network_.Stall(again.from, again.to,
                                     begin + again.length);
          // Each outage sets the next one, so a long run keeps no list.
          if (again.every > absl::ZeroDuration()) again(begin + again.every);
        });
      }
    };
    Again{this, RehearsedPeer::IdOf(from), RehearsedPeer::IdOf(to),
          absl::Nanoseconds(outage.to - outage.from),
          absl::Nanoseconds(outage.every)}(at);
  }
}

bool Rehearsal::done() const {
  return std::ranges::all_of(peers_, [](const auto& p) { return p->ended(); });
}

absl::Status Rehearsal::Run(absl::FunctionRef<bool()> pause) {
  while (!done()) {
    if (pause()) return absl::OkStatus();
    // The service's tick never ends, so an empty queue is an error of the
    // rehearsal.
    if (!loop_.Step()) {
      return absl::DeadlineExceededError(
          "nothing is left to happen, and peers have not ended");
    }
    for (const auto& peer : peers_) {
      if (peer->ended()) GOSSAMER_RETURN_IF_ERROR(peer->status());
    }
  }
  return absl::OkStatus();
}

FleetSnapshot Rehearsal::Snapshot() const {
  return service_.fleet()->Snapshot(loop_.Now());
}

// Returns the mean over peers of the squared distance from their mean, which is
// exact where the service has an estimate by sketches: all parameters are in
// this process.
double Rehearsal::ConsensusDistance() const {
  std::vector<std::span<const float>> all;
  for (const auto& peer : peers_) all.push_back(peer->parameters());
  const auto count = static_cast<double>(all.size());
  double distance = 0;
  for (size_t k = 0; k < all[0].size(); ++k) {
    double mean = 0;
    // Sums are in double, coordinate by coordinate: no vector of means is kept.
    for (const std::span<const float> x : all) mean += x[k];
    mean /= count;
    for (const std::span<const float> x : all) {
      distance += (x[k] - mean) * (x[k] - mean);
    }
  }
  return distance / count;
}

}  // namespace gossamer
