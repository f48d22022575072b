// How a peer trains for one round together with others, as the round loop sees
// it: by gossip, with one exact mean of all, or by votes.
//
// This header knows nothing of checkpoints, of metrics' files or of how a peer
// joins.

#ifndef GOSSAMER_RUNTIME_PEER_TRAINER_H_
#define GOSSAMER_RUNTIME_PEER_TRAINER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/edge/edge.h"
#include "runtime/base/task.h"
#include "runtime/transport/transport.h"

namespace gossamer {

class Trainer {
 public:
  virtual ~Trainer() = default;

  // A view has been adopted, the `first` of its incarnation with what a
  // checkpoint has of edges: connects to its members.
  virtual absl::Status OnView(bool first, const SavedEdges& saved) = 0;
  // The incarnation is over, with all that is under way.
  virtual void Reset() = 0;
  // Called when the topology service has answered.
  virtual void OnAnswer() {}

  // One round.  It may end the lifecycle's rounds instead.
  virtual Task<absl::Status> Round() = 0;
  // The round after this one.
  virtual uint64_t NextRound() = 0;
  // No round can follow the one that has ended, though there are more.
  virtual bool IsLast() const { return false; }

  // Members have announced their end before the step that comes.
  virtual bool Abandoned() const { return false; }

  // The end of a run.  Completes the exchanges in flight that can be; true once
  // nothing of this peer's rounds is left.
  virtual bool Drain() { return true; }
  // Tells the members that this peer takes part in nothing that comes.
  virtual void AnnounceEnd() {}
  // Members that have not announced their end.
  virtual std::vector<PeerId> NotEnded() const { return {}; }
  // The time that the end waits for neighbours that are not connected.
  virtual absl::Duration DrainLimit() const = 0;
  // The state is that of a round's boundary, and worth keeping.
  virtual bool AtBoundary() const { return true; }

  // Frames of Channel::kCollective, and connections.  kDataLoss: the frame is
  // dropped.
  virtual absl::Status OnFrame(PeerId peer, const Frame&) {
    return absl::DataLossError(
        absl::StrCat("peer ", peer.value, " is not in this all-reduce"));
  }
  virtual void OnUp(PeerId) {}
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_TRAINER_H_
