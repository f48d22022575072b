#include "runtime/neighborhood/pacing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/seeded_bug.h"

namespace gossamer {
namespace {

// Emissions whose answers are still of interest to the deadline: a peer that is
// silent for good would make the list grow for ever.
constexpr size_t kMaxPendingArrivals = 64;

}  // namespace

Pacing::Pacing(DeadlinePolicy policy, EventLoop* loop, Report report)
    : policy_(policy),
      loop_(loop),
      report_(std::move(report)),
      arrivals_(policy) {}

void Pacing::SetOverlap(int h, double stable) {
  overlap_ = h;
  stable_ = stable;
}

void Pacing::SetBusy(absl::Duration own, absl::Duration slowest) {
  busy_ = own;
  slowest_ = slowest;
}

// Were every correction late, mixing would act on what is rounds old, and on a
// random schedule the fleet would diverge.  So a deadline that half of the
// edges do not keep is the mistake, not the edges.  A deadline that is learnt
// has the rounds, too, behind which an exchange hides, and those without an
// exchange before it, in which a slower neighbour has fallen behind.
void Pacing::Prepare(const std::vector<const EdgePace*>& paces,
                     int idle_rounds) {
  // Without deadlines nothing is compared, and the rounds stay cheap.
  if (!has_deadlines()) return;
  typical_of_half_.reset();
  std::vector<absl::Duration> typical;
  for (const EdgePace* pace : paces) {
    if (const auto t = pace->deadline.Typical()) typical.push_back(*t);
  }
  if (typical.empty()) return;
  // The lower middle: of two edges the faster one counts.
  const auto middle =
      typical.begin() + static_cast<ptrdiff_t>((typical.size() - 1) / 2);
  std::nth_element(typical.begin(), middle, typical.end());
  typical_of_half_ =
      policy_.kind == DeadlinePolicy::Kind::kFixed
          ? *middle
          : std::max(*middle, (std::max(1, overlap_) + idle_rounds) * busy_);
}

Pacing::Emission Pacing::Plan(EdgePace& pace, Edge& edge, const Codec& codec,
                              ExchangeId id, float coefficient, bool finite) {
  // This end requests the format of what it receives; the other end has
  // requested the format that this end sends.
  if (const auto format = pace.formats.Choose(codec, slowest_)) {
    edge.set_requested_format(*format);
    if (*format != pace.requested.value_or(codec.format())) FormatChanges(id);
    pace.requested = *format;
  }
  // The log's skips are repeated at a replay; in a run there are none in it.
  const bool wants_payload = finite && !decisions_->Skips(edge.other(), id) &&
                             !(pace.overdue && SeededBug("stay-apart"));
  // The log of another codec may name formats that this one does not have.
  if (const auto format = decisions_->Format(edge.other(), id);
      format && codec.EncodedSize(*format) > 0) {
    edge.use_format(*format);
  }
  ReportFormat(pace, edge, codec, id);
  pace.damping->Emitted(RoundOf(id));
  const auto damping =
      static_cast<float>(pace.damping->Factor(stable_, overlap_));
  return {.coefficient = coefficient * damping,
          .wants_payload = wants_payload && !ShouldSkip(pace, edge, id)};
}

// Without deadlines every payload is waited for, so payloads meet by
// themselves.
bool Pacing::ShouldSkip(EdgePace& pace, const Edge& edge, ExchangeId id) const {
  // Only a payload that may be sent can be skipped: with room, and before the
  // other end has decided.
  return has_deadlines() && !replays() && edge.HasRoom() &&
         edge.received() <= id && !SeededBug("keep-turns") &&
         pace.stagger->ShouldSkip(id);
}

void Pacing::ReportFormat(EdgePace& pace, const Edge& edge, const Codec& codec,
                          ExchangeId id) {
  const WireFormat used = edge.format();
  if (codec.choices().empty() || used == pace.reported) return;
  decisions_->NoteFormat(edge.other(), id, used);
  if (pace.reported != WireFormat::kDenseF32) {
    report_("codec",
            absl::StrFormat("to peer %d: %d bytes a payload instead of %d, as "
                            "it wishes",
                            edge.other().value, codec.EncodedSize(used),
                            codec.EncodedSize(pace.reported)));
    FormatChanges(id);
  }
  pace.reported = used;
}

// Exchanges that have begun take as long as they did.
void Pacing::FormatChanges(ExchangeId id) {
  format_changed_ = true;
  formats_from_ = id;
}

void Pacing::Emitted(EdgePace& pace, const Edge& edge, ExchangeId id,
                     bool sent_payload) {
  if (!sent_payload) {
    ++skipped_;
    // Every skip of the row is kept, whatever its reason: at a replay the
    // reason may not be there.
    decisions_->NoteSkip(edge.other(), id);
  }
  const absl::Time now = loop_->Now();
  // Skips count, too: their answers tell how long the other end takes.
  pace.emitted.emplace(id, now);
  if (pace.emitted.size() > kMaxPendingArrivals) {
    // It has taken at least so long.  A peer that was behind found all answers
    // there already and has learnt a deadline that nobody can keep: if it never
    // counted what it outruns, it would go on outrunning.  A lost connection
    // says nothing of how long exchanges take.
    if (edge.state().ready) {
      pace.deadline.RecordMissing(now - pace.emitted.begin()->second);
    }
    pace.emitted.erase(pace.emitted.begin());
  }
  // The other end may have been ahead: its answer was here before the emission.
  OnReceived(pace, edge);
}

void Pacing::OnReceived(EdgePace& pace, const Edge& edge) {
  const ExchangeId received = edge.received();
  auto it = pace.emitted.begin();
  while (it != pace.emitted.end() && it->first < received) {
    const absl::Duration took = loop_->Now() - it->second;
    pace.deadline.Record(took);
    // New edges learn from this sum of all (Limit).
    arrivals_.Record(took);
    if (it->first >= formats_from_) {
      exchange_time_ = std::max(exchange_time_, took);
    }
    // With a fixed deadline, answers within it are waited for again.
    if (policy_.kind == DeadlinePolicy::Kind::kFixed && took <= policy_.fixed) {
      InTime(pace);
    }
    it = pace.emitted.erase(it);
  }
}

ExchangeId Pacing::Limit(PeerId peer, ExchangeId limit) const {
  // A run has no such lines, and completes all that is due.
  return decisions_->Done(peer, boundary_).value_or(limit);
}

void Pacing::Completed(EdgePace& pace, const Edge& edge, ExchangeId limit) {
  pace.damping->Completed(limit);
  const bool behind = edge.IncompleteBelow(limit);
  // A line is written only where a boundary did not complete all that was due,
  // and once afterwards, so a clean run's log is empty.
  if (behind || pace.behind) {
    decisions_->NoteDone(edge.other(), boundary_, edge.done());
  }
  pace.behind = behind;
}

bool Pacing::CanEmit(const Edge& edge, ExchangeId id) const {
  return decisions_->Skips(edge.other(), id) || edge.HasRoom();
}

bool Pacing::CanComplete(const Edge& edge, ExchangeId limit) const {
  // The question comes before BeginBoundary(): it is about the next one.
  const auto done = decisions_->Done(edge.other(), boundary_ + 1);
  return done ? edge.received() >= *done : !edge.UnansweredBelow(limit);
}

absl::Time Pacing::DeadlineOf(const EdgePace& pace, ExchangeId id,
                              absl::Duration round) const {
  const auto it = pace.emitted.find(id);
  // An exchange that is no longer in the list was emitted long ago.
  const absl::Time from =
      it == pace.emitted.end() ? absl::InfinitePast() : it->second;
  const absl::Duration limit =
      pace.deadline.Limit(round, arrivals_, typical_of_half_);
  if (limit == absl::InfiniteDuration()) return absl::InfiniteFuture();
  return from + limit;
}

void Pacing::InTime(EdgePace& pace) {
  if (!SeededBug("stay-apart")) pace.overdue = false;
}

void Pacing::Late(EdgePace& pace, PeerId peer, ExchangeId id) {
  pace.overdue = true;
  ++late_;
  report_("overdue", absl::StrCat("peer ", peer.value, " missed round ",
                                  RoundOf(id), "; going on without it"));
}

absl::Duration Pacing::TakeExchangeTime() {
  return std::exchange(exchange_time_, absl::ZeroDuration());
}

}  // namespace gossamer
