// The communicators of one member: one for each view that it knows and that
// gives it a group.
//
// A communicator is made from a unique id that travels along the group's edges,
// serves the rounds from its view's first to a later view's, and is given up
// for good if anything is wrong with it.  This header knows nothing of bodies
// or of their order.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_GROUPS_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_GROUPS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/shared_bytes.h"
#include "runtime/transport/nccl/nccl_api.h"
#include "runtime/transport/nccl/nccl_communicator.h"
#include "runtime/transport/nccl/nccl_plan.h"
#include "runtime/transport/nccl/nccl_state.h"
#include "topology/fleet/event_kind.h"
#include "topology/view.h"

namespace gossamer {

struct NcclGroupsOptions {
  PeerId self;
  absl::Duration deadline;  // of an operation
  // All members make a communicator and meet in it within this time, or give it
  // up.
  absl::Duration making;
  // Sends the unique id of the group `key` to another member.
  std::function<void(PeerId to, uint64_t key, SharedBytes id)> send_id;
  // The communicator of the key is made, and none of an earlier view is under
  // way: its members are to meet.  Called again until they have met.
  std::function<void(uint64_t key)> on_made;
  // The communicator of the plan's group has ended.
  std::function<void(const NcclPlan& plan, NcclEvent why)> on_end;
  std::function<void(EventKind kind, const std::string& detail)> report = {};
};

class NcclGroups {
 public:
  // A communicator and the view's plan for it.
  struct Group {
    Group(NcclPlan p, NcclApi* api, NcclDevice* device, int rank,
          NcclCommunicator::Patience patience)
        : plan(std::move(p)),
          comm(api, device, static_cast<int>(plan.group().size()), rank,
               plan.Partners(), patience) {}
    NcclPlan plan;
    NcclCommunicator comm;
    std::optional<NcclUniqueId> id;
    absl::Time since;                              // it began to be made
    absl::Time close_at = absl::InfiniteFuture();  // a later one is in use
  };

  // Both pointers outlive it.
  NcclGroups(NcclApi* api, NcclDevice* device, NcclGroupsOptions options);

  // A view is known.  Returns true if its communicator begins to be made; those
  // of earlier views that are not ready, and join a member that it lacks, are
  // given up.  A view that is known already changes nothing.
  bool Prepare(const View& view, absl::Time now);
  // Null if no group has this key.
  Group* Find(uint64_t key);
  bool Ready(uint64_t key);
  // The group of the view that the round is in; null without a view.  Groups of
  // earlier views close once the other ends have had time to get there.
  Group* ForRound(uint64_t round, absl::Time now);
  // Ends the communicator of this key, if it has not ended; `reason` is for
  // people.
  void End(uint64_t key, NcclEvent why, const std::string& reason);

  // The members of this key have met.
  void OnMet(uint64_t key);
  // A connection to the peer is open: it may lack unique ids.
  void OnUp(PeerId peer);
  // Another peer has sent a unique id, of NcclUniqueId's size, or says that the
  // communicator of this key is broken.  Only a member's word counts.
  void OnId(PeerId from, uint64_t key, const SharedBytes& id);
  void OnBroken(PeerId from, uint64_t key);

  // Polls communicators that are being made, and closes those whose time
  // has come.
  void Poll(absl::Time now);
  // The time of the next poll.
  absl::Time NextPoll(absl::Time now) const;

  uint64_t broken() const { return broken_; }  // communicators

 private:
  void MakeId(Group& group);
  void TakeId(Group& group, const NcclUniqueId& id, PeerId from);
  void SendId(PeerId to, const Group& group) const;
  void End(Group& group, NcclEvent why, const std::string& reason);
  void Report(EventKind kind, const std::string& detail) const;

  NcclApi* const api_;
  NcclDevice* const device_;
  const NcclGroupsOptions options_;
  std::vector<std::unique_ptr<Group>> groups_;  // by from_round
  uint64_t newest_generation_ = 0, newest_epoch_ = 0;
  // Of groups whose view is not known here yet, at most kMaxEarly of a peer.
  struct Early {
    PeerId from;
    uint64_t key = 0;
    NcclUniqueId id;
  };
  std::deque<Early> early_;
  std::vector<std::string> left_out_;  // as last reported
  uint64_t broken_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_GROUPS_H_
