#include "runtime/datalens/kept_state.h"

#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/privacy/settings.h"

namespace gossamer {
namespace {

constexpr char kRun[] = "datalens";
constexpr char kSettingsName[] = "settings";

std::vector<std::byte> BytesOf(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

uint64_t HashOf(std::string_view settings) {
  return RngKey(0).Fold("kept state").Fold(settings).Bits(0);
}

CheckpointId IdOf(const KeptOptions& options, uint64_t step) {
  return {.run_id = kRun,
          .peer_id = options.peer.value,
          .round = step,
          .configuration_hash = HashOf(options.settings)};
}

}  // namespace

KeptState::KeptState(KeptOptions options)
    : options_(std::move(options)),
      store_(options_.folder, options_.keep, *options_.files) {}

absl::StatusOr<std::unique_ptr<KeptState>> KeptState::Open(
    KeptOptions options) {
  std::unique_ptr<KeptState> made(new KeptState(std::move(options)));
  GOSSAMER_ASSIGN_OR_RETURN(const auto list, made->store_.List());
  for (const StoredCheckpoint& stored : list) {
    if (!stored.whole.ok()) {
      made->damaged_.emplace(stored.round, stored.whole.message());
      continue;
    }
    GOSSAMER_RETURN_IF_ERROR(made->CheckOwn(stored.id));
    made->steps_.insert(stored.round);
  }
  if (made->steps_.empty() && !made->damaged_.empty()) {
    return absl::DataLossError(absl::StrCat("nothing whole to go on from: ",
                                            made->damaged_.rbegin()->second));
  }
  return made;
}

absl::Status KeptState::CheckOwn(const CheckpointId& id) {
  if (id == IdOf(options_, id.round)) return absl::OkStatus();
  std::string difference = absl::StrCat("peer ", options_.peer.value,
                                        " here, peer ", id.peer_id, " there");
  if (id.run_id != kRun) {
    difference = absl::StrCat("it is of the run \"", id.run_id, "\"");
  } else if (id.peer_id == options_.peer.value) {
    GOSSAMER_ASSIGN_OR_RETURN(const Checkpoint other, store_.Load(id.round));
    const auto found = other.bytes.find(kSettingsName);
    const auto* text =
        found == other.bytes.end()
            ? ""
            : reinterpret_cast<const char*>(found->second.data());
    difference = DifferenceOf(
        options_.settings,
        {text, found == other.bytes.end() ? 0 : found->second.size()});
  }
  return absl::FailedPreconditionError(absl::StrCat(
      options_.folder, " was kept with other settings: ", difference,
      ". Go on with the same ones, or begin anew in another folder; what was "
      "spent on the same data stays spent"));
}

// The settings are saved too, so that a mismatch can be named.
void KeptState::VisitAll(StateVisitor& visitor,
                         absl::FunctionRef<void(StateVisitor&)> visit) {
  std::vector<std::byte> settings = BytesOf(options_.settings);
  visitor.Bytes(kSettingsName, settings);
  PrefixedVisitor own(visitor, "state.");
  visit(own);
}

absl::Status KeptState::Save(uint64_t step,
                             absl::FunctionRef<void(StateVisitor&)> visit) {
  GOSSAMER_ASSIGN_OR_RETURN(
      const Checkpoint checkpoint,
      TakeCheckpoint(IdOf(options_, step),
                     [&](StateVisitor& v) { VisitAll(v, visit); }));
  GOSSAMER_RETURN_IF_ERROR(store_.Save(checkpoint));
  steps_.insert(step);
  while (steps_.size() > static_cast<size_t>(options_.keep)) {
    steps_.erase(steps_.begin());
  }
  return absl::OkStatus();
}

absl::Status KeptState::GoTo(uint64_t step,
                             absl::FunctionRef<void(StateVisitor&)> visit) {
  GOSSAMER_ASSIGN_OR_RETURN(const Checkpoint checkpoint, store_.Load(step));
  GOSSAMER_RETURN_IF_ERROR(RestoreCheckpoint(
      checkpoint, [&](StateVisitor& v) { VisitAll(v, visit); }));
  GOSSAMER_RETURN_IF_ERROR(store_.RemoveAfter(step));
  steps_.erase(steps_.upper_bound(step), steps_.end());
  return absl::OkStatus();
}

PrivacyLedger::PrivacyLedger(std::unique_ptr<KeptState> entries)
    : entries_(std::move(entries)) {
  if (!entries_->steps().empty()) spent_ = *entries_->steps().rbegin();
}

absl::StatusOr<std::unique_ptr<PrivacyLedger>> PrivacyLedger::Open(
    KeptOptions options) {
  options.keep = 1;
  const std::string folder = options.folder;
  auto entries = KeptState::Open(std::move(options));
  // An older state can replace a damaged one, but an older ledger says that too
  // little is spent.  Only damage before the last entry is harmless: a removal
  // may leave it.
  if (absl::IsDataLoss(entries.status()) ||
      (entries.ok() && !(*entries)->damaged().empty() &&
       (*entries)->damaged().rbegin()->first > *(*entries)->steps().rbegin())) {
    return absl::DataLossError(
        absl::StrCat(folder,
                     " is damaged: nobody knows what is spent of the privacy "
                     "budget. Bring it back from a copy of this very moment; "
                     "without one all of the budget must count as spent"));
  }
  if (!entries.ok()) return entries.status();
  return std::unique_ptr<PrivacyLedger>(new PrivacyLedger(*std::move(entries)));
}

absl::Status PrivacyLedger::Spend(uint64_t total) {
  if (total <= spent_) return absl::OkStatus();
  GOSSAMER_RETURN_IF_ERROR(entries_->Save(total, [](StateVisitor&) {}));
  spent_ = total;
  return absl::OkStatus();
}

}  // namespace gossamer
