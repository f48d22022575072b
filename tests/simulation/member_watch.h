// Checks that members come and go as they may, by the calls that reach the
// service.
//
// Follows the calls that reach the service and the members of its record, and
// judges each change by the rules alone.  An evicted peer had missed its lease
// and was suspected, or had died again and again before it trained.  A peer
// that enters a running fleet has parameters.  A fleet whose peers all begin
// anew begins with what all of them have.  This header knows nothing of how the
// service decides, so that a mistake there shows.

#ifndef GOSSAMER_TESTS_SIMULATION_MEMBER_WATCH_H_
#define GOSSAMER_TESTS_SIMULATION_MEMBER_WATCH_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "proto/topology.pb.h"
#include "runtime/sim/sim_service.h"
#include "topology/fleet/fleet_record.h"
#include "topology/view.h"

namespace gossamer::simulation {

class MemberWatch final : public ServiceObserver {
 public:
  explicit MemberWatch(absl::Duration lease) : lease_(lease) {}

  // The service has started again, with this record.
  void Started(const FleetRecord& record, absl::Time now) override;
  // The service has accepted a registration; Heard() is the same for a
  // heartbeat.
  void Registered(const wire::RegisterRequest& request,
                  absl::Time now) override;
  void Heard(const wire::HeartbeatRequest& request, absl::Time now) override;
  // Returns the error in the members' change to `record`, or "".
  std::string Changed(const FleetRecord& record, absl::Time now) override;

 private:
  struct Process {
    uint64_t incarnation_id = 0;
    absl::Time heard = absl::InfinitePast();
    std::set<uint64_t> suspects;
    bool has_parameters = false;
    std::set<uint64_t> saved;  // rounds
    bool trained = false;      // by a view that has it
    int short_processes = 0;   // in a row before it, each without training
  };
  struct Known {
    uint64_t incarnation_id = 0;
    bool in_view = false;
    Standing standing = Standing::kMember;
    uint64_t removals = 0;
  };
  void Keep(const FleetRecord& record);
  std::string CheckEviction(const MemberRecord& m, const View& after,
                            absl::Time now) const;
  // Returns whether two of the neighbours of `id` in `view` suspect it, or all
  // of them that are heard if there are fewer.
  bool Suspected(PeerId id, const View& view, absl::Time now) const;
  bool HeardWithinLease(PeerId id, absl::Time now) const;
  // For a fleet whose incarnations are all new: what they share is not given
  // up.
  std::string CheckBeginning(const FleetRecord& record) const;

  const absl::Duration lease_;
  absl::Time started_ = absl::InfinitePast();
  std::map<PeerId, Process> processes_;
  std::map<PeerId, Known> known_;
  View view_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_MEMBER_WATCH_H_
