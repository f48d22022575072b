#include "runtime/peer/drain.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/seeded_bug.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// Frames wake the waiter.  The clock is needed for limits, and for answers that
// waited for room in a full queue (FlushAll).
constexpr absl::Duration kSettlePollInterval = absl::Milliseconds(20);

}  // namespace

Drain::Drain(const PeerSpec& spec, Parts parts)
    : spec_(spec), parts_(std::move(parts)) {}

// Nobody leaves while a neighbour still needs something of it.
Task<bool> Drain::Run() {
  bool settled = false;
  // The trainer's limit counts from the last moment at which every neighbour
  // that is waited for was connected: one that is slow gets the liveness limit,
  // one that is gone does not.
  absl::Time connected = parts_.loop->Now();
  const absl::Duration limit =
      std::min(parts_.trainer->DrainLimit(), spec_.liveness_limit);
  co_await parts_.waiter->Until(
      [&] {
        settled = Settled();
        const absl::Time now = parts_.loop->Now();
        if (MaySettle()) connected = now;
        return settled || now - connected >= limit;
      },
      parts_.loop->Now() + spec_.liveness_limit,
      [this] { return parts_.loop->Now() + kSettlePollInterval; });
  if (!settled) {
    // Exchanges with both payloads are applied all the same: their other ends
    // have applied them, or will.
    parts_.neighborhood->Complete(MakeExchangeId(parts_.state->round()));
  }
  ReportUnsettled(settled);
  co_return settled;
}

bool Drain::Settled() {
  Neighborhood& neighborhood = *parts_.neighborhood;
  const bool left = parts_.lifecycle->left();
  // Own rounds are completed first, in order; only then may everything later be
  // skipped.
  const bool drained = parts_.trainer->Drain();
  if ((left || drained) && !SeededBug("leave-unanswered")) {
    // A neighbour that learns of it late still sends: it gets its answers now.
    const ExchangeId all = MakeExchangeId(kMaxRound);
    neighborhood.SkipTo(all);
    if (!parts_.decisions->replays() || neighborhood.CanComplete(all)) {
      neighborhood.Complete(all);
    }
  }
  neighborhood.FlushAll();
  // A peer that leaves resumes with nobody, and inactive edges need announce
  // nothing to it of rounds that it has nothing in.
  return SeededBug("leave-early") ||
         (neighborhood.Settled() &&
          (left ||
           neighborhood.Sealed(MakeExchangeId(parts_.state->round()))) &&
          (parts_.lifecycle->out_of_time() ||
           parts_.trainer->NotEnded().empty()));
}

// Every peer that this one waits for is connected, and will say what is
// missing.
bool Drain::MaySettle() const {
  return parts_.neighborhood->MaySettle(
             MakeExchangeId(parts_.state->round())) &&
         std::ranges::all_of(parts_.trainer->NotEnded(), [this](PeerId peer) {
           return parts_.neighborhood->Connected(peer);
         });
}

void Drain::ReportUnsettled(bool settled) {
  // An inactive edge may have been forgotten at its other end, so silence there
  // is no news.
  if (!settled && !parts_.neighborhood->Settled(/*inactive=*/false)) {
    parts_.reporter->Report("not_settled",
                            "a neighbour did not answer at the end of the run");
  }
  if (parts_.lifecycle->out_of_time()) return;
  for (const PeerId peer : parts_.trainer->NotEnded()) {
    parts_.reporter->Report(
        "not_settled",
        absl::StrCat("peer ", peer.value, " has not said that it is done"));
  }
}

}  // namespace gossamer
