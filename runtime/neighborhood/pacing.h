// The pace of an edge: when its exchange is overdue, with which coefficient and
// format it is emitted, and whether it has a payload at all.
//
// One interface for the policies of time: deadlines, damping, payload stagger,
// formats, and what a replay repeats of them.  This header knows nothing of
// frames, connections or rows.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_PACING_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_PACING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/edge/edge.h"
#include "runtime/base/event_loop.h"
#include "runtime/neighborhood/damping.h"
#include "runtime/neighborhood/deadline.h"
#include "runtime/neighborhood/format_chooser.h"
#include "runtime/neighborhood/payload_stagger.h"
#include "runtime/replay/decisions.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/event_kind.h"

namespace gossamer {

// The state that the policies keep of one edge.
struct EdgePace {
  // `upper`: of the end with the larger peer id.
  EdgePace(DeadlinePolicy policy, bool upper)
      : damping(std::make_unique<Damping>()),
        stagger(std::make_unique<PayloadStagger>(upper)),
        deadline(policy) {}

  // The edge observes by these two.
  std::unique_ptr<Damping> damping;
  std::unique_ptr<PayloadStagger> stagger;
  DeadlineEstimator deadline;
  std::map<ExchangeId, absl::Time> emitted;  // and not heard
  FormatChooser formats;                     // of what this end receives
  std::optional<WireFormat> requested;       // of the other end
  WireFormat reported = WireFormat::kDenseF32;
  bool overdue = false;
  bool behind = false;  // not all that was due was complete
};

class Pacing {
 public:
  using Report = std::function<void(EventKind kind, const std::string& detail)>;

  // `loop` outlives it.
  Pacing(DeadlinePolicy policy, EventLoop* loop, Report report);

  // Outlives this.  At a replay it says instead of the clock what may be
  // emitted and completed.
  void SetDecisions(Decisions* decisions) { decisions_ = decisions; }
  bool replays() const { return decisions_->replays(); }
  // From here on: h, and the step size that would be stable if nothing were
  // late over the one in use (damping.h).
  void SetOverlap(int h, double stable);
  // Sets the length of a round without waiting: of this peer, and of the
  // slowest.
  void SetBusy(absl::Duration own, absl::Duration slowest);

  EdgePace MakePace(bool upper) const { return {policy_, upper}; }
  bool has_deadlines() const {
    return policy_.kind != DeadlinePolicy::Kind::kNone;
  }

  // An exchange is emitted: Prepare on all edges, then Plan and Emitted on each
  // of the row.
  void Prepare(const std::vector<const EdgePace*>& paces, int idle_rounds);
  struct Emission {
    float coefficient = 0;
    bool wants_payload = false;  // a payload, if there is room for one
  };
  // `finite`: x may be sent.
  Emission Plan(EdgePace& pace, Edge& edge, const Codec& codec, ExchangeId id,
                float coefficient, bool finite);
  void Emitted(EdgePace& pace, const Edge& edge, ExchangeId id,
               bool sent_payload);
  // Something of the other end has come.
  void OnTransit(EdgePace& pace, const Transit& transit) {
    pace.formats.Record(transit);
  }
  void OnReceived(EdgePace& pace, const Edge& edge);

  // A boundary: BeginBoundary, then Limit and Completed on each edge.
  void BeginBoundary() { ++boundary_; }
  // Returns the id below which exchanges with `peer` are completed, at most
  // `limit`.
  ExchangeId Limit(PeerId peer, ExchangeId limit) const;
  void Completed(EdgePace& pace, const Edge& edge, ExchangeId limit);

  // At a replay: the exchange can be emitted as it was, and what was complete
  // after the next boundary can be.
  bool CanEmit(const Edge& edge, ExchangeId id) const;
  bool CanComplete(const Edge& edge, ExchangeId limit) const;

  // When exchange `id`, if it is not heard by then, is overdue.
  absl::Time DeadlineOf(const EdgePace& pace, ExchangeId id,
                        absl::Duration round) const;
  // It has been heard, or is past its deadline.
  static void InTime(EdgePace& pace);
  void Late(EdgePace& pace, PeerId peer, ExchangeId id);

  uint64_t skipped() const { return skipped_; }
  uint64_t late() const { return late_; }
  // The longest that an exchange took, of those that ended since the last call
  // and had begun with the formats in use.
  absl::Duration TakeExchangeTime();
  // The format of what is sent or received has changed since the last call.
  bool TakeFormatChange() { return std::exchange(format_changed_, false); }

 private:
  bool ShouldSkip(EdgePace& pace, const Edge& edge, ExchangeId id) const;
  void ReportFormat(EdgePace& pace, const Edge& edge, const Codec& codec,
                    ExchangeId id);
  void FormatChanges(ExchangeId id);

  const DeadlinePolicy policy_;
  EventLoop* const loop_;
  const Report report_;
  Decisions unkept_;
  Decisions* decisions_ = &unkept_;
  DeadlineEstimator arrivals_;  // of all edges, given up ones included
  std::optional<absl::Duration> typical_of_half_;
  int overlap_ = 1;
  double stable_ = 1;
  absl::Duration busy_, slowest_, exchange_time_;
  bool format_changed_ = false;
  ExchangeId formats_from_ = 0;  // the exchange of the last change
  uint64_t boundary_ = 0, skipped_ = 0, late_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_PACING_H_
