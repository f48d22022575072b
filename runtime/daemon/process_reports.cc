#include "runtime/daemon/process_reports.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "algorithms/base/plain_text.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {

ProcessReports::ProcessReports(EventLoop* loop, PeerId self,
                               std::function<uint64_t()> round)
    : loop_(loop), self_(self), round_(std::move(round)) {}

absl::Status ProcessReports::Open(const std::string& folder, LogLimit limit) {
  GOSSAMER_ASSIGN_OR_RETURN(
      file_, JsonlSink::Open(
                 folder,
                 [this](const absl::Status& status) {
                   Log(absl::StrCat("metrics: ", status.message()));
                 },
                 limit));
  return absl::OkStatus();
}

void ProcessReports::Sink::OnRound(const RoundMetrics& metrics) {
  reports_->file_->OnRound(metrics);
}

void ProcessReports::Sink::OnEvent(const Event& event) {
  reports_->Keep(event);
  const EventInfo& info = event.kind.info();
  if (info.action.empty()) return;
  Throttle& throttle =
      throttles_.try_emplace(info.name, absl::Minutes(1)).first->second;
  if (throttle.Due(event.time) == 0) return;
  // Another peer may have written a part of the detail.
  constexpr size_t kMax = 1000;
  reports_->Log(absl::StrCat(std::string(info.name), ": ",
                             PlainText(event.detail, kMax), " (",
                             std::string(info.action), ")"));
}

void ProcessReports::Keep(const Event& event) {
  events_.Add(event.kind, event.times);
  file_->OnEvent(event);
}

void ProcessReports::Flush() {
  if (file_) file_->Flush();
}

void ProcessReports::Log(const std::string& line) const {
  std::fprintf(
      stderr, "%s peer %llu: %s\n",
      absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()).c_str(),
      static_cast<unsigned long long>(self_.value), line.c_str());
}

void ProcessReports::Report(EventKind kind, const std::string& detail,
                            uint64_t times) {
  if (!opened()) return;
  // Not into the sink: the process writes its own lines for the log.
  Keep({.time = loop_->Now(),
        .round = round_(),
        .kind = kind,
        .detail = detail,
        .times = times});
}

void ProcessReports::ReportAndLog(EventKind kind, const std::string& detail) {
  Report(kind, detail);
  Log(absl::StrCat(std::string(kind.name()), ": ", detail));
}

// A refused view comes again with every answer, and a revoked peer dials as
// often as it likes.
void ProcessReports::ReportRefused(EventKind kind, PeerId member,
                                   const absl::Status& why) {
  if (!opened()) return;
  Refusals& refusals = refusals_[{kind.name(), member}];
  const uint64_t news = refusals.throttle.Due(++refusals.seen);
  if (news == 0) return;
  Report(kind, std::string(why.message()), news);
}

void ProcessReports::ReportProblem(PeerId other, bool member,
                                   const absl::Status& why) {
  // Lines about members are worth more than those about anybody else who
  // knocks.
  const std::string line = problems_.LineOf(other, member, why, loop_->Now());
  if (!line.empty()) Log(line);
  if (ConnectionProblems::IsRefusal(other, why)) {
    ReportRefused("connection_refused", member ? other : PeerId{}, why);
  }
}

}  // namespace gossamer
