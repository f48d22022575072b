// Lets payloads meet on an edge that has no room for one in every exchange
// (PROTOCOL.md 12).
//
// If an exchange takes longer than its window allows, as with a deadline below
// the latency, an end has room for a payload in every second round, say.  If
// the other end has room in the rounds between, every payload meets a skip and
// the edge mixes nothing for as long as rounds keep their length.  So once
// payloads of both have met skips, the upper end skips half of the exchanges
// for which it has room: its payloads come a round later then, until they meet
// the other's.
//
// This header knows nothing of clocks, deadlines and other edges.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_PAYLOAD_STAGGER_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_PAYLOAD_STAGGER_H_

#include "algorithms/base/ids.h"
#include "algorithms/edge/edge_codec_state.h"

namespace gossamer {

class PayloadStagger final : public CorrectionObserver {
 public:
  // `upper`: of the end with the larger peer id.
  explicit PayloadStagger(bool upper) : upper_(upper) {}

  void OnExchange(ExchangeId id, const EdgeMessage* mine,
                  const EdgeMessage* theirs) override;
  void OnCorrection(const Correction&) override {}

  // Asked if exchange `id` could have a payload of this end and the other end's
  // part is not known.  True: the exchange becomes a skip.  The answer depends
  // on earlier questions and exchanges alone.
  bool ShouldSkip(ExchangeId id);

 private:
  const bool upper_;
  // Set if a payload met a skip since the last correction, or since ShouldSkip
  // was last true.
  bool mine_ = false, theirs_ = false;
  ExchangeId since_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_PAYLOAD_STAGGER_H_
