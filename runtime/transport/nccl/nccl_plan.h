// Which edges of a view may use NCCL, and in which order: what each peer works
// out from the view alone, with the same result at all of them.
//
// This header is pure and knows nothing of communicators or connections.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_PLAN_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_PLAN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/base/ids.h"
#include "topology/mixing_schedule.h"
#include "topology/view.h"

namespace gossamer {

// The place of a peer's parameters: Member::device in words.
struct NcclPlace {
  std::string fabric;  // the host, or the fast network between hosts
  std::string gpu;     // unique within the fabric
  int version = 0;     // NcclApi::version
  // "fabric/gpu/22809".
  std::string Text() const;
  // nullopt unless the text is one of Text().
  static std::optional<NcclPlace> Parse(std::string_view text);
};

// A group is the members of one fabric and one version of NCCL, on a GPU each,
// that edges among themselves connect.
class NcclPlan {
 public:
  // Of the view's group that `self` is in; without one the group is empty.
  static NcclPlan Of(const View& view, PeerId self);

  // Names the group in messages; differs between views and groups.
  uint64_t key() const { return key_; }
  uint64_t from_round() const { return from_round_; }
  // By rank in the communicator, ascending; empty: no NCCL.
  const std::vector<PeerId>& group() const { return group_; }
  std::optional<int> RankOf(PeerId peer) const;
  // The ranks in the communicator of the members with which this one ever
  // exchanges, ascending.
  std::vector<int> Partners() const;
  // The matching of the round in which this peer and `other` exchange; nullopt
  // if the round has no such edge within the group.
  std::optional<int> Colour(uint64_t round, PeerId other) const;
  // Why members of the fabric are in no group with this peer, a sentence each.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  using Colours = std::map<std::pair<int, int>, int>;  // by ranks of the view
  Colours ColoursOf(uint64_t round) const;

  uint64_t key_ = 0;
  uint64_t from_round_ = 0;
  PeerId self_;
  std::vector<PeerId> group_;
  std::vector<std::string> left_out_;
  std::map<PeerId, int> view_ranks_;  // of the group
  std::shared_ptr<const MixingSchedule> schedule_;
  // The colours of the last round that was asked for.
  mutable std::optional<std::pair<uint64_t, Colours>> last_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_NCCL_PLAN_H_
