// The files of one life of a peer process: what it decides and what it hears.

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/peer/peer_process.h"

namespace gossamer {

std::string PeerProcess::LifeFile(const std::string& folder,
                                  std::string_view name,
                                  std::string_view suffix) const {
  std::string path = absl::StrCat(folder, "/", std::string(name));
  if (options_.resume) {
    absl::StrAppend(&path, "-", absl::ToUnixSeconds(loop_.Now()));
  }
  return absl::StrCat(path, ".", std::string(suffix));
}

absl::Status PeerProcess::OpenInputs(const std::string& folder) {
  if (!options_.record) return absl::OkStatus();
  GOSSAMER_ASSIGN_OR_RETURN(
      inputs_,
      InputsWriter::Open(LifeFile(folder, "inputs", "bin"),
                         {.self = {id_},
                          .layout = game_->layout().fingerprint(),
                          .view = [this] { return membership_->view(); }},
                         [this](const absl::Status& why) {
                           Log(absl::StrCat("--record: ", why.message()));
                         }));
  return absl::OkStatus();
}

absl::Status PeerProcess::OpenDecisions(const std::string& folder) {
  if (recorded_ != nullptr) return absl::OkStatus();
  if (!options_.replay.empty()) {
    std::ifstream file(options_.replay);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--replay ", options_.replay,
          ": cannot be read; peers keep theirs in peer-N/decisions.log"));
    }
    absl::StatusOr<Decisions> decisions = Decisions::Replay(text.str());
    if (!decisions.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--replay ", options_.replay, ": ", decisions.status().message()));
    }
    decisions_ = *std::move(decisions);
    return absl::OkStatus();
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      decision_log_,
      DecisionLog::Open(LifeFile(folder, "decisions", "log"),
                        static_cast<LogLimit>(1e6 * options_.log_limit),
                        [this](const absl::Status& why) {
                          Log(absl::StrCat("decisions: ", why.message()));
                        }));
  decisions_ =
      Decisions([this](const std::string& line) { decision_log_->Add(line); });
  return absl::OkStatus();
}

}  // namespace gossamer
