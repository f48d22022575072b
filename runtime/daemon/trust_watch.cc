#include "runtime/daemon/trust_watch.h"

namespace gossamer {

void TrustWatch::Poll() {
  const absl::Time now = loop_->Now();
  if (certificates_ != nullptr) {
    CheckCertificates();
  } else if (insecure_ && now >= warns_at_) {
    reports_->Log(
        "warning: --insecure: anybody who reaches these ports can read and "
        "change the model");
    warns_at_ = now + absl::Minutes(1);
  }
  loop_->RunAt(now + absl::Seconds(1), [this] { Poll(); });
}

void TrustWatch::CheckCertificates() {
  const std::string problem = certificates_->Problem();
  if (!problem.empty() && problem != problem_) {
    reports_->Report("trust_unread", problem);
    reports_->Log(problem);
  }
  problem_ = problem;
  // The certificates warn once a day, so they are asked only once there is a
  // file that keeps the event.
  const std::string expiry =
      reports_->opened() ? certificates_->TakeExpiryWarning() : "";
  if (expiry.empty()) return;
  reports_->Report("certificate_expires", expiry);
  reports_->Log(expiry);
}

}  // namespace gossamer
