#include "runtime/transport/nccl/nccl_groups.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gossamer {
namespace {

// Unique ids of views that are not known here yet.
constexpr int kMaxEarly = 4;  // ids of a peer
// An operation of the view before may still be under way at the other end.
constexpr int kDeadlinesOfAView = 2;
// An operation that the loop has not polled for so many is aborted without it.
constexpr int kDeadlinesOfALoop = 2;

// Whether its communicator may become ready.
bool UnderWay(const NcclGroups::Group& group) {
  const NcclState state = group.comm.state();
  return !group.plan.group().empty() &&
         (state == NcclState::kWaiting || state == NcclState::kMaking ||
          state == NcclState::kMeeting);
}

std::string TextOf(const std::vector<PeerId>& peers) {
  return absl::StrJoin(peers, ", ", [](std::string* out, PeerId peer) {
    absl::StrAppend(out, peer.value);
  });
}

}  // namespace

NcclGroups::NcclGroups(NcclApi* api, NcclDevice* device,
                       NcclGroupsOptions options)
    : api_(api), device_(device), options_(std::move(options)) {}

void NcclGroups::Report(EventKind kind, const std::string& detail) const {
  if (options_.report) options_.report(kind, detail);
}

bool NcclGroups::Prepare(const View& view, absl::Time now) {
  if (view.epoch == 0 ||
      (view.generation == newest_generation_ && view.epoch == newest_epoch_)) {
    return false;
  }
  newest_generation_ = view.generation;
  newest_epoch_ = view.epoch;
  NcclPlan plan = NcclPlan::Of(view, options_.self);
  if (plan.left_out() != left_out_) {
    left_out_ = plan.left_out();
    if (!left_out_.empty()) {
      Report("nccl_left_out", absl::StrJoin(left_out_, "; "));
    }
  }
  // A member that has gone will not meet the others, which would hold up the
  // communicators after it.
  for (const auto& earlier : groups_) {
    if (UnderWay(*earlier) &&
        std::ranges::any_of(earlier->plan.group(), [&](PeerId member) {
          return !view.RankOf(member).has_value();
        })) {
      End(*earlier, NcclEvent::kReplaced, "");
    }
  }
  const int rank = plan.RankOf(options_.self).value_or(0);
  // A view without a group is kept as well: from its round on the group before
  // it is out of use.
  groups_.push_back(std::make_unique<Group>(
      std::move(plan), api_, device_, rank,
      NcclCommunicator::Patience{
          .exchange = kDeadlinesOfALoop * options_.deadline,
          .meeting = options_.making}));
  Group& group = *groups_.back();
  group.since = now;
  if (group.plan.group().empty()) return false;
  if (rank == 0) MakeId(group);
  for (const Early& early : early_) {
    if (early.key == group.plan.key() && group.plan.RankOf(early.from)) {
      TakeId(group, early.id, early.from);
    }
  }
  std::erase_if(early_, [&group](const Early& early) {
    return early.key == group.plan.key();
  });
  return true;
}

void NcclGroups::MakeId(Group& group) {
  NcclUniqueId id;
  const NcclResult made = api_->GetUniqueId(&id);
  if (made == NcclResult::kSuccess) return TakeId(group, id, options_.self);
  End(group, NcclEvent::kFailed,
      absl::StrCat("ncclGetUniqueId: ", api_->TextOf(made)));
}

// The id travels along the group's edges: each member passes it on once.
void NcclGroups::TakeId(Group& group, const NcclUniqueId& id, PeerId from) {
  if (group.comm.state() != NcclState::kWaiting) return;
  group.id = id;
  const absl::Status begun = group.comm.Make(id);
  if (!begun.ok()) {
    return End(group, NcclEvent::kFailed, std::string(begun.message()));
  }
  for (const PeerId peer : group.plan.group()) {
    if (peer != options_.self && peer != from) SendId(peer, group);
  }
}

void NcclGroups::SendId(PeerId to, const Group& group) const {
  options_.send_id(
      to, group.plan.key(),
      SharedBytes::FromVector({group.id->begin(), group.id->end()}));
}

void NcclGroups::OnId(PeerId from, uint64_t key, const SharedBytes& bytes) {
  NcclUniqueId id;
  std::ranges::copy(bytes.bytes(), id.begin());
  if (Group* const group = Find(key); group != nullptr) {
    if (group->plan.RankOf(from)) TakeId(*group, id, from);
    return;
  }
  const auto of_peer = [from](const Early& early) {
    return early.from == from;
  };
  if (std::ranges::count_if(early_, of_peer) >= kMaxEarly) {
    early_.erase(std::ranges::find_if(early_, of_peer));
  }
  early_.push_back({from, key, id});
}

void NcclGroups::OnBroken(PeerId from, uint64_t key) {
  Group* const group = Find(key);
  if (group == nullptr || !group->plan.RankOf(from)) return;
  End(*group, NcclEvent::kRemoteAbort,
      absl::StrCat("peer ", from.value, " has given it up"));
}

void NcclGroups::OnUp(PeerId peer) {
  for (const auto& group : groups_) {
    const NcclState state = group->comm.state();
    if (group->id && group->plan.RankOf(peer) &&
        (state == NcclState::kMaking || state == NcclState::kMeeting ||
         state == NcclState::kReady)) {
      SendId(peer, *group);
    }
  }
}

NcclGroups::Group* NcclGroups::Find(uint64_t key) {
  for (const auto& group : groups_) {
    if (!group->plan.group().empty() && group->plan.key() == key) {
      return group.get();
    }
  }
  return nullptr;
}

bool NcclGroups::Ready(uint64_t key) {
  const Group* const group = Find(key);
  return group != nullptr && group->comm.ready();
}

NcclGroups::Group* NcclGroups::ForRound(uint64_t round, absl::Time now) {
  const auto found = std::find_if(
      groups_.rbegin(), groups_.rend(),
      [&](const auto& group) { return group->plan.from_round() <= round; });
  if (found == groups_.rend()) return nullptr;
  // The views before are over for this end.
  for (auto older = std::next(found); older != groups_.rend(); ++older) {
    absl::Time& close_at = (*older)->close_at;
    close_at = std::min(close_at, now + kDeadlinesOfAView * options_.deadline);
  }
  return found->get();
}

void NcclGroups::End(uint64_t key, NcclEvent why, const std::string& reason) {
  if (Group* const group = Find(key); group != nullptr) {
    End(*group, why, reason);
  }
}

void NcclGroups::End(Group& group, NcclEvent why, const std::string& reason) {
  const NcclState before = group.comm.state();
  if (before == NcclState::kBroken || before == NcclState::kGone) return;
  group.comm.End(why);
  if (why != NcclEvent::kReplaced) {
    ++broken_;
    Report("nccl_broken",
           absl::StrCat("among peers ", TextOf(group.plan.group()), ", while ",
                        std::string(NameOf(before)), ": ", reason,
                        "; their bodies travel by gRPC until the next view"));
  }
  options_.on_end(group.plan, why);
}

void NcclGroups::Poll(absl::Time now) {
  for (const auto& group : groups_) {
    if (!UnderWay(*group)) continue;
    const absl::Status polled = group->comm.PollMaking();
    if (!polled.ok()) {
      End(*group, NcclEvent::kFailed, std::string(polled.message()));
    } else if (now - group->since >= options_.making) {
      End(*group, NcclEvent::kLate,
          absl::StrCat("it was not complete after ",
                       absl::FormatDuration(options_.making)));
    }
  }
  // All members meet in the order of the views, or they could wait for each
  // other in a circle.
  const auto next = std::ranges::find_if(
      groups_, [](const auto& group) { return UnderWay(*group); });
  if (next != groups_.end() && (*next)->comm.state() == NcclState::kMeeting) {
    options_.on_made((*next)->plan.key());
  }
  for (const auto& group : groups_) {
    if (now >= group->close_at) End(*group, NcclEvent::kReplaced, "");
  }
  std::erase_if(groups_,
                [now](const auto& group) { return now >= group->close_at; });
}

void NcclGroups::OnMet(uint64_t key) {
  const Group* const group = Find(key);
  if (group == nullptr || !group->comm.ready()) return;
  Report("nccl_ready",
         absl::StrCat("among peers ", TextOf(group->plan.group()),
                      ", for rounds from ", group->plan.from_round()));
}

absl::Time NcclGroups::NextPoll(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& group : groups_) {
    next = std::min(next, group->close_at);
    const NcclState state = group->comm.state();
    if (!UnderWay(*group)) continue;
    next = std::min(next, state == NcclState::kWaiting
                              ? group->since + options_.making
                              : now);
  }
  return next;
}

}  // namespace gossamer
