// What a process tells people: lines of its log, and events.

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/descriptor_limit.h"
#include "runtime/daemon/peer_process.h"

namespace gossamer {

// Who cannot be let in is hung up on, and tries again.
void PeerProcess::WarnOfRoom(size_t room) const {
  const RunConfig& config = options_.config;
  const std::string shortage = DescribeShortage(
      room,
      size_t{config.peers() - 1} *
          std::max<size_t>(1, config.resources().connections()),
      "connections of peers");
  if (!shortage.empty()) Log(shortage);
}

void PeerProcess::LookAtDoor() {
  const absl::Time now = loop_.Now();
  if (options_.certificates != nullptr) {
    const std::string problem = options_.certificates->Problem();
    if (!problem.empty() && problem != door_problem_) {
      Tell("trust_unread", problem);
      Log(problem);
    }
    door_problem_ = problem;
    // Once there is a file that keeps it: it is said once a day.
    const std::string expiry =
        sink_ == nullptr ? "" : options_.certificates->TakeExpiryWarning();
    if (!expiry.empty()) {
      Tell("certificate_expires", expiry);
      Log(expiry);
    }
  } else if (options_.insecure && now >= reminds_at_) {
    Log("warning: --insecure: anybody who reaches these ports can read and "
        "change the model");
    reminds_at_ = now + absl::Minutes(1);
  }
  loop_.RunAt(now + absl::Seconds(1), [this] { LookAtDoor(); });
}

// Sparingly: a view that is refused comes again with every answer, and who was
// revoked dials as often as it likes.
void PeerProcess::NoteRefused(EventKind kind, PeerId from,
                              const absl::Status& why) {
  if (sink_ == nullptr) return;
  // What is kept grows with the members, not with what others say to be.
  if (!membership_->view().RankOf(from)) from = {};
  Refusals& refusals = refusals_[{kind.name(), from}];
  const uint64_t news = refusals.told.Due(++refusals.seen);
  if (news == 0) return;
  Tell(kind, std::string(why.message()), news);
}

void PeerProcess::Tell(EventKind kind, const std::string& detail,
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
