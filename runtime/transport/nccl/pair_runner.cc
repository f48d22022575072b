#include "runtime/transport/nccl/pair_runner.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/transport/nccl/watchdog.h"

namespace gossamer {

// One operation at a time, in the order that all peers share: the pair that is
// first of all has no other before it at either end, so it takes place.
void PairRunner::Launch() {
  while (const NcclPair* const pair = queue_->Next()) {
    NcclGroups::Group* const group = groups_->Find(pair->key);
    if (group == nullptr || !group->comm.ready()) {
      queue_->Skip();
      continue;
    }
    queue_->Begin();
    since_ = loop_->Now();
    const absl::Status begun = group->comm.Exchange(
        *group->plan.RankOf(pair->position.peer), pair->terms->body,
        pair->terms->size, pair->terms->name);
    if (!begun.ok()) {
      groups_->End(
          pair->key, NcclEvent::kFailed,
          absl::StrCat("the exchange with peer ", pair->position.peer.value,
                       ": ", std::string(begun.message())));
    }
  }
  const std::optional<uint64_t> meeting = queue_->Meeting();
  if (!meeting || groups_->Find(*meeting)->comm.busy()) return;
  const absl::Status begun = groups_->Find(*meeting)->comm.Meet(*meeting);
  if (!begun.ok()) {
    groups_->End(*meeting, NcclEvent::kFailed, std::string(begun.message()));
  }
}

void PairRunner::PollMeeting(uint64_t key) {
  NcclCommunicator& comm = groups_->Find(key)->comm;
  if (!comm.busy()) return;
  const auto completed = comm.PollOperation();
  if (!completed.ok()) {
    groups_->End(key, NcclEvent::kFailed,
                 std::string(completed.status().message()));
  } else if (completed->has_value()) {
    queue_->FinishMeeting();
    groups_->OnMet(key);
  }
}

std::optional<PairRunner::Completed> PairRunner::Poll(absl::Time now) {
  if (const auto meeting = queue_->Meeting()) PollMeeting(*meeting);
  const NcclPair* const pair = queue_->under_way();
  if (pair == nullptr) return std::nullopt;
  const uint64_t key = pair->key;
  absl::StatusOr<std::optional<SharedBytes>> completed =
      groups_->Find(key)->comm.PollOperation();
  if (completed.ok() && completed->has_value()) {
    return Completed{queue_->Finish(), **std::move(completed)};
  }
  const std::string what =
      absl::StrCat("the exchange with peer ", pair->position.peer.value);
  if (!completed.ok()) {
    groups_->End(
        key, NcclEvent::kFailed,
        absl::StrCat(what, ": ", std::string(completed.status().message())));
  } else if (IsLate(since_, deadline_, now)) {
    groups_->End(
        key, NcclEvent::kLate,
        absl::StrCat(what, " has taken ", absl::FormatDuration(now - since_)));
  }
  return std::nullopt;
}

}  // namespace gossamer
