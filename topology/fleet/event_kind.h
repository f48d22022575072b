// Every kind of event that a peer tells: its name, when, and what to do then.
//
// A kind that is not in this list does not compile.  Names are in events.jsonl,
// in summary.json and in people's scripts: they stay.  Knows nothing of who
// tells them.

#ifndef GOSSAMER_TOPOLOGY_FLEET_EVENT_KIND_H_
#define GOSSAMER_TOPOLOGY_FLEET_EVENT_KIND_H_

#include <cstddef>
#include <iterator>
#include <string_view>

namespace gossamer {

struct EventInfo {
  std::string_view name;
  std::string_view when;
  std::string_view action;  // what people do; empty: nothing is wrong
};

// By name.  README.md of this folder has the same table (telemetry_test).
inline constexpr EventInfo kEventKinds[] = {
    {"all_reduce", "the baseline has tried its all-reduces and chosen one", ""},
    {"certificate_expires",
     "this program's own certificate ends within a week, or a tenth of its "
     "life, or has ended; once a day",
     "`gossamer certs issue` again into its folder; nothing is to be "
     "restarted"},
    {"checkpoint", "one is on disk", ""},
    {"checkpoint_aside",
     "the fleet begins before this peer's newest checkpoint, which stays under "
     "another name: not all had one to share",
     "if that was not meant: stop all, `gossamer checkpoint restore` "
     "everywhere, and start all with `--resume`, with the disks that they had"},
    {"checkpoint_damaged",
     "one on this peer's disk is not what was saved; it is not gone on from",
     "look at the disk that it names"},
    {"checkpoint_failed",
     "none could be taken or saved; those before stay, training goes on",
     "make room, or mend the disk that it names"},
    {"codec", "codec `auto` has changed what a neighbour is sent", ""},
    {"collective_refused",
     "a message of an all-reduce was malformed, or of nobody in it: dropped",
     "the same release and configuration everywhere"},
    {"connection_refused",
     "a certificate is not that of the peer it came from, has expired or was "
     "revoked; or who connects is of another version or run, looks for another "
     "peer, says nothing or what no peer says, or is one too many",
     "as it says: `gossamer certs show` there and issue again; the same "
     "release, run and addresses everywhere"},
    {"edge_clipped",
     "a neighbour is so far away that its corrections are shortened to "
     "`mixing.clip_radius`",
     "look at that peer's scores; a larger radius if all are told of"},
    {"edge_closed",
     "a neighbour has broken the protocol five times, or is of another model "
     "or codec: it is not heard for a minute, then for twice as long each time",
     "the same release and configuration there; start it anew"},
    {"edge_down", "a connection was lost; it is made again", ""},
    {"edge_exploded",
     "a neighbour's parameters and this peer's differ by more than "
     "`mixing.largest_parameter`: both leave the corrections out; the one that "
     "is not well begins anew by itself",
     "look at that peer's log; without an event there it lies: take it out "
     "(`gossamer certs revoke`)"},
    {"edge_lost",
     "a neighbour began anew while corrections were under way: these may have "
     "been applied at one end only",
     ""},
    {"edge_refused",
     "a neighbour sent what no correct peer sends; it was dropped before it "
     "changed anything, the connection ends",
     "the same release there; else its memory or network"},
    {"ended_without",
     "the run was over while this peer waited to be in it again",
     "all peers again with `--resume`, if the run is to go on"},
    {"left", "this peer has left in good order", ""},
    {"left_late", "it left without waiting for answers: nobody let it go", ""},
    {"member_joined", "a view to come has a new member", ""},
    {"member_leaves", "a member leaves in good order", ""},
    {"member_removed", "a member is in no view any more", ""},
    {"member_suspected", "a neighbour does not answer",
     "look at its machine, if it does not come back"},
    {"moniqua_wraps",
     "differences exceed the codec's range and wrap, which drives peers apart",
     "a larger `theta`, or `diff-int8`"},
    {"nonfinite_parameters",
     "this peer's parameters are not finite, or beyond "
     "`mixing.largest_parameter`: it contributes nothing",
     "lower the learning rates, if `spoilt` does not help"},
    {"not_settled", "a neighbour did not answer at the end of the run",
     "look at how that peer ended"},
    {"outside", "the fleet has gone on without this peer; it registers again",
     "its machine or network was silent for seconds"},
    {"overdue", "a neighbour missed its deadline; the round goes on", ""},
    {"overlap", "`overlap_steps: auto` has changed", ""},
    {"payloads_refused",
     "a neighbour says that it has refused what this peer sent: it does not "
     "hear it meanwhile",
     "the same release and configuration at both; else this machine's memory "
     "or network"},
    {"rejoined", "this peer is a member again", ""},
    {"replicas", "memory does not do for replicas on all edges",
     "`mixing.replica_memory_mb`"},
    {"resumed", "training goes on from a checkpoint", ""},
    {"samples_failed", "the grid of samples could not be written",
     "make room, or mend the disk that it names"},
    {"score_failed", "the score could not be computed",
     "as it says; training goes on"},
    {"service_found", "the topology service answers again", ""},
    {"service_lost",
     "the topology service does not answer, or not as it should; training goes "
     "on by the last view",
     "what it says; start it again, if it does not come back"},
    {"service_refused",
     "the topology service does not let this peer take part, or not any more: "
     "it ends",
     "as it says"},
    {"spoilt", "this peer's parameters or steps are lost: it begins anew",
     "look at its data and machine; lower the learning rates if it recurs"},
    {"state_failed", "parameters that a member sent were refused",
     "nothing, while `state_received` follows"},
    {"state_not_offered", "a peer that joins cannot get this one's parameters",
     "nothing, while others give theirs; else tell us what it says"},
    {"state_offered", "a peer that joins gets this one's parameters", ""},
    {"state_received", "this peer has the middle of what members gave", ""},
    {"step_skipped", "a step had no finite gradient; the peer goes on mixing",
     "lower the learning rates, if it recurs"},
    {"strangers_refused",
     "connections were hung up on: as many of nobody known were open as may "
     "be, or hardly a descriptor was left",
     "a firewall, if neighbours cannot get in; more descriptors (ulimit -Hn, "
     "LimitNOFILE)"},
    {"trust_unread",
     "ca.pem or crl.pem in the folder of certificates is damaged, gone or "
     "older than before: what was read before stays in force",
     "copy the authority's newest into it"},
    {"view_refused",
     "a view was changed, or is not signed by the service; the last one stays",
     "see who answers at the service's address"},
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
