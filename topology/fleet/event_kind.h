// Every kind of event that a peer reports: its name, its condition and what to
// do then.
//
// A kind that is not in this list does not compile.  Names are in events.jsonl,
// in summary.json and in people's scripts: they stay.  This header knows
// nothing of the code that reports them.

#ifndef GOSSAMER_TOPOLOGY_FLEET_EVENT_KIND_H_
#define GOSSAMER_TOPOLOGY_FLEET_EVENT_KIND_H_

#include <cstddef>
#include <iterator>
#include <string_view>

namespace gossamer {

// The words of one kind of event, for logs and for the pages that list them.
struct EventInfo {
  std::string_view name;
  std::string_view when;
  std::string_view action;  // what people do; empty: nothing is wrong
};

// The events in the order of their names.  runtime/telemetry/README.md has the
// same table (telemetry_test).
inline constexpr EventInfo kEventKinds[] = {
    {"all_reduce", "the baseline has tried its all-reduces and chosen one", ""},
    {"budget_spent",
     "the privacy budget does not pay for the rounds that are left, since "
     "steps "
     "that were taken again count again; the run ends",
     "nothing: what it has learnt is the result"},
    {"certificate_expires",
     "this program's own certificate ends within a week, or a tenth of its "
     "validity, or has ended; once a day",
     "`gossamer certs issue` again into its folder; no program has to restart"},
    {"checkpoint", "a checkpoint is on disk", ""},
    {"checkpoint_aside",
     "the fleet begins before this peer's newest checkpoint, which stays under "
     "another name: the peers had no later one in common",
     "if that was not meant: stop all peers, `gossamer checkpoint restore` "
     "everywhere, and start all with `--resume` and their disks"},
    {"checkpoint_damaged",
     "a checkpoint on this peer's disk differs from what was saved; it is not "
     "used",
     "look at the disk that it names"},
    {"checkpoint_failed",
     "no checkpoint could be taken or saved; earlier ones stay, training goes "
     "on",
     "make room, or mend the disk that it names"},
    {"checkpoint_room",
     "before the first round, or with the first checkpoint, the disk has no "
     "room for `checkpoint.keep` of them and the one that is being written; "
     "later, older ones went before it was written, reported for the first, "
     "the tenth, the hundredth time",
     "make room: a peer with fewer checkpoints than the others may have none "
     "in common with them"},
    {"checkpoint_skipped",
     "a round was due to have a checkpoint, but an earlier one waited for the "
     "disk or for the neighbours' words; reported for the first, the tenth, "
     "the hundredth time",
     "a faster disk, or raise `checkpoint.every`, if every due round matters"},
    {"codec", "codec `auto` has changed the wire format for a neighbour", ""},
    {"collective_refused",
     "a message of an all-reduce was malformed, or came from a peer that takes "
     "no part: dropped",
     "the same release and configuration everywhere"},
    {"congestion_control",
     "connections were given BBR: they pause for longer than two of TCP's "
     "time-outs, or lose packets, again and again, or CUBIC's window holds "
     "them back, or their round trip takes 400 ms and more",
     ""},
    {"connection_refused",
     "a certificate is another peer's, has expired or was revoked; or the "
     "connecting peer has another version or run, looks for another peer, "
     "sends no valid hello, is one too many, or floods",
     "as it says: `gossamer certs show` there and issue again; the same "
     "release, run and addresses everywhere"},
    {"connections_added",
     "edges over long links were given four connections: one lost packets "
     "again "
     "and again, or CUBIC's window held it back, and it cannot have BBR",
     "allow BBR (`gossamer doctor` says how), or set "
     "`resources.congestion_control` back to auto: one connection with it does "
     "more"},
    {"edge_clipped",
     "a neighbour is so far away that its corrections are shortened to "
     "`mixing.clip_radius`",
     "look at that peer's scores; a larger radius if all neighbours are named"},
    {"edge_closed",
     "a neighbour has broken the protocol five times, or has another model or "
     "codec: it is quarantined for a minute, then for twice as long each time",
     "the same release and configuration there; restart it"},
    {"edge_down", "a connection was lost; it is made again", ""},
    {"edge_exploded",
     "a neighbour's parameters and this peer's differ by more than "
     "10⁶: both leave the corrections out; the faulty "
     "one restores by itself",
     "look at that peer's log; without an event there it lies: remove it "
     "(`gossamer certs revoke`)"},
    {"edge_lost",
     "a neighbour began a new incarnation while corrections were under way: "
     "these may have been applied at one end only",
     ""},
    {"edge_refused",
     "a neighbour sent a frame that no correct peer sends; it was dropped "
     "before it changed any state, and the connection ends",
     "the same release there; else its memory or network"},
    {"ended_without",
     "the run was over while this peer waited to be a member again",
     "start all peers with `--resume`, if the run is to go on"},
    {"left", "this peer has left in good order", ""},
    {"left_late", "it left without the service's answer", ""},
    {"member_joined", "the next view has a new member", ""},
    {"member_leaves", "a member leaves in good order", ""},
    {"member_removed", "a member was removed from the view", ""},
    {"member_suspected",
     "a neighbour does not answer; it says so if others hear that neighbour",
     "look at its machine, or at the path to it, if it does not come back"},
    {"nccl_broken",
     "a communicator of NCCL was given up: its bodies travel by gRPC until the "
     "next view has another one",
     "as it says, if it comes again: the GPU's log, `NCCL_DEBUG=INFO`"},
    {"nccl_left_out",
     "members on one fabric cannot use NCCL with each other: two on one GPU, "
     "or "
     "two versions of it; they use gRPC",
     "as it says"},
    {"nccl_ready", "a communicator of NCCL is complete", ""},
    {"nonfinite_parameters",
     "this peer's parameters are not finite, or beyond "
     "10⁶: it contributes nothing",
     "lower the learning rates, if `spoilt` does not help"},
    {"not_settled", "a neighbour did not answer at the end of the run",
     "look at how that peer ended"},
    {"outside", "the fleet has gone on without this peer; it registers again",
     "its machine or network did not answer for seconds"},
    {"overdue", "a neighbour missed its deadline; the round goes on", ""},
    {"overlap", "`overlap_steps: auto` has changed", ""},
    {"payloads_refused",
     "a neighbour reports that it has refused this peer's payloads and has "
     "quarantined it",
     "the same release and configuration at both; else this machine's memory "
     "or network"},
    {"rejoined", "this peer is a member again", ""},
    {"replicas",
     "edges without replicas: the memory is too small, or they last for some "
     "rounds",
     "`mixing.replica_memory_mb`; a static graph"},
    {"resumed", "training goes on from a checkpoint", ""},
    {"resumed_without_service",
     "a restarted peer that the topology service does not answer goes on by "
     "its last view, since members of it train by it",
     "start the topology service again: without it nobody joins, and the dead "
     "stay members"},
    {"samples_failed", "the grid of samples could not be written",
     "make room, or mend the disk that it names"},
    {"score_failed", "the score could not be computed",
     "as it says; training goes on"},
    {"score_skipped",
     "a round has no score: too many generators wait for theirs already",
     "raise evaluation.every, or lower evaluation.samples"},
    {"service_found", "the topology service answers again", ""},
    {"service_lost",
     "the topology service does not answer, or answers wrongly; training goes "
     "on by the last view",
     "as it says; start the service again, if it does not come back"},
    {"service_refused",
     "the topology service does not admit this peer, or has removed it for "
     "good: the peer ends",
     "as it says"},
    {"spoilt",
     "this peer's parameters or steps are lost: it restores from other members",
     "look at its data and machine; lower the learning rates if it recurs"},
    {"state_failed", "parameters that a member sent were refused",
     "nothing, while `state_received` follows"},
    {"state_not_offered", "a peer that joins cannot get this one's parameters",
     "nothing, while other peers give theirs; else see the reason in the "
     "detail"},
    {"state_offered", "a peer that joins gets this one's parameters", ""},
    {"state_received", "this peer has the median of the members' parameters",
     ""},
    {"step_skipped", "a step had no finite gradient; the peer goes on mixing",
     "lower the learning rates, if it recurs"},
    {"strangers_refused",
     "connections were shut down: too many unauthenticated ones were open, "
     "hardly a descriptor was left, or their host had flooded within a minute",
     "a firewall, if neighbours cannot get in; more descriptors (ulimit -Hn, "
     "LimitNOFILE)"},
    {"trust_unread",
     "ca.pem or crl.pem in the folder of certificates is damaged, gone or "
     "older than before: the earlier contents stay in force",
     "copy the authority's newest file into it"},
    {"view_refused",
     "a view was changed, or is not signed by the service; the last one stays",
     "check which program answers at the service's address"},
};

// One of these, as from its name: EventKind kind = "edge_lost".
class EventKind {
 public:
  consteval EventKind(const char* name)  // NOLINT: as a name is written
      : info_(Find(name)) {}

  constexpr std::string_view name() const { return info_->name; }
  constexpr const EventInfo& info() const { return *info_; }

  friend constexpr bool operator==(EventKind a, EventKind b) {
    return a.info_ == b.info_;
  }

 private:
  // Not constexpr, so that a wrong name stops the compiler here.
  static const EventInfo* IsNotInEventKinds();
  static constexpr const EventInfo* Find(std::string_view name) {
    for (const EventInfo& info : kEventKinds) {
      if (info.name == name) return &info;
    }
    return IsNotInEventKinds();
  }

  const EventInfo* info_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_EVENT_KIND_H_
