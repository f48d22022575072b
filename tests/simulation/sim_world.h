// The surroundings of the processes of a simulation: the state that all of them
// share, and the machines, which outlive their processes.
//
// This header knows nothing of what a process does.

#ifndef GOSSAMER_TESTS_SIMULATION_SIM_WORLD_H_
#define GOSSAMER_TESTS_SIMULATION_SIM_WORLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "algorithms/base/ids.h"
#include "algorithms/compress/codec.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/sim_service.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/simulation/correction_ledger.h"
#include "tests/simulation/fault_counts.h"
#include "tests/simulation/given_states.h"
#include "tests/simulation/memory_disk.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/view_watch.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer::simulation {

struct SimWorld {
  const Scenario& scenario;
  VirtualLoop& loop;
  SimNetwork& network;
  SimService& service;
  FakeNccl& nccl;
  CorrectionLedger& ledger;
  const std::shared_ptr<const Codec>& codec;
  const DiskSession::Errors& disk_errors;
  KnownViews& views;
  const bool& calm;  // nothing but mixing moves parameters
  GivenStates& given;
  FaultCounts& counts;
  // Reports a violation of an invariant.
  std::function<void(const std::string&)> violation;
  // Writes a line of a peer to the trace.
  std::function<void(PeerId, const std::string& what)> tell;
  // Folds a value into the trace's hash.
  std::function<void(uint64_t)> note;
};

struct SimMachine {
  static constexpr char kCheckpoints[] = "checkpoints";  // folder of `disk`
  static constexpr char kLastView[] = "view.pb";         // a file of it

  PeerId id;
  MemoryDisk disk;
  // Incarnations of the peer so far; machines of one peer share the count.
  std::shared_ptr<uint64_t> incarnations = std::make_shared<uint64_t>(0);
  // Round of the newest checkpoint that was reported as saved and not given up.
  uint64_t saved_round = 0;
  // Incarnations that ended well and left no record to the next: they have left
  // the fleet, or the disk did not take their last checkpoint.
  std::set<uint64_t> unsaved;
  uint64_t rounds_done = 0;    // peer-rounds, over all processes
  std::vector<float> last;     // parameters at the end of the last process
  std::vector<float> brought;  // MixingHooks::Added, without inactive edges
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_SIM_WORLD_H_
