// A round of gossip: emit a snapshot of x on every edge of the row, make a
// local step, complete the exchanges that are due, x += c · D each.
//
// This header knows nothing of how edges carry exchanges (neighborhood.h), or
// of members that come and go (member_edges.h).  Source: Liu et al., "A
// Decentralized Parallel Algorithm for Training Generative Adversarial Nets",
// NeurIPS 2020, with the overlap h of this project; Chebyshev's weights as in
// Arioli and Scott, 2014.

#ifndef GOSSAMER_RUNTIME_PEER_GOSSIP_TRAINER_H_
#define GOSSAMER_RUNTIME_PEER_GOSSIP_TRAINER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "algorithms/kernels/device_queue.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/neighborhood/round_chooser.h"
#include "runtime/peer/adopted_view.h"
#include "runtime/peer/common_state.h"
#include "runtime/peer/health.h"
#include "runtime/peer/member_edges.h"
#include "runtime/peer/neighbor_watch.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/step_runner.h"
#include "runtime/peer/stop_rule.h"
#include "runtime/peer/trainer.h"
#include "runtime/peer/waiter.h"
#include "runtime/replay/decisions.h"

namespace gossamer {

class GossipTrainer final : public Trainer {
 public:
  struct Parts {
    EventLoop* loop = nullptr;
    Waiter* waiter = nullptr;
    const Membership* membership = nullptr;
    Decisions* decisions = nullptr;
    Neighborhood* neighborhood = nullptr;
    AdoptedView* views = nullptr;
    MemberEdges* edges = nullptr;
    NeighborWatch* watch = nullptr;
    TrainingState* state = nullptr;
    Health* health = nullptr;
    StepRunner* runner = nullptr;
    const StopRule* stop = nullptr;
    Reporter* reporter = nullptr;
    LocalStep* step = nullptr;
    // No step is under way any more.
    std::function<void()> after_step;
  };
  // All of them outlive this object.  Observes the edges that are added from
  // now on.
  GossipTrainer(const PeerSpec& spec, Parts parts);

  absl::Status OnView(bool first, const SavedEdges& saved) override;
  void Reset() override { rows_.clear(); }
  void OnAnswer() override;
  Task<absl::Status> Round() override;
  uint64_t NextRound() override;
  bool Drain() override;
  absl::Duration DrainLimit() const override;

 private:
  using Row = std::vector<RowEntry>;

  Task<absl::Status> Overlapped(const Row& row);
  Task<absl::Status> Mix(const Row& row);
  Task<absl::Status> Emit(std::span<const RowEntry> row, ExchangeId id);
  Task<absl::Status> DeviceDone();
  Task<absl::Status> Step();
  Task<absl::Status> Complete(ExchangeId limit);
  Task<absl::Status> CompleteDue(uint64_t round);
  Task<bool> AwaitNeighbours(std::span<const RowEntry> row, ExchangeId id);
  Task<absl::Status> Await(std::span<const RowEntry> row, ExchangeId id);
  Task<absl::Status> Repeat(std::function<bool()> possible);
  void Accelerate(double omega);
  bool Contributes();
  bool CompleteAtEnd(ExchangeId limit);

  const PeerSpec& spec_;
  const Parts parts_;
  Neighborhood& neighborhood_;
  CommonState common_;
  RoundChooser round_chooser_;
  std::map<uint64_t, Row> rows_;  // of rounds not due yet
  // Chebyshev only: x before the phase, and by how much the one before moved x.
  DeviceVector<float> before_, moved_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_GOSSIP_TRAINER_H_
