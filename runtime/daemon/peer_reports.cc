// The reports of a process: lines of its log, and events.

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/descriptor_limit.h"
#include "runtime/daemon/peer_process.h"

namespace gossamer {

// Warns if fewer connections have room than there may be: those that do not fit
// are shut down, and are tried again.
void PeerProcess::WarnOfRoom(size_t room) const {
  const RunConfig& config = options_.config;
  const std::string shortage = DescribeShortage(
      room,
      size_t{config.peers() - 1} *
          std::max<size_t>(1, config.resources().connections()),
      "connections of peers");
  if (!shortage.empty()) Log(shortage);
}

void PeerProcess::CheckTrust() {
  const absl::Time now = loop_.Now();
  if (options_.certificates != nullptr) {
    const std::string problem = options_.certificates->Problem();
    // The folder is looked at each second; the same problem is reported once.
    if (!problem.empty() && problem != trust_problem_) {
      Report("trust_unread", problem);
      Log(problem);
    }
    trust_problem_ = problem;
    // The question comes only once there is a file that keeps the event: it is
    // reported once a day.
    const std::string expiry =
        sink_ == nullptr ? "" : options_.certificates->TakeExpiryWarning();
    if (!expiry.empty()) {
      Report("certificate_expires", expiry);
      Log(expiry);
    }
  } else if (options_.insecure && now >= reminds_at_) {
    Log("warning: --insecure: anybody who reaches these ports can read and "
        "change the model");
    reminds_at_ = now + absl::Minutes(1);
  }
  loop_.RunAt(now + absl::Seconds(1), [this] { CheckTrust(); });
}

void PeerProcess::ReportAndLog(EventKind kind, const std::string& detail) {
  Report(kind, detail);
  Log(absl::StrCat(std::string(kind.name()), ": ", detail));
}

// A refused view comes again with every answer, and a revoked peer dials as
// often as it likes, so refusals are reported sparingly.
void PeerProcess::NoteRefused(EventKind kind, PeerId from,
                              const absl::Status& why) {
  if (sink_ == nullptr) return;
  // The map grows with the members, not with the ids that unauthenticated
  // others claim.
  if (!membership_->view().RankOf(from)) from = {};
  Refusals& refusals = refusals_[{kind.name(), from}];
  const uint64_t news = refusals.told.Due(++refusals.seen);
  if (news == 0) return;
  Report(kind, std::string(why.message()), news);
}

void PeerProcess::Report(EventKind kind, const std::string& detail,
                         uint64_t times) {
  if (counting_ == nullptr) return;
  counting_->OnEvent({.time = loop_.Now(),
                      .round = peer_ == nullptr ? 0 : peer_->round(),
                      .kind = kind,
                      .detail = detail,
                      .times = times});
}

void PeerProcess::Log(const std::string& line) const {
  std::fprintf(
      stderr, "%s peer %llu: %s\n",
      absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()).c_str(),
      static_cast<unsigned long long>(id_), line.c_str());
}

}  // namespace gossamer
