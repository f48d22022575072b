#include "runtime/transport/nccl/nccl_plan.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/rng.h"
#include "topology/edge_colouring.h"

namespace gossamer {
namespace {

std::string VersionText(int version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".",
                      version % 100);
}

// The members that NCCL could join with `self`, whatever their edges are.  Of
// several members on one GPU the one with the smallest id is taken.
std::set<PeerId> Candidates(const View& view, PeerId self,
                            std::vector<std::string>& left_out) {
  std::optional<NcclPlace> own;
  for (const Member& m : view.members) {
    if (m.id == self) own = NcclPlace::Parse(m.device);
  }
  std::set<PeerId> candidates;
  if (!own) return candidates;
  std::map<std::string, PeerId> taken;
  for (const Member& m : view.members) {
    const std::optional<NcclPlace> place = NcclPlace::Parse(m.device);
    if (!place || place->fabric != own->fabric) continue;
    if (place->version != own->version) {
      left_out.push_back(absl::StrFormat(
          "peer %d has NCCL %s and peer %d has %s: install one version",
          m.id.value, VersionText(place->version), self.value,
          VersionText(own->version)));
      continue;
    }
    const auto [it, first] = taken.emplace(place->gpu, m.id);
    if (first) {
      candidates.insert(m.id);
    } else {
      left_out.push_back(absl::StrFormat(
          "peer %d is on the GPU of peer %d (%s), and NCCL takes one peer a "
          "GPU: give each peer its own",
          m.id.value, it->second.value, place->gpu));
    }
  }
  return candidates;
}

}  // namespace

std::string NcclPlace::Text() const {
  return absl::StrCat(fabric, "/", gpu, "/", version);
}

std::optional<NcclPlace> NcclPlace::Parse(std::string_view text) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(text.data(), text.size()), '/');
  NcclPlace place;
  if (parts.size() != 3 || parts[0].empty() || parts[1].empty() ||
      !absl::SimpleAtoi(parts[2], &place.version) || place.version <= 0) {
    return std::nullopt;
  }
  place.fabric = parts[0];
  place.gpu = parts[1];
  return place;
}

NcclPlan NcclPlan::Of(const View& view, PeerId self) {
  NcclPlan plan;
  plan.self_ = self;
  plan.from_round_ = view.from_round;
  plan.key_ = RngKey(view.generation).Fold(view.epoch).Bits(0);
  const std::set<PeerId> candidates = Candidates(view, self, plan.left_out_);
  auto schedule = view.MakeSchedule();
  if (!candidates.contains(self) || !schedule.ok()) return plan;
  plan.schedule_ = *std::move(schedule);
  if (candidates.size() > 1 && !HasPersistentEdges(*plan.schedule_)) {
    plan.left_out_.push_back(absl::StrFormat(
        "edges of %d peers come and go with the rounds: NCCL takes a graph "
        "that stays, or at most %d peers",
        view.members.size(), kMaxNeighbors));
    return plan;
  }
  // The unique id travels along edges, so the group is what edges between
  // candidates reach.
  std::set<PeerId> reached = {self};
  std::vector<PeerId> next = {self};
  while (!next.empty()) {
    const int rank = *view.RankOf(next.back());
    next.pop_back();
    for (const int other : NeighborsOf(*plan.schedule_, rank)) {
      const PeerId peer = view.members[static_cast<size_t>(other)].id;
      if (candidates.contains(peer) && reached.insert(peer).second) {
        next.push_back(peer);
      }
    }
  }
  if (reached.size() < 2) return plan;
  plan.group_.assign(reached.begin(), reached.end());
  for (const PeerId peer : plan.group_) {
    plan.view_ranks_[peer] = *view.RankOf(peer);
  }
  // Two groups of one view must not take each other's messages.
  plan.key_ = RngKey(plan.key_).Fold(plan.group_.front().value).Bits(0);
  return plan;
}

std::optional<int> NcclPlan::RankOf(PeerId peer) const {
  const auto it = std::ranges::lower_bound(group_, peer);
  if (it == group_.end() || *it != peer) return std::nullopt;
  return static_cast<int>(it - group_.begin());
}

std::vector<int> NcclPlan::Partners() const {
  const auto self = view_ranks_.find(self_);
  if (self == view_ranks_.end()) return {};
  const std::vector<int> all = NeighborsOf(*schedule_, self->second);
  std::vector<int> partners;
  for (size_t i = 0; i < group_.size(); ++i) {
    if (std::ranges::find(all, view_ranks_.at(group_[i])) != all.end()) {
      partners.push_back(static_cast<int>(i));
    }
  }
  return partners;
}

NcclPlan::Colours NcclPlan::ColoursOf(uint64_t round) const {
  std::set<int> ranks;
  for (const auto& [peer, rank] : view_ranks_) ranks.insert(rank);
  std::vector<RankPair> edges;
  for (const int rank : ranks) {
    for (const Neighbor& n : schedule_->Row(rank, round).neighbors) {
      if (rank < n.rank && ranks.contains(n.rank)) {
        edges.push_back({rank, n.rank});
      }
    }
  }
  const std::vector<int> colours = ColourEdges(edges);
  Colours by_edge;
  for (size_t i = 0; i < edges.size(); ++i) {
    by_edge[{edges[i].lower, edges[i].upper}] = colours[i];
  }
  return by_edge;
}

std::optional<int> NcclPlan::Colour(uint64_t round, PeerId other) const {
  const auto here = view_ranks_.find(self_);
  const auto there = view_ranks_.find(other);
  if (here == view_ranks_.end() || there == view_ranks_.end() ||
      here == there) {
    return std::nullopt;
  }
  if (schedule_->is_static()) round = 1;
  if (!last_ || last_->first != round) last_ = {round, ColoursOf(round)};
  const auto found =
      last_->second.find(std::minmax(here->second, there->second));
  if (found == last_->second.end()) return std::nullopt;
  return found->second;
}

}  // namespace gossamer
