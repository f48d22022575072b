#include "runtime/peer/reporter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "topology/fleet/overlap_chooser.h"

namespace gossamer {
namespace {

// A sketch is a pass over x and some kilobytes of a heartbeat: about one a
// second is enough for a curve of consensus.
constexpr absl::Duration kSketchInterval = absl::Seconds(1);
// The bound lets a peer whose rounds become slow find a common round again.
constexpr uint64_t kMaxSketchEvery = 1 << 16;
// The first exchanges of a view open connections, and their formats are chosen
// from what they show: they say nothing of those to come.
constexpr uint64_t kFirst = 2;

}  // namespace

Reporter::Reporter(EventLoop* loop, Transport* transport,
                   Membership* membership, const TrainingState* state,
                   MetricsSink* sink, Sketch sketch)
    : loop_(loop),
      transport_(transport),
      membership_(membership),
      state_(state),
      sink_(sink),
      take_sketch_(std::move(sketch)) {
  static_assert(kExchangesToGoBack <= kKept);
}

void Reporter::Report(EventKind kind, const std::string& detail,
                      uint64_t times) {
  sink_->OnEvent({loop_->Now(), state_->round(), kind, detail, times});
}

void Reporter::ReportByCount(EventKind kind, Throttle& throttle, uint64_t seen,
                             std::string_view what, bool last) {
  const uint64_t times =
      last ? throttle.TakeUnreported(seen) : throttle.Due(seen);
  if (times > 0) Report(kind, absl::StrCat(seen, std::string(what)), times);
}

void Reporter::ReportConnections(bool last) {
  const TransportCounters counters = transport_->counters();
  ReportByCount("strangers_refused", unauthenticated_,
                counters.unauthenticated_refused,
                " connections so far were hung up on: as many were open as may "
                "be that were not authenticated, or their host had flooded",
                last);
  ReportByCount("congestion_control", congestion_, counters.chose_bbr,
                " times so far connections were given bbr instead of cubic: "
                "they pause for long or lose packets, again and again, their "
                "window is too small, or the link is very long",
                last);
  ReportByCount("connections_added", outgrown_, counters.outgrew_cubic,
                " times so far edges were given several connections: one loses "
                "packets, or has too small a window, and cannot have bbr",
                last);
}

void Reporter::ResetRoundTiming() {
  busy_.Clear();
  exchanges_.Clear();
  exchanged_ = 0;
}

void Reporter::MeasureRoundTiming(absl::Duration length,
                                  Neighborhood& neighborhood) {
  // A moving average over about ten rounds; the first round is taken as it is.
  round_length_ = round_length_ == absl::ZeroDuration()
                      ? length
                      : 0.9 * round_length_ + 0.1 * length;
  metrics_.seconds_exchanging =
      absl::ToDoubleSeconds(neighborhood.TakeExchangeTime());
  // Waiting is left out: with it each peer would seem as slow as the slowest,
  // and deadlines would learn from themselves.  A process needs longer for its
  // first round, and the others would take it for that slow for seconds.
  if (std::exchange(warm_, true)) {
    busy_.Add(absl::ToDoubleSeconds(length) - metrics_.seconds_waiting);
  }
  // Exchanges of another format say nothing of how long one takes now: the
  // service would choose an overlap for them.  The next one waits in the queue
  // that they have left.
  if (neighborhood.TakeFormatChange()) {
    exchanges_.Clear();
    exchanged_ = kFirst - 1;
  }
  // A round without an exchange says nothing of how long one takes.
  if (metrics_.seconds_exchanging > 0 && ++exchanged_ > kFirst) {
    exchanges_.Add(metrics_.seconds_exchanging);
  }
  // The slowest peer sets the pace, as far as the service knows it; the own
  // timing stands in until it does.
  neighborhood.SetBusy(
      absl::Seconds(median_busy()),
      absl::Seconds(
          std::max(median_busy(), membership_->fleet_busy().value_or(0))));
}

void Reporter::EndRound(absl::Time started, Neighborhood& neighborhood,
                        uint64_t recoveries) {
  const absl::Time now = loop_->Now();
  const TransportCounters bytes = transport_->counters();
  MeasureRoundTiming(now - started, neighborhood);
  metrics_.round = state_->round();
  metrics_.steps = state_->steps();
  metrics_.finished = now;
  metrics_.bytes_sent = bytes.bytes_sent;
  metrics_.bytes_received = bytes.bytes_received;
  metrics_.corrections = neighborhood.corrections();
  metrics_.skipped = neighborhood.skipped();
  metrics_.late = neighborhood.late();
  if (const auto clipping = neighborhood.TakeClipping()) {
    metrics_.clipping = {clipping->clipped, clipping->longest};
  }
  sink_->OnRound(metrics_);
  // The transport's threads count them; the loop reports them, here and at each
  // tick of the watch.
  ReportConnections(/*last=*/false);

  TakeSketch();
  PeerReport report;
  // The report is made before the next round is decided; a jump is in the next
  // report.
  report.round = state_->round() + 1;
  report.steps = state_->steps();
  report.rounds_per_second =
      1 / std::max(1e-9, absl::ToDoubleSeconds(round_length_));
  report.timing = {.busy_seconds = median_busy(),
                   .exchange_seconds = long_exchange(),
                   .rounds = exchanges_.size()};
  report.losses = metrics_.losses;
  if (!metrics_.scores.empty()) score_ = metrics_.scores.back().value;
  report.score = score_;
  report.bytes_sent = bytes.bytes_sent;
  report.sketch = std::move(sketch_);
  report.sketch_round = sketch_round_;
  report.spoilt = recoveries;
  last_ = report;
  membership_->Report(report);
}

void Reporter::RepeatRound() {
  sink_->OnRound(metrics_);
  if (metrics_.scores.empty()) return;
  last_.score = score_ = metrics_.scores.back().value;
  membership_->Report(last_);
}

// Rounds that are multiples of a power of two, about one a second: peers that
// choose different powers still sketch common rounds.
void Reporter::TakeSketch() {
  sketch_.clear();
  const uint64_t round = state_->round();
  if (!take_sketch_ || round % sketch_every_ != 0) return;
  const absl::Time now = loop_->Now();
  const absl::Duration since = now - sketched_;
  if (since < kSketchInterval && sketch_every_ < kMaxSketchEvery) {
    sketch_every_ *= 2;
  } else if (since > 4 * kSketchInterval && sketch_every_ > 1) {
    sketch_every_ /= 2;
  }
  sketched_ = now;
  // A value that is not finite would spoil the fleet's estimate.
  if (!state_->Sound()) return;
  sketch_ = take_sketch_(state_->queue(), state_->parameters());
  sketch_round_ = round;
}

}  // namespace gossamer
