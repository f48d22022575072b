// The reports of a peer process: lines of its log, on standard error, and the
// metrics and events in the peer's folder.
//
// Reports that other peers can cause are throttled, so that none of them fills
// a disk.  This header knows nothing of what an event means.

#ifndef GOSSAMER_RUNTIME_DAEMON_PROCESS_REPORTS_H_
#define GOSSAMER_RUNTIME_DAEMON_PROCESS_REPORTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/throttle.h"
#include "runtime/base/event_loop.h"
#include "runtime/neighborhood/connection_problems.h"
#include "runtime/telemetry/jsonl_sink.h"
#include "runtime/telemetry/metrics.h"
#include "topology/fleet/event_kind.h"
#include "topology/fleet/event_tally.h"

namespace gossamer {

// Used on the loop.
class ProcessReports {
 public:
  // `loop`, which outlives this, has the time of an event, and `round` its
  // round.
  ProcessReports(EventLoop* loop, PeerId self, std::function<uint64_t()> round);
  ProcessReports(const ProcessReports&) = delete;
  ProcessReports& operator=(const ProcessReports&) = delete;

  // Names the peer in the lines that follow.
  void SetSelf(PeerId self) { self_ = self; }
  // Opens metrics.jsonl and events.jsonl in `folder`, which exists.  Events are
  // kept from then on; those before have a line in the log at most.
  absl::Status Open(const std::string& folder, LogLimit limit);
  bool opened() const { return file_ != nullptr; }
  // The sink of the peer's metrics and events; null until Open.
  MetricsSink* sink() { return file_ ? &sink_ : nullptr; }
  // The counts of the events that were kept.
  const EventTally* events() const { return &events_; }
  // Writes what has gathered.
  void Flush();

  void Log(const std::string& line) const;
  void Report(EventKind kind, const std::string& detail, uint64_t times = 1);
  void ReportAndLog(EventKind kind, const std::string& detail);
  // Reports a refusal by this process, of something that `member` sent; 0: of
  // something that anybody else sent.
  void ReportRefused(EventKind kind, PeerId member, const absl::Status& why);
  // Reports an attempt to connect that failed.  `member`: the other end is one
  // of the view.
  void ReportProblem(PeerId other, bool member, const absl::Status& why);

 private:
  struct Refusals {
    uint64_t seen = 0;
    Throttle throttle;
  };
  // The peer's rounds and events go into the files.  An event that asks for an
  // action has a line in the log, too, each kind at most once a minute.
  class Sink final : public MetricsSink {
   public:
    explicit Sink(ProcessReports* reports) : reports_(reports) {}
    void OnRound(const RoundMetrics& metrics) override;
    void OnEvent(const Event& event) override;

   private:
    ProcessReports* const reports_;
    std::map<std::string_view, Throttle> throttles_;
  };

  void Keep(const Event& event);

  EventLoop* const loop_;
  PeerId self_;
  const std::function<uint64_t()> round_;
  EventTally events_;
  std::unique_ptr<JsonlSink> file_;
  Sink sink_{this};
  // The map grows with the members, not with the ids that unauthenticated
  // others claim.
  std::map<std::pair<std::string_view, PeerId>, Refusals> refusals_;
  ConnectionProblems problems_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_PROCESS_REPORTS_H_
