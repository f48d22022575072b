// The topology service's calls as messages: from requests to events of a Fleet,
// and back.
//
// Saves what changed before it answers.  Decides nothing itself; knows nothing
// of gRPC, threads or files.

#ifndef GOSSAMER_TOPOLOGY_FLEET_CONTROL_PLANE_H_
#define GOSSAMER_TOPOLOGY_FLEET_CONTROL_PLANE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "proto/topology.pb.h"
#include "topology/fleet/fleet.h"
#include "topology/fleet/link_survey.h"
#include "topology/fleet/service_event.h"
#include "topology/fleet/view_answers.h"

namespace gossamer {

// One thread at a time.
class ControlPlane {
 public:
  using Clock = std::function<absl::Time()>;
  using Log = std::function<void(const std::string&)>;
  // Durable when it returns OK.
  using SaveRecord = std::function<absl::Status(const FleetRecord&)>;

  // Takes up the record that an earlier incarnation has `stored`.  `log` gets a
  // line for people per event that changes the fleet; `events`, or without them
  // `log`, what is refused or fails.  `sign` signs the views of answers, which
  // are believed whoever passes them on; requests then bring only views that
  // the caller has checked.  Without it they get a MAC.  Errors: of
  // Fleet::Create and of `save`.
  static absl::StatusOr<std::unique_ptr<ControlPlane>> Create(
      FleetOptions options, std::optional<FleetRecord> stored, SaveRecord save,
      Clock clock, Log log, std::shared_ptr<ServiceEvents> events = nullptr,
      SignView sign = nullptr);

  struct Progress {
    bool finished = false;  // every member has
    bool some_finished = false;
    std::vector<PeerId> lost;  // unfinished and without a lease
    int unfinished = 0;
  };
  // To be called a few times a second: notices leases that ran out.
  Progress Tick();

  // As of Fleet: durable with the next tick or answer.
  void Evict(PeerId id, const std::string& why) {
    fleet_->Evict(id, why, clock_());
  }

  absl::Status Register(const wire::RegisterRequest& request,
                        wire::RegisterResponse& response);
  absl::Status Heartbeat(const wire::HeartbeatRequest& request,
                         wire::HeartbeatResponse& response);
  absl::Status GetStatus(const wire::GetStatusRequest& request,
                         wire::FleetStatus& response);
  absl::Status Stop(const wire::StopRequest& request,
                    wire::StopResponse& response);

  // Starts a survey of the links between members, if asked and none is under
  // way, and says what is known.  kFailedPrecondition before there is a view,
  // and with more members than an answer can be of.
  absl::Status MeasureLinks(const wire::MeasureLinksRequest& request,
                            wire::LinkSurveyStatus& response);

  const Fleet& fleet() const { return *fleet_; }

 private:
  ControlPlane(std::unique_ptr<Fleet> fleet, SaveRecord save, Clock clock,
               Log log, std::shared_ptr<ServiceEvents> events, SignView sign);
  absl::Status CheckRun(const std::string& run_id) const;
  // Reports the refusal and returns `why`.
  absl::Status Refuse(std::string_view call, const absl::Status& why);
  absl::Status CheckSurvey(const wire::MeasureLinksRequest& request) const;
  // Takes the result of the peer's survey task from its heartbeat and answers
  // with the next task.
  void Survey(const wire::HeartbeatRequest& request,
              wire::HeartbeatResponse& response);
  // `r`, which is of `request`, brings a newer view that this service cannot
  // have made.
  bool IsForeign(const Registration& r,
                 const wire::RegisterRequest& request) const;
  // Makes the changes durable, then writes their lines to the log.
  absl::Status Save();
  void LogChanges(const FleetRecord& before);
  void LogStanding(const MemberRecord& before, const MemberRecord& after);
  std::string WhyEvicted(PeerId id) const;
  void ReportNotes();

  const Clock clock_;
  const Log log_;
  const SaveRecord save_;
  std::unique_ptr<Fleet> fleet_;
  const bool adds_mac_;  // views, as nothing signs them
  LinkSurvey survey_;
  ViewAnswers view_answers_;
  FleetRecord saved_;
  uint64_t saved_version_ = 0;
  bool unsaved_reported_ = false;
  const std::shared_ptr<ServiceEvents> events_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_CONTROL_PLANE_H_
