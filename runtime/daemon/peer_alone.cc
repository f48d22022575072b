// A peer process without a service and without neighbours: --alone.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/status_macros.h"
#include "runtime/config/run_config.h"
#include "runtime/daemon/peer_process.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

constexpr char kName[] = "inputs";

absl::Status Refused(const std::string& file, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--alone ", file, ": ", std::string(why)));
}

}  // namespace

absl::Status PeerProcess::PrepareAlone() {
  absl::StatusOr<std::unique_ptr<InputsLog>> log =
      InputsLog::Open(options_.alone);
  if (!log.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--alone ", log.status().message()));
  }
  recorded_ = *std::move(log);
  View view = recorded_->view();
  if (view.configuration_hash != ConfigurationHash(options_.config)) {
    return Refused(options_.alone,
                   "that run had another configuration; take the one in its "
                   "folder, config.textproto");
  }
  id_ = recorded_->self().value;
  GOSSAMER_RETURN_IF_ERROR(
      MakeGameFor(static_cast<int>((id_ - 1) % options_.config.peers())));
  if (recorded_->layout() != game_->layout().fingerprint()) {
    return Refused(options_.alone, "that run trained another model");
  }
  GOSSAMER_RETURN_IF_ERROR(ReadDecisionsAlone());
  if (options_.from_round != 0) view.resume_round = options_.from_round;
  view.from_round = std::max<uint64_t>(1, view.resume_round);
  fleet_ = std::make_unique<StaticFleet>(std::move(view));
  GOSSAMER_RETURN_IF_ERROR(TakeCheckpoint());
  membership_ = fleet_->Join({id_}, &loop_);
  transport_ = std::make_unique<RecordedNeighbors>(&loop_, recorded_.get());
  Log(absl::StrCat("alone: ", recorded_->exchanges(),
                   " exchanges were recorded, the last of round ",
                   recorded_->last_round()));
  return absl::OkStatus();
}

// Those of the same life, and a stop where the recording ends: after it the
// neighbours have nothing to say.
absl::Status PeerProcess::ReadDecisionsAlone() {
  const fs::path inputs(options_.alone);
  std::string lines;
  const std::string stem = inputs.stem();
  if (absl::StartsWith(stem, kName)) {
    std::ifstream file(inputs.parent_path() /
                       ("decisions" + stem.substr(sizeof kName - 1) + ".log"));
    std::stringstream text;
    text << file.rdbuf();
    lines = text.str();
  }
  absl::StatusOr<Decisions> decisions = Decisions::Replay(lines);
  if (!decisions.ok()) {
    return Refused(options_.alone, std::string(decisions.status().message()));
  }
  if (options_.from_round != 0 && decisions->counts_boundaries()) {
    return Refused(options_.alone,
                   "deadlines passed in that run, and what they left out is "
                   "counted from its beginning: leave --from-round out");
  }
  if (!recorded_->end() && decisions->stop() == 0) {
    decisions = Decisions::Replay(
        absl::StrCat(lines, "stop ", recorded_->last_round() + 1, "\n"));
  }
  decisions_ = *std::move(decisions);
  return absl::OkStatus();
}

// A copy: resuming removes what is newer.
absl::Status PeerProcess::TakeCheckpoint() {
  const uint64_t round = fleet_->view().resume_round;
  if (round == 0) return absl::OkStatus();
  const std::string folder = absl::StrCat("checkpoints/round-", round);
  const fs::path from = fs::path(options_.alone).parent_path() / folder;
  const fs::path to =
      fs::path(absl::StrCat(options_.run_dir, "/peer-", id_ - 1)) / folder;
  std::error_code error;
  if (fs::equivalent(from, to, error)) {
    return Refused(options_.alone,
                   "--run-dir is that run's own folder; take another one");
  }
  if (!fs::is_directory(from, error)) {
    return Refused(
        options_.alone,
        absl::StrCat("no checkpoint of round ", round, " in ",
                     from.parent_path().string(),
                     "; gossamer checkpoint list says which there are"));
  }
  fs::remove_all(to, error);
  fs::create_directories(to, error);
  fs::copy(from, to, fs::copy_options::recursive, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot copy ", from.string(),
                                               " to ", to.string(), ": ",
                                               error.message()));
  }
  return absl::OkStatus();
}

absl::Status PeerProcess::EndAlone() {
  const auto& neighbors = static_cast<const RecordedNeighbors&>(*transport_);
  GOSSAMER_RETURN_IF_ERROR(neighbors.status());
  const std::optional<InputsLog::End> end = recorded_->end();
  if (end && end->round == peer_->round() &&
      end->parameters != Crc32c(std::as_bytes(game_->parameters()))) {
    return absl::DataLossError(
        "other bits than in the recorded run: the parameters at the end "
        "differ");
  }
  Log(absl::StrCat("the same bits as recorded: ", neighbors.equal(),
                   " payloads", end ? " and the parameters at the end" : ""));
  return absl::OkStatus();
}

}  // namespace gossamer
