#include "topology/fleet/record_message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "proto/topology.pb.h"
#include "topology/fleet/parse_message.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

// Raised when the meaning of the stored fields changes;
// tests/golden/wire/stored-fleet has a record of this one.
constexpr uint32_t kFormat = 1;

absl::Status Refused(const std::string& why) {
  return absl::DataLossError(absl::StrCat("no state of a fleet: ", why));
}

// Every field is held to the limits that a registration has: the state may be
// damaged, or another program's, and what the fleet takes for granted it never
// checks again.
absl::StatusOr<MemberRecord> FromMessage(const wire::StoredMember& stored) {
  const std::string who = absl::StrCat("peer ", stored.peer_id());
  if (stored.address().empty() || stored.address().size() > kMaxAddressBytes) {
    return Refused(absl::StrCat(who, " has no proper address"));
  }
  if (stored.device().size() > kMaxDeviceBytes) {
    return Refused(absl::StrCat(who, " has no proper device"));
  }
  const auto& rounds = stored.checkpoint_rounds();
  if (static_cast<size_t>(rounds.size()) > kMaxCheckpointRounds ||
      stored.resume_round() > kMaxRound ||
      std::any_of(rounds.begin(), rounds.end(),
                  [](uint64_t round) { return round > kMaxRound; })) {
    return Refused(absl::StrCat(who, " has rounds out of range"));
  }
  if (stored.standing() > static_cast<uint32_t>(Standing::kLeft)) {
    return Refused(absl::StrCat(who, " has standing ", stored.standing()));
  }
  return MemberRecord{.id = {stored.peer_id()},
                      .incarnation_id = stored.incarnation_id(),
                      .address = stored.address(),
                      .device = stored.device(),
                      .checkpoint_rounds = {rounds.begin(), rounds.end()},
                      .in_view = stored.in_view(),
                      .resume_round = stored.resume_round(),
                      .finished = stored.finished(),
                      .standing = static_cast<Standing>(stored.standing()),
                      .needs_parameters = stored.needs_parameters(),
                      .removals = stored.removals()};
}

// Checks that every peer in the view is a member.
absl::Status CheckMembers(const FleetRecord& record) {
  // A fleet that gathers for another run still has the last view of the run
  // before, whose peers may be no members of this one.
  if (!record.assembled) return record.view.MakeSchedule().status();
  for (const Member& m : record.view.members) {
    if (FindMember(record.members, m.id) == nullptr) {
      return Refused(absl::StrCat("peer ", m.id.value,
                                  " is in the view, but has not registered"));
    }
  }
  return record.view.MakeSchedule().status();
}

}  // namespace

wire::StoredMember ToMessage(const MemberRecord& m) {
  wire::StoredMember stored;
  stored.set_peer_id(m.id.value);
  stored.set_incarnation_id(m.incarnation_id);
  stored.set_address(m.address);
  stored.set_device(m.device);
  for (const uint64_t round : m.checkpoint_rounds) {
    stored.add_checkpoint_rounds(round);
  }
  stored.set_in_view(m.in_view);
  stored.set_resume_round(m.resume_round);
  stored.set_finished(m.finished);
  stored.set_standing(static_cast<uint32_t>(m.standing));
  stored.set_needs_parameters(m.needs_parameters);
  stored.set_removals(m.removals);
  return stored;
}

wire::StoredFleet HeadOf(const FleetRecord& record) {
  wire::StoredFleet stored;
  stored.set_format(kFormat);
  stored.set_generation(record.generation);
  stored.set_layout_fingerprint(record.layout_fingerprint);
  stored.set_configuration_hash(record.configuration_hash);
  stored.set_assembled(record.assembled);
  stored.set_stop_round(record.stop.round);
  stored.set_stop_committed(record.stop.committed);
  stored.set_suspicions(record.counts.suspicions);
  stored.set_removals(record.counts.removals);
  stored.set_returns(record.counts.returns);
  stored.set_joins(record.counts.joins);
  stored.set_leaves(record.counts.leaves);
  stored.set_mac_key(record.mac_key);
  return stored;
}

std::string ToBytes(const FleetRecord& record) {
  wire::StoredFleet stored = HeadOf(record);
  for (const MemberRecord& m : record.members) {
    *stored.add_members() = ToMessage(m);
  }
  if (record.view.epoch != 0) *stored.mutable_view() = ToMessage(record.view);
  return stored.SerializeAsString();
}

absl::StatusOr<FleetRecord> RecordFromBytes(absl::string_view bytes) {
  wire::StoredFleet stored;
  if (!ParseMessage(std::as_bytes(std::span(bytes)), stored)) {
    return Refused("the bytes do not parse");
  }
  return RecordFromMessage(stored);
}

absl::StatusOr<FleetRecord> RecordFromMessage(const wire::StoredFleet& stored) {
  if (stored.format() != kFormat) {
    return Refused(absl::StrCat("it has format ", stored.format(),
                                ", this program reads ", kFormat));
  }
  if (stored.stop_round() > kMaxRound) {
    return Refused("the stop's round is out of range");
  }
  FleetRecord record;
  record.generation = stored.generation();
  record.layout_fingerprint = stored.layout_fingerprint();
  record.configuration_hash = stored.configuration_hash();
  record.assembled = stored.assembled();
  record.mac_key = stored.mac_key();
  record.stop = {.round = stored.stop_round(),
                 .committed = stored.stop_committed()};
  record.counts = {.suspicions = stored.suspicions(),
                   .removals = stored.removals(),
                   .returns = stored.returns(),
                   .joins = stored.joins(),
                   .leaves = stored.leaves()};
  uint64_t last = 0;
  for (const wire::StoredMember& m : stored.members()) {
    // Roster searches and inserts by ascending id, and two records of one id
    // would be two peers.
    if (m.peer_id() <= last) return Refused("its peers' ids do not ascend");
    last = m.peer_id();
    GOSSAMER_ASSIGN_OR_RETURN(MemberRecord member, FromMessage(m));
    record.members.push_back(std::move(member));
  }
  // A fleet that still gathers its first members has no view.
  if (!stored.has_view()) return record;
  absl::StatusOr<View> view = gossamer::FromMessage(stored.view());
  if (!view.ok()) return Refused(std::string(view.status().message()));
  record.view = *std::move(view);
  const absl::Status possible = CheckMembers(record);
  if (!possible.ok()) return Refused(std::string(possible.message()));
  return record;
}

}  // namespace gossamer
