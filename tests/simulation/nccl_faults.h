// The part of a scenario that is about NCCL: where peers are, and how its
// operations fail.
//
// This header knows nothing of the other faults of a seed.

#ifndef GOSSAMER_TESTS_SIMULATION_NCCL_FAULTS_H_
#define GOSSAMER_TESTS_SIMULATION_NCCL_FAULTS_H_

#include <string>

#include "algorithms/base/ids.h"
#include "runtime/transport/nccl/nccl_plan.h"
#include "runtime/transport/nccl/nccl_sum.h"
#include "runtime/transport/nccl/nccl_transport.h"
#include "tests/simulation/draws.h"
#include "tests/simulation/scenario.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer::simulation {

// Draws where the peers are; `always`: they use NCCL in every fleet, and those
// of a centralized baseline sum by it.  Otherwise a fifth of the gossiping
// fleets uses it.
void DrawNccl(Scenario& scenario, Draws draws, bool always);

NcclPlace PlaceOf(const Scenario& scenario, PeerId peer);
FakeNcclOptions FakeNcclOf(const Scenario& scenario);
// The time that the way between peers takes is added to what a real peer
// allows.
NcclOptions NcclOptionsOf(const Scenario& scenario, PeerId self);
NcclSumOptions NcclSumOptionsOf(const Scenario& scenario, PeerId self);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_NCCL_FAULTS_H_
