// The pairs in which one peer takes part, in the order that all peers share,
// and the pair that is under way.
//
// A peer launches the first pair of its queue and no other, and takes no pair
// in that would come before the one under way, so peers never wait for each
// other in a circle (README.md).  The members of a new communicator meet once
// their queues are empty, and take no pair in until they have met.  This header
// is pure and knows nothing of communicators, of connections or of time.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_LAUNCH_QUEUE_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_LAUNCH_QUEUE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"
#include "runtime/transport/transport.h"

namespace gossamer {

// The position of a pair in the order of all pairs.
struct LaunchPosition {
  uint64_t exchange = 0;
  int colour = 0;  // of the matching
  PeerId peer;     // the other end
  friend auto operator<=>(const LaunchPosition&,
                          const LaunchPosition&) = default;
};

// The terms on which both ends launch a pair.
struct PairTerms {
  SharedBytes body = {};        // of this end
  ConnectionId connection = 0;  // over which the other end's offer came
  uint32_t size = 0;            // of the other end's body, bytes
  uint64_t name = 0;            // of the operation, the same at both ends
};

struct NcclPair {
  LaunchPosition position;
  uint64_t key = 0;  // NcclPlan::key
  // Once both ends have agreed the pair takes place, whatever becomes of the
  // connection: the other end waits for it.
  std::optional<PairTerms> terms = {};
};

class LaunchQueue {
 public:
  // Whether a pair at this position keeps the order.
  bool MayEnter(uint64_t exchange, int colour) const;
  // The pair waits for its terms and for the pairs before it.
  void Enter(NcclPair pair);
  // Both ends launch the pair of this exchange with `peer`.  Returns false if
  // there is none.
  bool Agree(PeerId peer, uint64_t exchange, PairTerms terms);
  // The pair of this exchange with `peer` does not take place; one that has
  // terms does.
  void Withdraw(PeerId peer, uint64_t exchange);

  // The pair that is to be launched; null while another one is under way, or
  // before both ends of the first one have agreed.
  const NcclPair* Next() const;
  // The pair of Next() is under way, or cannot be launched.
  void Begin();
  void Skip();
  // Null if none is under way.
  const NcclPair* under_way() const;
  // The pair under way has taken place.
  NcclPair Finish();
  // No pair and no meeting of this communicator takes place any more.
  void Drop(uint64_t key);

  // The members of this communicator are to meet; one meets at a time.
  void EnterMeeting(uint64_t key);
  // The communicator whose members may meet now.
  std::optional<uint64_t> Meeting() const;
  void FinishMeeting() { meeting_.reset(); }

  // Whether the pair of that name with `peer`, or the meeting of the
  // communicator that is the name's, is under way or to come.
  bool Expects(PeerId peer, uint64_t name) const;

 private:
  std::map<LaunchPosition, NcclPair> pairs_;
  std::optional<LaunchPosition> under_way_;  // of a pair of pairs_
  std::optional<uint64_t> meeting_;          // under way or to come
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_LAUNCH_QUEUE_H_
