// Checks, each second, what a peer process trusts: reports certificates that
// cannot be read again or expire soon, or each minute that there are none.
//
// This header knows nothing of connections; who is let in is the certificates'
// to say.

#ifndef GOSSAMER_RUNTIME_DAEMON_TRUST_WATCH_H_
#define GOSSAMER_RUNTIME_DAEMON_TRUST_WATCH_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "runtime/base/event_loop.h"
#include "runtime/daemon/process_reports.h"
#include "runtime/identity/certificate_folder.h"

namespace gossamer {

// Used on the loop, which runs no timer once this is gone.
class TrustWatch {
 public:
  // `certificates` may be null.  `insecure`: the process accepts connections
  // beyond this machine without them.
  TrustWatch(EventLoop* loop, ProcessReports* reports,
             std::shared_ptr<CertificateFolder> certificates, bool insecure)
      : loop_(loop),
        reports_(reports),
        certificates_(std::move(certificates)),
        insecure_(insecure) {}
  TrustWatch(const TrustWatch&) = delete;
  TrustWatch& operator=(const TrustWatch&) = delete;

  // Polls now, and each second from now on.  Called once.
  void Begin() { Poll(); }
  // Reports the present problem again, for there is a file of events now.
  void ReportAgain() { problem_.clear(); }

 private:
  void Poll();
  void CheckCertificates();

  EventLoop* const loop_;
  ProcessReports* const reports_;
  const std::shared_ptr<CertificateFolder> certificates_;
  const bool insecure_;
  std::string problem_;  // the last one that was reported; empty: none
  absl::Time warns_at_ = absl::InfinitePast();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_TRUST_WATCH_H_
