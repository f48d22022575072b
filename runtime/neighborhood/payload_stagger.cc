#include "runtime/neighborhood/payload_stagger.h"

#include "algorithms/base/rng.h"

namespace gossamer {

void PayloadStagger::OnExchange(ExchangeId id, const EdgeMessage* mine,
                                const EdgeMessage* theirs) {
  // An exchange that was under way when one was skipped is of those before.
  if (id < since_) return;
  const bool met = mine != nullptr && theirs != nullptr;
  mine_ = !met && (mine_ || mine != nullptr);
  theirs_ = !met && (theirs_ || theirs != nullptr);
}

// A coin decides: an end that skips every such exchange may keep missing the
// payloads of an end that has its own rhythm.
bool PayloadStagger::ShouldSkip(ExchangeId id) {
  if (!upper_ || !mine_ || !theirs_) return false;
  if (RngKey(id).Bits(0) % 2 != 0) return false;
  mine_ = theirs_ = false;
  since_ = id;
  return true;
}

}  // namespace gossamer
