#include "runtime/peer/survey_runner.h"

#include <optional>

namespace gossamer {

void SurveyRunner::Update() {
  const absl::Time now = loop_->Now();
  const std::optional<SurveyTask> task = membership_->survey();
  // Each answer of the service repeats the task until its result is reported.
  if (task && task->number != task_) {
    task_ = task->number;
    const PeerId to = task->to.id;
    // The other end measures its own direction in the same slot and may begin
    // later: the connection stays for the time of two measurements.
    until_[to] = now + 2 * LinkProber::kLimit;
    transport_->Connect(to, task->to.address);
    prober_->Measure(to, [membership = membership_, number = task_](
                             std::optional<LinkMeasurement> measured) {
      membership->ReportMeasured(number, measured);
    });
  }
  std::erase_if(until_, [&](const auto& link) {
    if (link.second > now) return false;
    if (!in_use_(link.first)) transport_->Disconnect(link.first);
    return true;
  });
}

}  // namespace gossamer
