// Judges whether a peer's parameters and steps are worth anything, and how
// often it may recover from members if they are not.
//
// This header is pure and knows nothing of how a peer recovers.

#ifndef GOSSAMER_RUNTIME_PEER_HEALTH_H_
#define GOSSAMER_RUNTIME_PEER_HEALTH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/peer/training_state.h"

namespace gossamer {

class Health {
 public:
  // A peer that loses its parameters this often, with fewer good rounds
  // between, will not get well.
  static constexpr uint64_t kMaxInARow = 3;

  // Both outlive it.
  Health(const PeerSpec& spec, const TrainingState* state)
      : spec_(spec), state_(state) {}

  // Checks the parameters.
  bool Check();
  // The result of the last check.
  bool sound() const { return sound_; }
  // A joiner asked for the parameters and they were not sound; they have not
  // been checked since.
  bool donation_failed() const { return donation_failed_; }
  void OnDonationFailed();

  // A step has been made or skipped.  Called on the compute engine; the loop
  // reads the count after it.
  void NoteStep(bool made) { skipped_ = made ? 0 : skipped_ + 1; }
  // Steps skipped, one after the other.
  uint64_t skipped() const { return skipped_; }
  // No step has succeeded for long; mixing may bring a peer back.
  bool CannotStep() const;
  bool Diverged() const { return !sound_ || CannotStep(); }

  void EndRound() { ++rounds_; }
  // Rounds of this incarnation.
  uint64_t rounds() const { return rounds_; }
  void BeginIncarnation() { rounds_ = 0; }

  // kDataLoss if this peer has recovered too often already.
  absl::Status MayRecover();
  // It takes what members have: whatever was wrong is over.
  void Recover();
  // Recoveries since the start, and those without many good rounds between.
  uint64_t recoveries() const { return recoveries_; }
  uint64_t in_a_row() const { return in_a_row_; }

 private:
  const PeerSpec& spec_;
  const TrainingState* const state_;
  bool sound_ = true;
  bool donation_failed_ = false;
  uint64_t skipped_ = 0;
  uint64_t rounds_ = 0;
  uint64_t recoveries_ = 0, in_a_row_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_HEALTH_H_
