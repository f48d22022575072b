#include "runtime/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "runtime/checkpoint/manifest.h"

namespace gossamer {
namespace {

constexpr char kState[] = "state.safetensors";
constexpr char kManifest[] = "manifest.textproto";
// These three endings are never read as checkpoints; the next save clears them
// away.
constexpr char kAside[] = ".partial";
constexpr char kReplaced[] = ".replaced";
constexpr char kRemoving[] = ".removing";
constexpr char kRound[] = "round-";
constexpr char kSetAside[] = "set-aside-round-";
constexpr char kDamaged[] = "damaged-round-";
// A damaged file must not be read into memory whatever its size.
constexpr uint64_t kMaxManifest = 16 << 20;

absl::Status Damaged(const std::string& path, std::string_view what) {
  return absl::DataLossError(
      absl::StrCat(path, ": ", std::string(what),
                   "; delete this folder if no copy of it is whole"));
}

// Returns whether a checkpoint that could not be read may be intact all the
// same.
bool MayBeIntact(const absl::Status& status) {
  // An error of the disk may pass; damage, a missing file and another version
  // do not.
  return !absl::IsDataLoss(status) && !absl::IsNotFound(status) &&
         !absl::IsFailedPrecondition(status);
}

}  // namespace

CheckpointStore::CheckpointStore(std::string folder, int keep, FileOps& files)
    : folder_(std::move(folder)),
      keep_(static_cast<size_t>(std::max(keep, 1))),
      files_(files) {}

std::string CheckpointStore::PathOf(uint64_t round) const {
  return absl::StrCat(folder_, "/", kRound, round);
}

std::string CheckpointStore::PathAside(uint64_t round) const {
  return absl::StrCat(folder_, "/", kSetAside, round);
}

// Returns the path of a checkpoint.  A crash while one of the same round was
// replaced leaves only the older one, under its other name.
std::string CheckpointStore::Stored(uint64_t round, Which which) const {
  if (which == Which::kSetAside) return PathAside(round);
  const std::string path = PathOf(round);
  return files_.Exists(path) ? path : path + kReplaced;
}

absl::Status CheckpointStore::Remove(const std::vector<uint64_t>& rounds) {
  std::vector<std::string> paths;
  for (const uint64_t round : rounds) {
    paths.push_back(PathOf(round) + kReplaced);
    paths.push_back(PathOf(round));
  }
  return RemovePaths(paths);
}

// A folder is removed file by file, and a kill in between would leave a damaged
// checkpoint under a name that is read.  So it loses its name first.
absl::Status CheckpointStore::RemovePaths(
    const std::vector<std::string>& paths) {
  std::vector<std::string> nameless;
  for (const std::string& path : paths) {
    if (!files_.Exists(path)) continue;
    // All names go before the first file does: one sync is enough for them.
    nameless.push_back(path + kRemoving);
    GOSSAMER_RETURN_IF_ERROR(files_.Remove(nameless.back()));
    GOSSAMER_RETURN_IF_ERROR(files_.Rename(path, nameless.back()));
  }
  if (nameless.empty()) return absl::OkStatus();
  // Without the sync a loss of power may bring a name back, without its files.
  GOSSAMER_RETURN_IF_ERROR(files_.SyncFolder(folder_));
  for (const std::string& path : nameless) {
    GOSSAMER_RETURN_IF_ERROR(files_.Remove(path));
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::Save(const Checkpoint& checkpoint) {
  const uint64_t round = checkpoint.id.round;
  // A kill at any moment from here on leaves either this unread name or the
  // whole checkpoint.
  const std::string aside = PathOf(round) + kAside;
  GOSSAMER_RETURN_IF_ERROR(files_.MakeFolder(folder_));
  GOSSAMER_RETURN_IF_ERROR(files_.Remove(aside));
  absl::Status status = WriteAside(checkpoint, aside);
  while (absl::IsResourceExhausted(status) && MakeRoom(round)) {
    status = files_.Remove(aside);
    if (status.ok()) status = WriteAside(checkpoint, aside);
  }
  if (status.ok()) status = Publish(aside, round);
  if (!status.ok()) {
    // Gives the space back.  The first error is the one to report.
    files_.Remove(aside).IgnoreError();
    return status;
  }
  // Older checkpoints go only now, when the new one is durable under its name.
  return RemoveOld(round);
}

// Removes the oldest checkpoint if a newer one is intact; returns whether there
// is more room now.  One of `round` itself is about to be replaced: it stays
// until then.
bool CheckpointStore::MakeRoom(uint64_t round) {
  const absl::StatusOr<std::vector<uint64_t>> rounds = Folders();
  if (!rounds.ok() || rounds->size() < 2 || rounds->front() == round) {
    return false;
  }
  const bool newer_is_whole =
      std::any_of(rounds->begin() + 1, rounds->end(),
                  [this](uint64_t newer) { return Verify(newer).ok(); });
  if (!newer_is_whole || !Remove({rounds->front()}).ok()) return false;
  ++gone_for_room_;
  return true;
}

absl::Status CheckpointStore::RemoveOld(uint64_t saved) {
  GOSSAMER_ASSIGN_OR_RETURN(std::vector<uint64_t> rounds, Folders());
  // Later rounds belong to a past that was given up.  They would be taken for
  // the continuation of this one.
  if (!rounds.empty() && rounds.back() > saved) {
    GOSSAMER_RETURN_IF_ERROR(SetAsideAfter(saved).status());
    std::erase_if(rounds, [saved](uint64_t round) { return round > saved; });
  }
  std::vector<uint64_t> old;
  for (size_t i = 0; i + keep_ < rounds.size(); ++i) {
    // The checkpoint that was just saved stays, whatever its place in the order
    // is.
    if (rounds[i] != saved) old.push_back(rounds[i]);
  }
  GOSSAMER_RETURN_IF_ERROR(Remove(old));
  // Earlier processes may have left unfinished folders.
  GOSSAMER_ASSIGN_OR_RETURN(const auto entries, files_.Entries(folder_));
  std::vector<std::string> replaced;
  for (const std::string& name : entries) {
    const std::string path = absl::StrCat(folder_, "/", name);
    if (absl::EndsWith(name, kAside) || absl::EndsWith(name, kRemoving)) {
      GOSSAMER_RETURN_IF_ERROR(files_.Remove(path));
    } else if (absl::EndsWith(name, kReplaced)) {
      // A folder that was replaced is whole, and loses its name first like any
      // other.
      replaced.push_back(path);
    }
  }
  return RemovePaths(replaced);
}

absl::Status CheckpointStore::WriteAside(const Checkpoint& checkpoint,
                                         const std::string& path) {
  GOSSAMER_RETURN_IF_ERROR(files_.MakeFolder(path));
  const std::string state = absl::StrCat(path, "/", kState);
  SafetensorsView view = ViewOf(checkpoint);
  // Other readers of safetensors see these; the manifest is what this program
  // believes.
  view.metadata["run"] = checkpoint.id.run_id;
  view.metadata["peer"] = absl::StrCat(checkpoint.id.peer_id);
  view.metadata["round"] = absl::StrCat(checkpoint.id.round);
  wire::CheckpointManifest manifest = ManifestOf(checkpoint);
  wire::CheckpointFile& file = *manifest.add_files();
  file.set_name(kState);
  // The hash is of the bytes in memory: one that the disk changes on their way
  // is found by the next reader.
  GOSSAMER_RETURN_IF_ERROR(
      files_.WriteTensors(state, view, file.mutable_sha256()));
  GOSSAMER_ASSIGN_OR_RETURN(const uint64_t size, files_.Size(state));
  file.set_size(size);
  // The manifest is written last: without it the folder is not a checkpoint.
  GOSSAMER_RETURN_IF_ERROR(files_.WriteText(absl::StrCat(path, "/", kManifest),
                                            FormatManifest(manifest)));
  if (SeededBug("no-sync-before-rename")) return absl::OkStatus();
  return files_.SyncFolder(path);
}

absl::Status CheckpointStore::Publish(const std::string& aside,
                                      uint64_t round) {
  const std::string path = PathOf(round);
  const std::string old = path + kReplaced;
  const bool replaces = files_.Exists(path);
  if (replaces) {
    GOSSAMER_RETURN_IF_ERROR(files_.Remove(old));
    // A folder cannot be renamed over one that is not empty, so the old one
    // steps aside.  Stored() finds it if the process ends here.
    GOSSAMER_RETURN_IF_ERROR(files_.Rename(path, old));
  }
  if (absl::Status status = files_.Rename(aside, path); !status.ok()) {
    // The checkpoint before comes back: a failed save changes nothing.
    if (replaces) files_.Rename(old, path).IgnoreError();
    return status;
  }
  if (SeededBug("no-sync-after-rename")) return absl::OkStatus();
  return files_.SyncFolder(folder_);
}

absl::StatusOr<std::vector<uint64_t>> CheckpointStore::Folders(
    Which which) const {
  const absl::string_view prefix =
      which == Which::kSetAside ? kSetAside : kRound;
  std::vector<uint64_t> rounds;
  GOSSAMER_ASSIGN_OR_RETURN(const auto entries, files_.Entries(folder_));
  for (const std::string& name : entries) {
    absl::string_view number = name;
    uint64_t round = 0;
    absl::ConsumeSuffix(&number, kReplaced);
    // "round-07" is no name that this program writes; taken for round 7, it
    // would be looked for under another.
    if (absl::ConsumePrefix(&number, prefix) &&
        absl::SimpleAtoi(number, &round) && absl::StrCat(round) == number) {
      rounds.push_back(round);
    }
  }
  std::sort(rounds.begin(), rounds.end());
  // A round and its replaced folder may both be there.
  rounds.erase(std::unique(rounds.begin(), rounds.end()), rounds.end());
  return rounds;
}

std::vector<uint64_t> CheckpointStore::Rounds() const {
  std::vector<uint64_t> intact;
  const auto folders = Folders();
  if (!folders.ok()) return intact;
  for (uint64_t round : *folders) {
    // Reads every state to its end: a fleet resumes from a round only if all
    // peers are sure of theirs.
    if (Verify(round).ok() || SeededBug("unverified")) intact.push_back(round);
  }
  return intact;
}

absl::StatusOr<std::vector<StoredCheckpoint>> CheckpointStore::List() const {
  return List(Which::kOfTheRun);
}

absl::StatusOr<std::vector<StoredCheckpoint>> CheckpointStore::ListSetAside()
    const {
  return List(Which::kSetAside);
}

absl::StatusOr<std::vector<StoredCheckpoint>> CheckpointStore::List(
    Which which) const {
  std::vector<StoredCheckpoint> all;
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<uint64_t> rounds, Folders(which));
  for (uint64_t round : rounds) {
    const absl::StatusOr<wire::CheckpointManifest> manifest =
        Verify(round, which);
    // A process that saves here removes old checkpoints meanwhile.
    if (!manifest.ok() && !files_.Exists(Stored(round, which))) continue;
    StoredCheckpoint& stored = all.emplace_back();
    stored.round = round;
    stored.integrity = manifest.status();
    if (manifest.ok()) {
      // By the manifest: the file itself may be gone by now.
      stored.bytes = manifest->files(0).size();
      stored.id = IdOf(*manifest);
    } else {
      stored.bytes =
          files_.Size(absl::StrCat(Stored(round, which), "/", kState))
              .value_or(0);
    }
  }
  return all;
}

absl::StatusOr<wire::CheckpointManifest> CheckpointStore::ReadManifest(
    uint64_t round, Which which) const {
  const std::string path = absl::StrCat(Stored(round, which), "/", kManifest);
  GOSSAMER_ASSIGN_OR_RETURN(const uint64_t size, files_.Size(path));
  if (size > kMaxManifest) return Damaged(path, "over 16 MiB");
  GOSSAMER_ASSIGN_OR_RETURN(const std::string text, files_.ReadText(path));
  absl::StatusOr<wire::CheckpointManifest> manifest = ParseManifest(text);
  if (absl::IsDataLoss(manifest.status())) {
    return Damaged(path, std::string(manifest.status().message()));
  }
  if (!manifest.ok()) {
    return absl::Status(manifest.status().code(),
                        absl::StrCat(path, ": ", manifest.status().message()));
  }
  // A folder that was renamed by hand would otherwise pass for another round.
  if (manifest->round() != round || manifest->files_size() != 1 ||
      manifest->files(0).name() != kState) {
    return Damaged(path, "a manifest of something else");
  }
  return manifest;
}

absl::StatusOr<wire::CheckpointManifest> CheckpointStore::Verify(
    uint64_t round, Which which) const {
  GOSSAMER_ASSIGN_OR_RETURN(wire::CheckpointManifest manifest,
                            ReadManifest(round, which));
  const wire::CheckpointFile& file = manifest.files(0);
  const std::string path = absl::StrCat(Stored(round, which), "/", kState);
  // The size is compared first: it costs nothing, and finds a file that was cut
  // short.
  const absl::StatusOr<uint64_t> size = files_.Size(path);
  if (absl::IsNotFound(size.status())) {
    return Damaged(path, std::string(size.status().message()));
  }
  GOSSAMER_RETURN_IF_ERROR(size.status());
  if (*size != file.size()) {
    return Damaged(path,
                   absl::StrCat("has ", *size, " bytes, not ", file.size()));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const std::string sha256, files_.Sha256(path));
  if (sha256 != file.sha256()) {
    return Damaged(path, "its SHA-256 is not the manifest's");
  }
  return manifest;
}

absl::StatusOr<Checkpoint> CheckpointStore::Load(uint64_t round) const {
  GOSSAMER_ASSIGN_OR_RETURN(wire::CheckpointManifest manifest, Verify(round));
  GOSSAMER_ASSIGN_OR_RETURN(
      Safetensors state,
      files_.ReadTensors(absl::StrCat(Stored(round), "/", kState)));
  Checkpoint checkpoint;
  checkpoint.id = IdOf(manifest);
  for (auto& [name, tensor] : state.floats) {
    checkpoint.floats[name] = std::move(tensor.values);
  }
  checkpoint.bytes = std::move(state.bytes);
  for (const wire::CheckpointCounter& counter : manifest.counters()) {
    checkpoint.counters.emplace(counter.key(), counter.value());
  }
  return checkpoint;
}

absl::StatusOr<Checkpoint> CheckpointStore::LoadNewest(
    std::vector<absl::Status>* passed_over) const {
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<uint64_t> rounds, Folders());
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    absl::StatusOr<Checkpoint> checkpoint = Load(*round);
    if (checkpoint.ok()) return checkpoint;
    if (passed_over != nullptr) passed_over->push_back(checkpoint.status());
  }
  return absl::NotFoundError(
      absl::StrCat(folder_, ": no whole checkpoint among ", rounds.size()));
}

absl::Status CheckpointStore::KeepDamaged(
    const std::vector<StoredCheckpoint>& found) {
  bool renamed = false;
  for (const StoredCheckpoint& stored : found) {
    const std::string kept = absl::StrCat(folder_, "/", kDamaged, stored.round);
    if (!absl::IsDataLoss(stored.integrity) || files_.Exists(kept)) continue;
    GOSSAMER_RETURN_IF_ERROR(files_.Rename(Stored(stored.round), kept));
    renamed = true;
  }
  return renamed ? files_.SyncFolder(folder_) : absl::OkStatus();
}

absl::StatusOr<uint64_t> CheckpointStore::SetAsideAfter(uint64_t round) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<uint64_t> rounds, Folders());
  uint64_t newest = 0;
  for (auto later = rounds.rbegin();
       later != rounds.rend() && *later > round && newest == 0; ++later) {
    // Only the newest that is worth keeping is kept: a person wants at most
    // that one back.
    if (MayBeIntact(Verify(*later).status())) newest = *later;
  }
  // The newest goes last: if the disk fails meanwhile, it is still there.
  std::vector<uint64_t> others;
  for (const uint64_t later : rounds) {
    if (later > round && later != newest) others.push_back(later);
  }
  GOSSAMER_RETURN_IF_ERROR(Remove(others));
  if (newest == 0) return 0;
  // The folder that the newest one had replaced goes before the rename: it
  // would pass for the newest afterwards.
  if (files_.Exists(PathOf(newest))) {
    GOSSAMER_RETURN_IF_ERROR(RemovePaths({PathOf(newest) + kReplaced}));
  }
  const std::string aside = PathAside(newest);
  GOSSAMER_RETURN_IF_ERROR(files_.Remove(aside));
  GOSSAMER_RETURN_IF_ERROR(files_.Rename(Stored(newest), aside));
  // From here on it is done.  A loss of power may bring the old name back, as a
  // loss before the rename would have.  Checkpoints set aside earlier then go
  // the next time.
  files_.SyncFolder(folder_).IgnoreError();
  const auto entries = files_.Entries(folder_);
  std::vector<std::string> before;
  for (const std::string& other :
       entries.value_or(std::vector<std::string>())) {
    if (!absl::StartsWith(other, kSetAside)) continue;
    before.push_back(absl::StrCat(folder_, "/", other));
    // The one that was set aside just now stays.
    if (before.back() == aside) before.pop_back();
  }
  RemovePaths(before).IgnoreError();
  return newest;
}

absl::Status CheckpointStore::CheckRestoreSetAside(uint64_t round) const {
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<uint64_t> rounds, Folders());
  // A peer goes on from its newest checkpoint, and later ones would be set
  // aside when it is reached.
  if (!rounds.empty() && rounds.back() >= round) {
    return absl::FailedPreconditionError(absl::StrCat(
        PathAside(round), ": it would not be the newest, for ",
        Stored(rounds.back()),
        " is there; to go on from the one that was set aside, move that one, "
        "and any other from round ",
        round, " on, to another place first"));
  }
  return Verify(round, Which::kSetAside).status();
}

absl::Status CheckpointStore::RestoreSetAside(uint64_t round) {
  GOSSAMER_RETURN_IF_ERROR(CheckRestoreSetAside(round));
  GOSSAMER_RETURN_IF_ERROR(files_.Rename(PathAside(round), PathOf(round)));
  return files_.SyncFolder(folder_);
}

}  // namespace gossamer
