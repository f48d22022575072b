// The plain values that a Fleet keeps, hears and answers.
//
// This header knows nothing of the decisions made from them, of messages or of
// files.

#ifndef GOSSAMER_TOPOLOGY_FLEET_FLEET_RECORD_H_
#define GOSSAMER_TOPOLOGY_FLEET_FLEET_RECORD_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "topology/fleet/consensus.h"
#include "topology/fleet/membership.h"
#include "topology/fleet/protocol.h"
#include "topology/view.h"

namespace gossamer {

// A peer's state in the fleet; README.md has the transitions.
enum class Standing : uint8_t {
  kMember,   // of the view, or of the first one
  kJoining,  // has registered with a fleet under way, in no view yet
  kLeaving,  // a departure of the view
  kEvicted,  // evicted: in no view until it registers again
  kLeft,     // has gone in good order
};

// The part of a member that survives a restart of the service.
struct MemberRecord {
  PeerId id;
  uint64_t incarnation_id = 0;  // or kUnknownIncarnation
  std::string address;
  std::string device = {};  // Member::device
  std::vector<uint64_t> checkpoint_rounds;
  bool in_view = false;  // the view was made for this incarnation
  // The round that this incarnation starts from: the checkpoint that all or
  // most have if they begin together, its own newest if it returns to a fleet
  // that trains.
  uint64_t resume_round = 0;
  bool finished = false;
  Standing standing = Standing::kMember;
  // An incarnation without parameters in a fleet that has some: it is admitted
  // once it has got them from members.
  bool needs_parameters = false;
  uint64_t removals = 0;
  friend bool operator==(const MemberRecord&, const MemberRecord&) = default;
};

// A member, or one that leaves: both train by the present view.
inline bool IsMemberOrLeaving(const MemberRecord& m) {
  return m.standing == Standing::kMember || m.standing == Standing::kLeaving;
}
// The member of `members`, which are in the order of their ids; nullptr: none.
template <typename Members>
auto* FindMember(Members& members, PeerId id) {
  const auto at = std::ranges::lower_bound(members, id, {}, &MemberRecord::id);
  return at != members.end() && at->id == id ? &*at : nullptr;
}
// `in_view` may still be true of a peer that has left.
inline bool InTheView(const MemberRecord& m) {
  return m.in_view && IsMemberOrLeaving(m);
}

// The part of a member that is not saved: what this incarnation of the service
// has heard of it.
struct LiveMember {
  absl::Time registered = absl::InfinitePast();
  absl::Time finished = absl::InfinitePast();
  absl::Time last_heard = absl::InfinitePast();
  PeerReport report;
  uint64_t round_begun = 0;
  uint64_t acknowledged_stop = 0;
  // The peers that it suspects, and since when.
  std::map<PeerId, absl::Time> suspected;
  absl::Time may_return = absl::InfinitePast();
  absl::Time leaving_since = absl::InfiniteFuture();
  bool ready = false;
  // The peer trains by a view, by its own report; the record may be of an old
  // disk.
  bool trains = false;
  bool has_parameters = false;   // when it registered
  bool registered_here = false;  // with this incarnation of the service
  bool first = false;            // no earlier one has registered
  uint64_t first_epoch = 0;      // of the first view that names it
  // The time since which it has renewed its lease and trained by a view that
  // has it.
  absl::Time well_since = absl::InfiniteFuture();
  int short_incarnations = 0;  // before this one, Evictions
  std::string why_evicted;
  // Sketches of the last rounds, oldest first.
  std::deque<std::pair<uint64_t, std::vector<double>>> sketches;
};

// Events of members since the run began.
struct FleetCounts {
  uint64_t suspicions = 0;  // times that a member came under suspicion
  uint64_t removals = 0;
  uint64_t returns = 0;  // of evicted peers
  uint64_t joins = 0;
  uint64_t leaves = 0;
  friend bool operator==(const FleetCounts&, const FleetCounts&) = default;
};

// The part of the record that Roster keeps.
struct RosterRecord {
  uint64_t layout_fingerprint = 0;
  uint64_t configuration_hash = 0;
  std::vector<MemberRecord> members;  // by id
  FleetCounts counts;
};

// The part of the record that Views keeps.
struct ViewsRecord {
  uint64_t generation = 0;  // of this incarnation of the service
  bool assembled = false;   // the view is of the roster's members
  View view;                // epoch 0: none yet
  // The key of the views' MACs (view_mac.h).  Empty: they have none.
  // Certificates sign them, there is no view yet, or members may have views of
  // another store.
  std::string mac_key;
};

// The state that a service saves: the records of a fleet's parts.  Each part
// writes its own alone.
struct FleetRecord : RosterRecord, ViewsRecord {
  StopState stop;  // of StopAgreement
};

// The first report of an incarnation of a peer, and its report when the service
// has asked it to register again.
struct Registration {
  VersionRange versions = kControlVersions;
  std::string run_id;
  PeerId peer_id;  // 0: assign one
  uint64_t incarnation_id = 0;
  std::string address;
  std::string device = {};  // Member::device
  uint64_t layout_fingerprint = 0;
  std::string layout = {};  // ParameterLayout::Text(); may be empty
  uint64_t initial_parameters_hash = 0;  // 0: not known
  uint64_t configuration_hash = 0;
  // "key: value" a line, of all that the hash is of; may be empty.
  std::string configuration = {};
  std::vector<uint64_t> checkpoint_rounds;
  bool has_parameters = false;  // it was a member and goes on as it is
  bool trains = false;          // by a view that this service has forgotten
  std::optional<View> view;     // that one
  bool foreign = false;         // newer, and of no service with this store
};

// The report of a registered peer, about once a second.
struct FleetHeartbeat {
  std::string run_id;
  PeerId peer_id;
  uint64_t incarnation_id = 0;
  uint64_t registered_generation = 0;  // of the service, then
  uint64_t view_generation = 0;
  uint64_t view_epoch = 0;
  PeerReport report;
  uint64_t round_begun = 0;
  uint64_t acknowledged_stop = 0;
  bool request_stop = false;
  bool finished = false;
  std::vector<PeerId> suspected;
  bool leaving = false;
  bool ready = false;
};

// The answer to a heartbeat: all that the peer has to know by now.
struct FleetAnswer {
  std::shared_ptr<const View> view;  // only if newer than the peer's
  // The largest that two peers have got to; of two peers, the largest.
  uint64_t fleet_round = 0;
  uint64_t second_round = 0;  // the second largest; 0: there is one peer
  double fleet_busy = 0;      // seconds; 0: not known
  int registered = 0;         // Fleet::registered
  StopState stop;
  // The peer is in no view: it is to register again after `wait`.
  bool outside = false;
  absl::Duration wait;
  std::vector<Member> donors;   // to a peer that needs parameters
  std::vector<Member> joiners;  // to a member: the peers that get them from it
  bool first_named = false;     // Roster::FirstNamedBy the present view
  std::vector<PeerId> heard;    // Suspicion::HeardSince
};

// One peer as `gossamer status` shows it.
struct FleetPeer {
  PeerId id;
  std::string address;
  std::string device = {};  // Member::device
  PeerReport report;
  absl::Duration since_heartbeat;
  bool finished = false;
  Standing standing = Standing::kMember;
  int suspected_by = 0;
  uint64_t removals = 0;
};

// The fleet at one moment, for people; nothing is decided from it.
struct FleetSnapshot {
  std::vector<FleetPeer> peers;
  std::optional<Consensus> consensus;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_FLEET_RECORD_H_
