// A round of a run that learns from votes: the student, peer 1, asks all groups
// of teachers about a batch of images, pays for the noisy sum of their votes
// and learns from it; a group answers the question.
//
// Source: Wang et al., "DataLens", CCS 2021, arXiv 2103.11109.  This header
// knows nothing of networks or mixing.

#ifndef GOSSAMER_RUNTIME_PEER_VOTE_TRAINER_H_
#define GOSSAMER_RUNTIME_PEER_VOTE_TRAINER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/rng.h"
#include "algorithms/game/game.h"
#include "runtime/base/event_loop.h"
#include "runtime/checkpoint/privacy_ledger.h"
#include "runtime/peer/adopted_view.h"
#include "runtime/peer/lifecycle.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/step_runner.h"
#include "runtime/peer/stop_rule.h"
#include "runtime/peer/trainer.h"
#include "runtime/peer/training_state.h"
#include "runtime/peer/vote_budget.h"
#include "runtime/peer/vote_exchange.h"
#include "runtime/peer/waiter.h"
#include "runtime/replay/decisions.h"

namespace gossamer {

// The parts of a process that votes need.
struct VotingParts {
  // The student's: of the noise.  A reader who knows it can remove the noise.
  RngKey noise = RngKey(0);
  // The same after a restart.
  bool noise_repeats = false;
  // The student's; null: what is spent is not kept.
  PrivacyLedger* ledger = nullptr;
  // Takes lines for the eyes of this machine alone; may be empty.
  std::function<void(const std::string&)> note = {};
};

class VoteTrainer final : public Trainer {
 public:
  struct Parts {
    EventLoop* loop = nullptr;
    Waiter* waiter = nullptr;
    Transport* transport = nullptr;
    Decisions* decisions = nullptr;
    AdoptedView* views = nullptr;
    Lifecycle* lifecycle = nullptr;
    TrainingState* state = nullptr;
    StepRunner* runner = nullptr;
    const StopRule* stop = nullptr;
    Reporter* reporter = nullptr;
    VotingRole role = {};
    VotingParts voting = {};
  };
  // All outlive it.
  VoteTrainer(const PeerSpec& spec, Parts parts);

  absl::Status OnView(bool first, const SavedEdges& saved) override;
  void Reset() override {}
  Task<absl::Status> Round() override;
  uint64_t NextRound() override { return parts_.state->round() + 1; }
  bool IsLast() const override;
  bool Abandoned() const override { return exchange_.Abandoned(); }
  void AnnounceEnd() override { exchange_.AnnounceEnd(); }
  std::vector<PeerId> NotEnded() const override { return exchange_.NotEnded(); }
  absl::Duration DrainLimit() const override;
  absl::Status OnFrame(PeerId peer, const Frame& frame) override {
    return exchange_.OnFrame(peer, frame);
  }
  void OnUp(PeerId peer) override { exchange_.OnUp(peer); }

 private:
  Task<absl::Status> AskTeachers();
  Task<absl::Status> AnswerStudent();
  // Waits for the others' part of this round, or ends the rounds if it will not
  // come because the run ends before it.
  Task<absl::Status> Await(std::function<bool()> here);
  // On the compute engine.
  absl::Status Learn();
  void NoteAbstaining();
  absl::Status EndSpent();
  absl::Status Stop();
  absl::Status CannotGoOn(const absl::Status& why) const;

  const PeerSpec& spec_;
  const Parts parts_;
  VoteBudget budget_;
  VoteExchange exchange_;
  bool noted_ = false;  // the teachers that abstain
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_VOTE_TRAINER_H_
