// Checks that the checkpoints which a peer reports are on its machine's disk,
// through all of its processes.
//
// This header knows nothing of parameters; of edges it reports to the ledger
// which corrections a restored checkpoint holds.

#ifndef GOSSAMER_TESTS_SIMULATION_CHECKPOINT_WATCH_H_
#define GOSSAMER_TESTS_SIMULATION_CHECKPOINT_WATCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/ids.h"
#include "algorithms/base/rng.h"
#include "runtime/sim/crash_point.h"
#include "runtime/telemetry/metrics.h"
#include "tests/simulation/correction_ledger.h"
#include "tests/simulation/memory_disk.h"
#include "tests/simulation/sim_world.h"

namespace gossamer::simulation {

// The watch of one process; what the next one must know is the machine's.
class CheckpointWatch {
 public:
  // The pointers and `ledger` outlive it.
  CheckpointWatch(SimMachine* machine, CrashPoint* crash, RngKey key,
                  CorrectionLedger& ledger,
                  std::function<void(const std::string& what)> violation)
      : machine_(machine),
        crash_(crash),
        key_(key),
        ledger_(ledger),
        violation_(std::move(violation)) {}

  // Checks that a saved checkpoint is there, whatever happened to the disk.
  void CheckSaved();
  // The peer begins by a view that goes on from `round`: it gives up the
  // checkpoints after that, and has none yet of the parameters that others give
  // it.
  void BeginAt(uint64_t round);
  // Takes an event of the incarnation.
  void OnEvent(const Event& event, uint64_t incarnation);
  // The checkpoint of `round` has just been restored: the corrections in it
  // count as applied.  Returns the peers of its edges.
  std::vector<PeerId> Restored(uint64_t round, uint64_t incarnation);

 private:
  DiskSession SoundDisk();
  void CheckSetAside(const std::string& told);

  SimMachine* const machine_;
  CrashPoint* const crash_;
  const RngKey key_;
  CorrectionLedger& ledger_;
  const std::function<void(const std::string&)> violation_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_CHECKPOINT_WATCH_H_
