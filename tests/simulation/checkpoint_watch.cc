#include "tests/simulation/checkpoint_watch.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "algorithms/edge/saved_edge.h"
#include "runtime/checkpoint/checkpoint_store.h"

namespace gossamer::simulation {

// The disk without read errors, to see what is there.
DiskSession CheckpointWatch::SoundDisk() {
  static constexpr DiskSession::Errors kNone;
  return {&machine_->disk, crash_, &kNone, key_};
}

void CheckpointWatch::CheckSaved() {
  DiskSession sound = SoundDisk();
  const CheckpointStore store(SimMachine::kCheckpoints, 1, sound);
  const std::vector<uint64_t> rounds = store.Rounds();
  if (machine_->saved_round == 0) return;
  if (rounds.empty() || rounds.back() < machine_->saved_round) {
    violation_(absl::StrFormat(
        "the checkpoint of round %d was saved and is lost; the newest is %d",
        machine_->saved_round, rounds.empty() ? 0 : rounds.back()));
  }
}

void CheckpointWatch::BeginAt(uint64_t round) {
  machine_->saved_round = std::min(machine_->saved_round, round);
}

void CheckpointWatch::OnEvent(const Event& event, uint64_t incarnation) {
  if (event.kind == "left") {
    machine_->unsaved.insert(incarnation);
  } else if (event.kind == "checkpoint") {
    machine_->saved_round = std::stoull(event.detail.substr(6));
    machine_->unsaved.erase(incarnation);
  } else if (event.kind == "checkpoint_failed") {
    machine_->unsaved.insert(incarnation);
    if (event.round < machine_->saved_round) {
      machine_->saved_round = 0;  // its past may have been set aside
    }
  } else if (event.kind == "checkpoint_aside") {
    CheckSetAside(event.detail);
  }
}

// Checks that a set-aside checkpoint is where its event says.
void CheckpointWatch::CheckSetAside(const std::string& told) {
  for (const absl::string_view word : absl::StrSplit(told, ' ')) {
    if (!absl::StartsWith(word, "set-aside-")) continue;
    const std::string path = absl::StrCat(SimMachine::kCheckpoints, "/", word);
    if (SoundDisk().Exists(path + "/manifest.textproto")) return;
  }
  violation_(absl::StrCat("it is not there: ", told));
}

std::vector<PeerId> CheckpointWatch::Restored(uint64_t round,
                                              uint64_t incarnation) {
  std::vector<PeerId> others;
  BeginAt(round);
  DiskSession sound = SoundDisk();
  const auto saved =
      CheckpointStore(SimMachine::kCheckpoints, 1, sound).Load(round);
  if (saved.ok()) {
    for (const auto& [name, bytes] : saved->bytes) {
      if (!absl::StartsWith(name, kEdgePrefix)) continue;
      const auto edge = DecodeSavedEdge(bytes);
      if (!edge.ok()) continue;
      const PeerId other{std::stoull(name.substr(kEdgePrefix.size()))};
      others.push_back(other);
      ledger_.Resume(
          {machine_->id, other, edge->record.epoch, edge->record.peer_epoch},
          incarnation, edge->record.done, edge->record.cut);
    }
  }
  // A service with an old disk admits again a peer that has left, or whose last
  // checkpoint is missing.  Its saved state lacks the exchanges that others
  // have completed with it since.
  for (const uint64_t earlier : std::exchange(machine_->unsaved, {})) {
    ledger_.Crash(machine_->id, earlier);
  }
  return others;
}

}  // namespace gossamer::simulation
