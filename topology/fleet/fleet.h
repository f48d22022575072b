// The fleet as the topology service sees it: who has registered, which view is
// valid, how far everybody is, when to stop.
//
// A state machine: events come in with their time, answers go out.  Knows
// nothing of gRPC, clocks, threads or files; `record()` is what a store keeps.

#ifndef GOSSAMER_TOPOLOGY_FLEET_FLEET_H_
#define GOSSAMER_TOPOLOGY_FLEET_FLEET_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/throttle.h"
#include "topology/fleet/fleet_record.h"
#include "topology/fleet/membership.h"
#include "topology/fleet/overlap_chooser.h"
#include "topology/fleet/protocol.h"
#include "topology/graph.h"
#include "topology/mixing_schedule.h"
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
  // Others that every peer mixes with, over all rounds (FewestPartners).
  int min_partners = 0;
  absl::Duration heartbeat = absl::Seconds(1);
  // Without a heartbeat for so long a peer counts as lost.
  absl::Duration lease = absl::Seconds(4);
  // Members come and go; false: of a fleet that cannot do without one.
  bool elastic = true;
  int max_peers =
      0;  // that may be members at once; 0: what the schedule allows
};

// kInvalidArgument: the schedule cannot be for so many peers, its gap is below
// the floor, or somebody would have fewer partners than it needs.
absl::Status CheckFleetSize(const FleetOptions& options, int peers);
// The view, of a fleet that has been assembled or of one before, is one that a
// fleet of these options can have.
bool SameFleet(const View& view, bool assembled, const FleetOptions& options);

class Fleet {
 public:
  // If all lives of a fleet end, those that come back wait so long for the
  // next one of them.
  static constexpr absl::Duration kAbsent = absl::Minutes(2);

  // `stored`: what an earlier life of the service left.  kInvalidArgument: the
  // schedule cannot be for so many peers, or its gap is below the floor;
  // kFailedPrecondition: the stored fleet is another one and still under way.
  static absl::StatusOr<Fleet> Create(FleetOptions options,
                                      std::optional<FleetRecord> stored,
                                      absl::Time now);

  // The peer's id.  Idempotent for the same life; a new life of a peer takes
  // the place of the old one.  kFailedPrecondition: it does not fit the run;
  // kInvalidArgument: the request is malformed; kUnavailable: not now.
  absl::StatusOr<PeerId> Register(const Registration& registration,
                                  absl::Time now);
  // kNotFound: register first; kAborted: another life of this peer has
  // registered since; kFailedPrecondition, kInvalidArgument as above.
  absl::StatusOr<FleetAnswer> Heartbeat(const FleetHeartbeat& heartbeat,
                                        absl::Time now);
  // Proposes a last round, unless one is proposed already, and returns it.
  // kFailedPrecondition before there is a view.
  absl::StatusOr<uint64_t> RequestStop(absl::Time now);
  // Removes a member at once, whoever hears it, if the fleet can be without it:
  // nobody must go on with it, for this reason.  To be called again and again.
  void Expel(PeerId id, const std::string& why, absl::Time now);
  // Notices what no event says: leases that ran out.
  void Tick(absl::Time now);
  // Lines for people since the last call, of what is not in the record.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

  FleetSnapshot Snapshot(absl::Time now) const;
  // Of one that was removed last by this life of the service; empty: it was
  // silent, and suspected.
  std::string WhyRemoved(PeerId id) const;
  // Every member has trained to the end.
  bool Finished() const;
  // Unfinished members without a lease; with all others finished they are all
  // that a fleet still waits for.
  std::vector<PeerId> Lost(absl::Time now) const;

  const FleetOptions& options() const { return options_; }
  const FleetRecord& record() const { return record_; }
  // Grows whenever record() has changed.
  uint64_t version() const { return version_; }
  // Members, and who waits to be one.
  int registered() const;

 private:
  using Live = LiveMember;

  Fleet(FleetOptions options, FleetRecord record, absl::Time now);
  absl::Status CheckRegistration(const Registration& r) const;
  absl::StatusOr<PeerId> AssignId(const Registration& r) const;
  MemberRecord* Find(PeerId id);
  void Put(MemberRecord member);
  bool HasLease(const MemberRecord& m, absl::Time now) const;
  bool Lost(const MemberRecord& m, absl::Time now) const;
  absl::Status CheckWhole(const MemberRecord& m) const;
  // The run in which `m` waits to begin is over, and no other has begun.
  bool EndedWithout(const MemberRecord& m, absl::Time now) const;
  // Of a run that is over.
  StopState Ended() const;

  // Of a fleet that this service has forgotten (fleet_recall.cc).
  // The boot id of a member of which only the view is known.
  static constexpr uint64_t kUnknownLife = 0;
  // `r` brings a view that is newer than what is known here.
  bool HandsBack(const Registration& r) const;
  // The peer says that it has one, and is asked for it by being told to
  // register again: once, for what it says may be wrong.
  bool HasOneToHandBack(const FleetHeartbeat& heartbeat) const;
  // Takes up the view that `r` hands back, if it does; otherwise an error if
  // `r` trains in a fleet that nothing is known of.
  absl::Status Recall(const Registration& r, absl::Time now);
  absl::Status CheckHandedBack(const Registration& r) const;
  void TakeBack(const Registration& r, absl::Time now);
  // Somebody goes on with parameters, so others may train, of whose view
  // nothing is known yet.
  bool AwaitsView(absl::Time now) const;

  // Lets registered lives into a view as soon as it is known how.
  void Settle(absl::Time now);
  void GiveUpAbsent(absl::Time now);

  // Who is a member (fleet_members.cc).
  absl::Status Admit(const Registration& r, MemberRecord& member,
                     absl::Time now);
  void RemoveSilent(absl::Time now);
  // From the view of now on; it waits for `least` at least.
  void Remove(MemberRecord& m, const std::string& why, absl::Duration least,
              absl::Time now);
  // Lives of `m` in a row, its last one with them, that were let into a view
  // and ended before they trained by it.
  int ShortLives(const MemberRecord& m) const;
  // Another life of `m` has come: too many of those before were short.
  void KeepOut(const MemberRecord& m, absl::Time now);
  void NoteWell(const MemberRecord& m, absl::Time now);
  void Forgive(absl::Time now);
  void LetLeave(absl::Time now);
  void NoteGone(absl::Time now);
  bool WaitsToLeave(const MemberRecord& m, absl::Time now) const;
  // In the view, by the record or by what it says.
  bool TrainsHere(const MemberRecord& m) const;
  // Every member trains by the present view, or is suspected: another one may
  // follow.
  bool Adopted(absl::Time now) const;
  // It waits for a view and has what it takes.
  bool MayBeLetIn(const MemberRecord& m) const;
  // Who may mix with `id` by the present view: where rows change, and where it
  // is in none, everybody.
  std::set<PeerId> NeighborsOf(PeerId id) const;
  // How many of them suspect `id`, and how many have to.
  int Suspecters(PeerId id, absl::Time now) const;
  int SuspectersNeeded(PeerId id, absl::Time now) const;
  int MostPeers() const {
    return options_.max_peers == 0 ? kMaxPeers : options_.max_peers;
  }
  void TrimJoining(int members, std::vector<PeerId>& joining);
  // Of those who wait to join and have a lease, as many as the fleet can have.
  std::vector<PeerId> Joining(absl::Time now);
  // A fleet of so many can be; a note says once why not.
  bool CanHave(int members, const std::string& instead);
  void Note(const std::string& line);
  // "peer 3", "peers 3, 4".
  static std::string Named(const std::vector<PeerId>& ids);
  void AnswerOutside(const MemberRecord& m, absl::Time now,
                     FleetAnswer& answer);
  std::vector<Member> DonorsOf(const MemberRecord& joiner,
                               absl::Time now) const;
  std::vector<Member> JoinersOf(PeerId donor, absl::Time now);
  // overlap_steps auto: another view if another h fits better.
  void AdaptOverlap();
  void MakeFirstView();
  // Of the newest view that a peer knows: which one it is, no more.
  static View KnownBy(const FleetHeartbeat& heartbeat);
  // A view that this service's disk is too old for gives way to one of its own.
  void ReplaceForgotten(const FleetHeartbeat& heartbeat,
                        const MemberRecord& member, absl::Time now);
  void LetIn(absl::Time now);
  void HearOfStop(uint64_t acknowledged);
  void AdvanceStop(absl::Time now);
  void Learn(const FleetHeartbeat& heartbeat, MemberRecord& member,
             absl::Time now);
  void LearnSuspected(const FleetHeartbeat& heartbeat, absl::Time now);
  // Another run begins, or goes on that nothing was known of.
  void ForgetRun();
  // How far everybody is (fleet_rounds.cc).
  uint64_t RoundOf(const MemberRecord& m) const;
  // The largest round in which `m` can be.
  uint64_t MostOf(const MemberRecord& m, absl::Time now) const;
  // Of the peers, the largest first, without one that cannot be.
  std::vector<uint64_t> Rounds() const;
  uint64_t MaxRound() const;
  // The largest that two have got to.
  uint64_t FleetRound(absl::Time now) const;
  // This life of the service has heard everybody in the view, or given it a
  // lease for it.
  bool HeardAll(absl::Time now) const;
  uint64_t FutureRound() const;
  // The newest that most members have; in a fleet that does not let anybody
  // in, that all have.  0: none.
  uint64_t SharedCheckpoint() const;
  View NextView(uint64_t from_round) const;

  FleetOptions options_;
  FleetRecord record_;
  absl::Time started_, leases_from_;  // these count from the latter on
  absl::Time ticked_ = absl::InfiniteFuture();
  uint64_t version_ = 1;
  std::map<PeerId, Live> live_;
  std::map<int, absl::Status> possible_;  // fleets, by members
  mutable std::unique_ptr<MixingSchedule> schedule_;
  mutable std::pair<uint64_t, uint64_t> schedule_of_;  // generation, epoch
  std::set<std::string> noted_;
  std::vector<std::string> notes_;
  std::map<PeerId, Throttle> suspicions_told_;  // by who suspects
  // overlap_steps auto: rounds of a view before one of a smaller h, and whether
  // the last choice was one.
  uint64_t patience_ = kRoundsToGoBack;
  bool went_back_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_FLEET_H_
