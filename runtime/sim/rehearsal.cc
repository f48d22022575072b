#include "runtime/sim/rehearsal.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/config/run_config.h"
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
  for (size_t host = 1; host < spec.scenario.hosts.size(); ++host) {
    longest = std::max(longest, spec.scenario.links.At(host, 0).delay);
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
  }
  made->network_.SetLinks(
      [p = made.get()](PeerId from, PeerId to) { return p->LinkOf(from, to); });
  const RehearsalSpec& s = made->spec_;
  std::unique_ptr<MixingSchedule> schedule;
  if (!IsCentralized(s.config)) {
    GOSSAMER_ASSIGN_OR_RETURN(
        schedule, MakeSchedule(ScheduleSpecOf(s.config.mixing()),
                               static_cast<int>(size), s.config.seed()));
  }
  for (int rank = 0; rank < static_cast<int>(size); ++rank) {
    GOSSAMER_ASSIGN_OR_RETURN(
        auto peer,
        RehearsedPeer::Create(
            {.config = s.config,
             .rank = rank,
             .step_time =
                 [&s, rank](uint64_t call) { return s.step_time(rank, call); },
             .bytes_per_second = s.bytes_per_second,
             .sink = s.sink(rank),
             .edges = schedule == nullptr
                          ? 0
                          : schedule->Row(rank, 1).neighbors.size(),
             .read_view =
                 [p = made.get()](const auto& answer, const ToldView& base) {
                   return p->Read(answer, base);
                 },
             .make_schedule =
                 [p = made.get()](const View& view) {
                   return p->ScheduleOf(view);
                 },
             .on_end =
                 [p = made.get()](const RehearsedPeer& peer) {
                   ++p->ended_;
                   p->failed_.Update(peer.status());
                 }},
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

// Asked for when something is first sent there: of ten thousand peers few are
// neighbours.
SimLink Rehearsal::LinkOf(PeerId from, PeerId to) {
  const LinkSpec& link = spec_.scenario.links.At(from.value - 1, to.value - 1);
  for (const Outage& outage : link.outages) Outages(from, to, outage);
  const auto delay = static_cast<double>(link.delay);
  return {.latency = absl::Nanoseconds(link.delay),
          .jitter = delay > 0 ? static_cast<double>(link.jitter) / delay : 0,
          .bytes_per_second = PayloadRate(link.bytes_per_second)};
}

// TCP holds on to what an outage keeps back, so a link that is down delays.
void Rehearsal::Outages(PeerId from, PeerId to, const Outage& outage) {
  struct Again {
    Rehearsal* self;
    PeerId from, to;
    absl::Duration length, every;
    void operator()(absl::Time begin) const {
      self->outages_.RunAt(begin, [again = *this, begin] {
        again.self->network_.Stall(again.from, again.to, begin + again.length);
        // Each outage sets the next one, so a long run keeps no list.
        if (again.every > absl::ZeroDuration()) again(begin + again.every);
      });
    }
  };
  Again{
      this, from, to, absl::Nanoseconds(outage.to - outage.from),
      absl::Nanoseconds(outage.every)}(begin_ + absl::Nanoseconds(outage.from));
}

absl::StatusOr<std::shared_ptr<const ToldView>> Rehearsal::Read(
    const wire::HeartbeatResponse& answer, const ToldView& base) {
  const wire::ViewMessage& view =
      answer.has_view() ? answer.view() : answer.view_change().view();
  std::shared_ptr<const ToldView>& told =
      told_[{view.generation(), view.epoch(), view.resume_round()}];
  if (told == nullptr) {
    GOSSAMER_ASSIGN_OR_RETURN(told, ReadView(answer, base));
  }
  return told;
}

absl::StatusOr<std::shared_ptr<const MixingSchedule>> Rehearsal::ScheduleOf(
    const View& view) {
  std::shared_ptr<const MixingSchedule>& schedule =
      schedules_[{view.generation, view.epoch}];
  if (schedule == nullptr) {
    GOSSAMER_ASSIGN_OR_RETURN(schedule, view.MakeSchedule());
  }
  return schedule;
}

bool Rehearsal::done() const { return ended_ == peers_.size(); }

absl::Status Rehearsal::Run(absl::FunctionRef<bool()> pause) {
  while (!done()) {
    if (pause()) return absl::OkStatus();
    // The service's tick never ends, so an empty queue is an error of the
    // rehearsal.
    if (!loop_.Step()) {
      return absl::DeadlineExceededError(
          "nothing is left to happen, and peers have not ended");
    }
    GOSSAMER_RETURN_IF_ERROR(failed_);
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
