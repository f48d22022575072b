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
// The virtual time between two polls of whether the fleet has settled.
constexpr absl::Duration kSettledEvery = absl::Milliseconds(100);

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
      service_(&loop_, ServiceOf(spec_),
               [this](const std::string& line) {
                 if (spec_.on_service_log) {
                   spec_.on_service_log(elapsed(), line);
                 }
               }),
      events_(&loop_) {}

Rehearsal::~Rehearsal() = default;

absl::StatusOr<std::unique_ptr<Rehearsal>> Rehearsal::Create(
    RehearsalSpec spec) {
  const size_t size = spec.config.peers();
  const size_t most = size + Joiners(spec.events);
  if (spec.scenario.hosts.size() < most) {
    return absl::InvalidArgumentError(
        absl::StrCat("network \"", spec.scenario.name, "\" has ",
                     spec.scenario.hosts.size(), " hosts for ", most,
                     " peers; take a larger one, or fewer with --set peers="));
  }
  GOSSAMER_RETURN_IF_ERROR(CheckFleetEvents(spec.events, spec.config.peers(),
                                            !IsCentralized(spec.config)));
  std::unique_ptr<Rehearsal> made(new Rehearsal(std::move(spec)));
  // The service comes first: peers register as soon as the loop runs.
  GOSSAMER_RETURN_IF_ERROR(made->service_.Start(/*old=*/false));
  for (int from = 0; from < static_cast<int>(most); ++from) {
    made->network_.SetUplink(
        RehearsedPeer::IdOf(from),
        made->PayloadRate(made->spec_.scenario.hosts[from].uplink));
  }
  made->network_.SetLinks(
      [p = made.get()](PeerId from, PeerId to) { return p->LinkOf(from, to); });
  const RehearsalSpec& s = made->spec_;
  if (!IsCentralized(s.config)) {
    GOSSAMER_ASSIGN_OR_RETURN(
        made->schedule_, MakeSchedule(ScheduleSpecOf(s.config.mixing()),
                                      static_cast<int>(size), s.config.seed()));
  }
  while (made->peers_.size() < size) {
    GOSSAMER_RETURN_IF_ERROR(made->AddPeer());
  }
  made->coming_ = s.events.size();
  for (const FleetEvent& event : s.events) {
    made->events_.RunAt(made->begin_ + event.at,
                        [p = made.get(), &event] { p->Happen(event); });
  }
  return made;
}

absl::Status Rehearsal::AddPeer() {
  const int rank = static_cast<int>(peers_.size());
  // A joiner has about as many edges as the others.
  const auto edges_of = rank % static_cast<int>(spec_.config.peers());
  GOSSAMER_ASSIGN_OR_RETURN(
      auto peer,
      RehearsedPeer::Create(
          {.config = spec_.config,
           .rank = rank,
           .step_time =
               [this, rank](uint64_t call) {
                 return spec_.step_time(rank, call);
               },
           .bytes_per_second = spec_.bytes_per_second,
           .sink = spec_.sink(rank),
           .edges = schedule_ == nullptr
                        ? 0
                        : schedule_->Row(edges_of, 1).neighbors.size(),
           .read_view =
               [this](const auto& answer, const ReceivedView& base) {
                 return Read(answer, base);
               },
           .make_schedule =
               [this](const View& view) { return ScheduleOf(view); },
           .on_end =
               [this](const RehearsedPeer& ended) {
                 ++ended_;
                 failed_.Update(ended.status());
               }},
          &loop_, network_, service_));
  peers_.push_back(std::move(peer));
  return absl::OkStatus();
}

void Rehearsal::Happen(const FleetEvent& event) {
  --coming_;
  unsettled_.push_back({.event = event, .round_before = SlowestRound()});
  switch (event.kind) {
    case FleetEvent::Kind::kJoin:
      for (uint32_t i = 0; i < event.peers; ++i) failed_.Update(AddPeer());
      break;
    case FleetEvent::Kind::kLose:
      Lose(event);
      break;
    case FleetEvent::Kind::kServiceDown:
      service_.Crash();
      events_.RunAt(events_.Now() + event.down, [this] {
        // Of two outages that overlap the first to end ends both.
        if (!service_.up()) failed_.Update(service_.Start(/*old=*/false));
        if (stopping_) Stop();
      });
      break;
    case FleetEvent::Kind::kLinks: {
      const SimLink link = SimLinkOf(SpecOf(*event.preset));
      network_.SetLinks([link](PeerId, PeerId) { return link; });
    }
  }
  // One poll after another is enough for all events.
  if (unsettled_.size() == 1) PollSettled();
}

// The dead say nothing more, as after kill -9: their connections break.
void Rehearsal::Lose(const FleetEvent& event) {
  const std::vector<size_t> living = Living();
  const std::vector<int> order =
      RngKey(spec_.config.seed())
          .Fold("lost")
          .Fold(coming_)
          .Permutation(static_cast<int>(living.size()));
  for (size_t i = 0; i < std::min<size_t>(event.peers, living.size()); ++i) {
    const size_t lost = living[static_cast<size_t>(order[i])];
    peers_[lost].reset();
    ++ended_;
    if (spec_.on_lost) spec_.on_lost(static_cast<int>(lost));
  }
}

void Rehearsal::PollSettled() {
  events_.RunAt(events_.Now() + kSettledEvery, [this] {
    if (!Settled()) return PollSettled();
    for (FleetSettled& settled : std::exchange(unsettled_, {})) {
      settled.took = elapsed() - settled.event.at;
      settled.members = Living().size();
      settled.round_after = SlowestRound();
      if (spec_.on_settled) spec_.on_settled(settled);
    }
  });
}

bool Rehearsal::Settled() const {
  if (!service_.up()) return false;
  const std::vector<size_t> living = Living();
  const View& newest = service_.fleet()->record().view;
  return !living.empty() && newest.members.size() == living.size() &&
         std::ranges::all_of(living, [&](size_t i) {
           return peers_[i]->view().epoch == newest.epoch &&
                  peers_[i]->round() > newest.from_round;
         });
}

std::vector<size_t> Rehearsal::Living() const {
  std::vector<size_t> living;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i] != nullptr && !peers_[i]->ended()) living.push_back(i);
  }
  return living;
}

uint64_t Rehearsal::SlowestRound() const {
  uint64_t slowest = 0;
  for (const size_t i : Living()) {
    const uint64_t round = peers_[i]->round();
    // A joiner that has no view yet is in no round.
    if (peers_[i]->view().epoch == 0) continue;
    slowest = slowest == 0 ? round : std::min(slowest, round);
  }
  return slowest;
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
  return SimLinkOf(link);
}

SimLink Rehearsal::SimLinkOf(const LinkSpec& link) const {
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
      self->events_.RunAt(begin, [again = *this, begin] {
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

absl::StatusOr<std::shared_ptr<const ReceivedView>> Rehearsal::Read(
    const wire::HeartbeatResponse& answer, const ReceivedView& base) {
  const wire::ViewMessage& view =
      answer.has_view() ? answer.view() : answer.view_change().view();
  std::shared_ptr<const ReceivedView>& received =
      received_[{view.generation(), view.epoch(), view.resume_round()}];
  if (received == nullptr) {
    GOSSAMER_ASSIGN_OR_RETURN(received, ReadView(answer, base));
  }
  return received;
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

// A service that is down hears of it when it is up again.
void Rehearsal::Stop() {
  stopping_ = true;
  service_.RequestStop();
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
  if (!service_.up()) return {};
  return service_.fleet()->Snapshot(loop_.Now());
}

// Returns the mean over peers of the squared distance from their mean, which is
// exact where the service has an estimate by sketches: all parameters are in
// this process.
double Rehearsal::ConsensusDistance() const {
  std::vector<std::span<const float>> all;
  for (const auto& peer : peers_) {
    if (peer != nullptr) all.push_back(peer->parameters());
  }
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
