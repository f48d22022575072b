// Checkpoints of one peer on disk: whole or absent.
//
//   <folder>/round-120/state.safetensors   floats and bytes, by name
//   <folder>/round-120/manifest.textproto  who, when, counters, SHA-256
//
// A checkpoint is written beside its name, synced, renamed, and the folder
// synced; older ones go only after that, and lose their name before their
// files.  A file that is read back is checked against its SHA-256 first.  Knows
// nothing of what the state means.
// Source: the protocol is that of Pillai et al., "All File Systems Are Not
// Created Equal", OSDI 2014, section 4 (sync the file, rename, sync the
// folder).

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_STORE_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/file_ops.h"

namespace gossamer {

// One checkpoint as it lies there.
struct StoredCheckpoint {
  uint64_t round = 0;
  absl::Status whole;  // OK, or what is wrong with it
  uint64_t bytes = 0;  // of its state; 0 if that is not known
  CheckpointId id;     // if it is whole
};

// One thread at a time; Save may run apart from the loop.  Another process may
// read meanwhile.
class CheckpointStore {
 public:
  // `folder` is made when first needed.  `keep` >= 1 newest ones stay.
  CheckpointStore(std::string folder, int keep,
                  FileOps& files = SystemFileOps());

  // Replaces one of the same round; later ones are set aside.  On any error
  // (kResourceExhausted for a full disk) all earlier checkpoints are as before.
  absl::Status Save(const Checkpoint& checkpoint);

  // Rounds of the checkpoints that are whole by their SHA-256, ascending.
  // None if the folder cannot be read: List says why.
  std::vector<uint64_t> Rounds() const;

  // All there are, whole or not, ascending.  Not those that have gone by the
  // time they are looked at.
  absl::StatusOr<std::vector<StoredCheckpoint>> List() const;
  // The same of those that SetAsideAfter has put away.
  absl::StatusOr<std::vector<StoredCheckpoint>> ListSetAside() const;

  // kNotFound: there is none.  kDataLoss: it is damaged, saying how.
  absl::StatusOr<Checkpoint> Load(uint64_t round) const;
  // The newest whole one.  Damaged ones are passed over; `passed_over`, if
  // given, learns why.  kNotFound: none is whole.
  absl::StatusOr<Checkpoint> LoadNewest(
      std::vector<absl::Status>* passed_over = nullptr) const;

  // Removes those after `round`: the fleet goes on from there, and what was
  // saved later belongs to a past that others no longer share.
  absl::Status RemoveAfter(uint64_t round);
  // The same, but the newest of them that is whole, or cannot be read at the
  // moment, stays under another name, which nothing reads by itself, in place
  // of what was set aside before: people may want it back.  On an error it is
  // where it was.  Its round; 0: there was none.
  absl::StatusOr<uint64_t> SetAsideAfter(uint64_t round);
  // Gives one that was set aside its name back, so that it is the newest, as
  // before.  On an error it is under one of the two names, whole.
  // kFailedPrecondition: there is one of that round or a later one, and the
  // words say what to do.  kNotFound, kDataLoss: Load's.
  absl::Status PutBack(uint64_t round);
  // The reason for which PutBack would refuse.
  absl::Status CheckPutBack(uint64_t round) const;

 private:
  // Which of two checkpoints of a round: the one that peers go on from, or the
  // one that was set aside.
  enum class Which { kOfTheRun, kSetAside };

  std::string PathOf(uint64_t round) const;
  std::string PathAside(uint64_t round) const;
  std::string Stored(uint64_t round, Which which = Which::kOfTheRun) const;
  absl::Status Remove(const std::vector<uint64_t>& rounds);
  absl::Status RemovePaths(const std::vector<std::string>& paths);
  absl::StatusOr<std::vector<uint64_t>> Folders(
      Which which = Which::kOfTheRun) const;
  absl::StatusOr<std::vector<StoredCheckpoint>> List(Which which) const;
  absl::Status RemoveOld(uint64_t saved);
  absl::Status WriteAside(const Checkpoint& checkpoint,
                          const std::string& path);
  absl::Status Publish(const std::string& aside, uint64_t round);
  absl::StatusOr<wire::CheckpointManifest> ReadManifest(uint64_t round,
                                                        Which which) const;
  absl::StatusOr<wire::CheckpointManifest> Verify(
      uint64_t round, Which which = Which::kOfTheRun) const;

  const std::string folder_;
  const size_t keep_;
  FileOps& files_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_STORE_H_
