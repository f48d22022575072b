// The checkpoints of a peer: taken at a round's boundary, saved once its edges
// have sealed their records, and gone on from as a first view begins.
//
// Taking copies the state; on the host, the optimizer's vectors are copied
// during the next gradient.  The files are written by an engine of their own,
// so no round waits for a disk.
//
// This header knows nothing of views beyond where one begins, or of what a
// state is made of.

#ifndef GOSSAMER_RUNTIME_PEER_CHECKPOINTER_H_
#define GOSSAMER_RUNTIME_PEER_CHECKPOINTER_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/throttle.h"
#include "algorithms/edge/edge.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/training_state.h"
#include "topology/view.h"

namespace gossamer {

class Checkpointer {
 public:
  // All outlive it; `store` may be null: nothing is saved.  `disk` alone reads
  // and writes files.
  Checkpointer(const PeerSpec& spec, ComputeEngine* disk,
               CheckpointStore* store, Neighborhood* neighborhood,
               TrainingState* state, Reporter* reporter);
  ~Checkpointer();

  bool saves() const { return store_ != nullptr; }
  // Takes the memory of a checkpoint: new pages would cost the first round that
  // has one more than the copy.
  void Reserve();
  // Whether BeginIfDue() will take one.
  bool Begins() const { return Due() && !Full(); }
  // Takes the one of this boundary if it is due.  While the disk is behind, or
  // as many wait for their neighbours as exchanges overlap with, the boundary
  // has none, which is reported.
  void BeginIfDue();
  // Takes the one of the end.  `own`: the state is this peer's to save.  The
  // edges begin their records with a checkpoint or without: the other ends
  // seal theirs by them.
  void BeginLast(bool own);
  // Begins to write the first in hand if its edges are sealed, or if it has
  // waited long enough.
  void WriteIfSealed();
  // Writes those in hand, sealed or not, and waits until all are written; of a
  // peer that has little time the newest alone.
  Task<bool> Finish(bool newest);
  // Those in hand are of an incarnation that is over.
  void Discard() { taken_.clear(); }

  struct Resumed {
    SavedEdges edges;
    bool state = false;  // it has been restored, too
  };
  // Restores what the first view that is known begins from, and sets later
  // checkpoints aside.  While files are read `view` may become one that begins
  // elsewhere, or without this peer; `out_of_time`: this peer waits for nothing
  // any longer.
  Task<absl::StatusOr<Resumed>> Resume(const View& view,
                                       std::function<bool()> out_of_time);

 private:
  struct Taken {
    Checkpoint checkpoint;
    DeferredCopy deferred;  // into it: threads that copy hold both
  };
  // The one that is being written.
  struct Writing {
    std::shared_ptr<Taken> taken;
    uint64_t began = 0;  // the round
    SavedEdges edges;
    uint64_t bytes = 0;  // of both
    absl::Status saved;
    absl::StatusOr<uint64_t> free;  // bytes that the disk has left behind it
    Pending<bool> over;
  };

  // Whether this boundary has one by the configuration.
  bool Due() const;
  bool Full() const;
  // Takes the memory of the records of edges that have none yet.
  void ReserveEdges();
  // False: there is nothing to save, which is reported.
  bool Take();
  void Write();
  void ReportSkipped();
  void ReportRoom();
  // Reports, once, if a disk with so many `free` bytes has no room for as many
  // checkpoints of `bytes` as are to be kept, beside those that are `there`.
  void ReportTightDisk(uint64_t bytes, const absl::StatusOr<uint64_t>& free,
                       size_t there);
  CheckpointId OwnId() const;
  absl::StatusOr<SavedEdges> Restore(Checkpoint& saved);
  void ReportDamaged(const absl::StatusOr<std::vector<StoredCheckpoint>>& list,
                     const absl::Status& kept);

  const PeerSpec& spec_;
  ComputeEngine* const disk_;
  CheckpointStore* const store_;
  Neighborhood* const neighborhood_;
  TrainingState* const state_;
  Reporter* const reporter_;
  std::deque<std::shared_ptr<Taken>> taken_;  // in order; edges not yet sealed
  std::shared_ptr<Writing> writing_;
  // A checkpoint that is written, and records: their memory is used again.
  Checkpoint spare_;
  SavedEdges spare_edges_;
  bool reserving_ = false;         // the disk's thread takes memory of records
  size_t there_ = 0;               // checkpoints, at the start
  absl::StatusOr<uint64_t> free_;  // bytes of the disk, once Resume() has asked
  bool told_tight_ = false;
  bool saved_one_ = false;      // since then
  uint64_t skipped_ = 0;        // boundaries that were due and have none
  Throttle skips_;              // of their reports, by count
  uint64_t reported_gone_ = 0;  // of store_->gone_for_room()
  Throttle gone_;
  // Callbacks of the disk hold it weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_CHECKPOINTER_H_
