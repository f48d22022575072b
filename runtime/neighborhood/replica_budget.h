// The choice of the edges that keep replicas when memory does not suffice for
// all.
//
// A peer on a random schedule meets everybody sooner or later, and an edge of a
// codec with replicas holds two vectors as long as the parameters.  If that is
// too much, the edges between near ranks keep replicas and the others do
// without.  This header knows nothing of codecs, edges or bytes on the wire.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_REPLICA_BUDGET_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_REPLICA_BUDGET_H_

#include <cstddef>
#include <cstdint>

#include "topology/mixing_schedule.h"

namespace gossamer {

class ReplicaBudget {
 public:
  // At most `bytes` of replicas at any peer (0: no limit), of `parameters`
  // float32 each.
  ReplicaBudget(uint64_t bytes, size_t parameters,
                const MixingSchedule& schedule);

  // The edge between ranks `a` and `b` keeps replicas: the same at both ends
  // and at every replay, whatever their timing.
  bool Covers(int a, int b) const;

 private:
  int peers_;
  int reach_;  // ranks this far apart, around, are covered
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_REPLICA_BUDGET_H_
