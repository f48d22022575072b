// The fleet as the topology service sees it: who has registered, which view is
// valid, how far everybody is, when to stop.
//
// A state machine: events come in with their time, answers go out.  Knows
// nothing of gRPC, clocks, threads or files; `record()` is what a store keeps.

#ifndef GOSSAMER_TOPOLOGY_SERVICE_FLEET_H_
#define GOSSAMER_TOPOLOGY_SERVICE_FLEET_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/ids.h"
#include "runtime/membership/membership.h"
#include "runtime/membership/protocol.h"
#include "topology/service/overlap_chooser.h"
#include "topology/view.h"

namespace gossamer {

struct FleetOptions {
  std::string run_id = "run";
  int expected = 4;  // the view is made once so many have registered
  ScheduleSpec schedule;
  uint64_t seed = 1;
  double gamma = 0;       // 0: the codec's own
  int overlap_steps = 1;  // or kAutoOverlap: chosen from what peers measure
  // 0: the first peer's, which the others must share.
  uint64_t configuration_hash = 0;
  // Least spectral gap (of a random schedule: Contraction::gap).
  double min_gap = 0;
  absl::Duration heartbeat = absl::Seconds(1);
  // Without a heartbeat for so long a peer counts as lost.
  absl::Duration lease = absl::Seconds(30);
};

// What must survive a restart of the service.
struct MemberRecord {
  PeerId id;
  uint64_t boot_id = 0;
  std::string address;
  std::vector<uint64_t> checkpoint_rounds;
  bool in_view = false;  // this life has been let into the view
  // What this life starts from: the checkpoint that all have in common if they
  // begin together, its own newest if it returns to a fleet that lives.
  uint64_t resume_round = 0;
  bool finished = false;
  friend bool operator==(const MemberRecord&, const MemberRecord&) = default;
};

struct FleetRecord {
  uint64_t generation = 0;  // of this life of the service
  uint64_t layout_fingerprint = 0;
  uint64_t configuration_hash = 0;
  std::vector<MemberRecord> members;  // by id
  View view;                          // epoch 0: none yet
  StopState stop;
};

struct Registration {
  uint32_t protocol_version = kControlProtocolVersion;
  std::string run_id;
  PeerId peer_id;  // 0: assign one
  uint64_t boot_id = 0;
  std::string address;
  uint64_t layout_fingerprint = 0;
  uint64_t configuration_hash = 0;
  std::vector<uint64_t> checkpoint_rounds;
};

struct FleetHeartbeat {
  std::string run_id;
  PeerId peer_id;
  uint64_t boot_id = 0;
  uint64_t view_generation = 0;
  uint64_t view_epoch = 0;
  PeerReport report;
  uint64_t round_begun = 0;
  uint64_t acknowledged_stop = 0;
  bool request_stop = false;
  bool finished = false;
};

struct FleetAnswer {
  std::optional<View> view;   // only if newer than the peer's
  uint64_t fleet_round = 0;   // the largest of a peer
  uint64_t second_round = 0;  // the second largest; 0: there is one peer
  double fleet_busy = 0;      // seconds; 0: not known
  StopState stop;
};

struct FleetPeer {
  PeerId id;
  std::string address;
  PeerReport report;
  absl::Duration since_heartbeat;
  bool finished = false;
};

struct FleetSnapshot {
  std::vector<FleetPeer> peers;
  std::optional<double> consensus_distance;
  uint64_t consensus_round = 0;
};

class Fleet {
 public:
  // `stored`: what an earlier life of the service left.  kInvalidArgument: the
  // schedule cannot be for so many peers, or its gap is below the floor;
  // kFailedPrecondition: the stored fleet is another one and still under way.
  static absl::StatusOr<Fleet> Create(FleetOptions options,
                                      std::optional<FleetRecord> stored,
                                      absl::Time now);

  // The peer's id.  Idempotent for the same life; a new life of a peer takes
  // the place of the old one.  kFailedPrecondition: it does not fit the run;
  // kInvalidArgument: the request is malformed.
  absl::StatusOr<PeerId> Register(const Registration& registration,
                                  absl::Time now);
  // kNotFound: register first; kAborted: another life of this peer has
  // registered since; kFailedPrecondition, kInvalidArgument as above.
  absl::StatusOr<FleetAnswer> Heartbeat(const FleetHeartbeat& heartbeat,
                                        absl::Time now);
  // Proposes a last round, unless one is proposed already, and returns it.
  // kFailedPrecondition before there is a view.
  absl::StatusOr<uint64_t> RequestStop(absl::Time now);
  // Notices what no event says: leases that ran out.
  void Tick(absl::Time now);

  FleetSnapshot Snapshot(absl::Time now) const;
  // Every member has trained to the end.
  bool Finished() const;
  // Unfinished members without a lease; with all others finished they are all
  // that a fleet still waits for.
  std::vector<PeerId> Lost(absl::Time now) const;

  const FleetOptions& options() const { return options_; }
  const FleetRecord& record() const { return record_; }
  // Grows whenever record() has changed.
  uint64_t version() const { return version_; }
  int registered() const { return static_cast<int>(record_.members.size()); }

 private:
  struct Live {  // of one member, not stored
    absl::Time registered = absl::InfinitePast();
    absl::Time last_heard = absl::InfinitePast();
    PeerReport report;
    uint64_t round_begun = 0;
    uint64_t acknowledged_stop = 0;
    // Sketches of the last rounds, oldest first.
    std::deque<std::pair<uint64_t, std::vector<double>>> sketches;
  };

  Fleet(FleetOptions options, FleetRecord record, absl::Time now);
  absl::Status CheckRegistration(const Registration& r) const;
  absl::StatusOr<PeerId> AssignId(const Registration& r) const;
  MemberRecord* Find(PeerId id);
  bool HasLease(const MemberRecord& m, absl::Time now) const;
  bool Lost(const MemberRecord& m, absl::Time now) const;
  // Lets registered lives into a view as soon as it is known how.
  void Settle();
  // overlap_steps auto: another view if another h fits better.
  void AdaptOverlap();
  void MakeFirstView();
  void LetIn();
  void AdvanceStop(absl::Time now);
  void Learn(const FleetHeartbeat& heartbeat, MemberRecord& member,
             absl::Time now);
  // Of the peers, the largest first.
  std::vector<uint64_t> Rounds() const;
  uint64_t MaxRound() const;
  uint64_t FutureRound() const;
  uint64_t CommonCheckpoint() const;
  View NextView(uint64_t from_round) const;

  FleetOptions options_;
  FleetRecord record_;
  absl::Time started_;
  uint64_t version_ = 1;
  std::map<PeerId, Live> live_;
  // overlap_steps auto: rounds of a view before one of a smaller h, and whether
  // the last choice was one.
  uint64_t patience_ = kRoundsToGoBack;
  bool went_back_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_SERVICE_FLEET_H_
