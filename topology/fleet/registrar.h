// The judgement of a registration: whether it fits the run, and what the
// incarnation that sends it is to the fleet: a member, a peer that joins, or
// refused.
//
// Changes nothing but the record that it is given.  This header knows nothing
// of when a peer is admitted.

#ifndef GOSSAMER_TOPOLOGY_FLEET_REGISTRAR_H_
#define GOSSAMER_TOPOLOGY_FLEET_REGISTRAR_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "topology/fleet/fleet_options.h"
#include "topology/fleet/fleet_sizes.h"
#include "topology/fleet/roster.h"
#include "topology/fleet/views.h"

namespace gossamer {

// Judges each registration against the run and the roster.
class Registrar {
 public:
  // All of them outlive this object.
  Registrar(const FleetOptions& options, const Roster& roster,
            const Views& views, const FleetSizes& sizes)
      : options_(options), roster_(roster), views_(views), sizes_(sizes) {}

  // `first`: the run takes configuration and layout of this peer.
  // kFailedPrecondition: it does not fit the run; kInvalidArgument: the request
  // is malformed.
  absl::Status Check(const Registration& r, bool first) const;
  // Sets standing and needs_parameters of `member` for its new incarnation.
  // kFailedPrecondition: the fleet has no place for it; kUnavailable: not now.
  absl::Status Classify(const Registration& r, MemberRecord& member,
                        absl::Time now) const;

 private:
  // The check for a run that gathers its first members, or that is over.
  absl::Status CheckGathering(const Registration& r, bool known) const;

  const FleetOptions& options_;
  const Roster& roster_;
  const Views& views_;
  const FleetSizes& sizes_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_REGISTRAR_H_
