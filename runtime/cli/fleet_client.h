// Calls to a topology service, with a deadline each.
//
// Blocks the caller; knows nothing of what the answers are for.

#ifndef GOSSAMER_RUNTIME_CLI_FLEET_CLIENT_H_
#define GOSSAMER_RUNTIME_CLI_FLEET_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/topology.pb.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/telemetry/progress.h"
#include "topology/fleet/protocol.h"

namespace gossamer {

class FleetClient {
 public:
  // `addresses` is host:port[,host:port...] of the service's instances.  With
  // `certificates` both ends prove their identity.  It connects at the first
  // call.  An answer over `max_answer_bytes` (MaxAnswerBytes) is refused
  // unread.
  explicit FleetClient(
      const std::string& addresses,
      std::shared_ptr<CertificateFolder> certificates = nullptr,
      int max_answer_bytes = kMaxAnswerBytes);
  ~FleetClient();

  // An empty `run_id` means the run that the service has.  Returns kUnavailable
  // or kDeadlineExceeded if the service does not answer.
  absl::StatusOr<wire::FleetStatus> GetStatus(
      const std::string& run_id, absl::Duration timeout = absl::Seconds(5));
  // Returns the progress of a survey of the links between members; begins one
  // if `start`.
  absl::StatusOr<wire::LinkSurveyStatus> MeasureLinks(
      const std::string& run_id, bool start,
      absl::Duration timeout = absl::Seconds(5));
  // Stops the fleet and returns the round at which it will stop.
  absl::StatusOr<uint64_t> Stop(const std::string& run_id,
                                absl::Duration timeout = absl::Seconds(5));

 private:
  struct Stub;
  const std::unique_ptr<Stub> stub_;
};

// Returns the display's values for a fleet of `rounds` rounds.
FleetProgress ProgressOf(const wire::FleetStatus& status, uint64_t rounds,
                         const std::string& title);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_FLEET_CLIENT_H_
