#include "runtime/peer/all_reducer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/collective/collective_message.h"
#include "runtime/base/rng.h"
#include "runtime/base/status_macros.h"

namespace gossamer {

absl::Status AllReducer::SetMembers(const std::string& name, int rank,
                                    std::vector<PeerId> members, size_t n,
                                    uint64_t first,
                                    std::shared_ptr<const Codec> codec) {
  const std::string first_name =
      name == kAuto ? std::string(AllReduce::Names().front()) : name;
  GOSSAMER_RETURN_IF_ERROR(AllReduce::Create(first_name, rank,
                                             static_cast<int>(members.size()),
                                             n, codec)
                               .status());
  name_ = name;
  rank_ = rank;
  members_ = std::move(members);
  n_ = n;
  codec_ = std::move(codec);
  if (!next_) {
    first_ = operation_ = first;
    if (name_ == kAuto) {
      seconds_.assign(AllReduce::Names().size(), 0);
    } else {
      chosen_ = name_;
    }
    vector_.resize(n + seconds_.size());
    next_ = Make(first);
  }
  return absl::OkStatus();
}

uint64_t AllReducer::trial_operations() const {
  return kTrials * seconds_.size();
}

// The choice is made at the end of the trial's last operation, and the next
// one, which a faster member may have begun by then, still belongs to it.
std::string AllReducer::ScheduleOf(uint64_t operation) const {
  if (operation > first_ + trial_operations() || seconds_.empty()) {
    return chosen_;
  }
  const size_t k = (operation - first_) / kTrials;
  return std::string(AllReduce::Names()[k % seconds_.size()]);
}

AllReduce AllReducer::Make(uint64_t operation) const {
  return *AllReduce::Create(ScheduleOf(operation), rank_,
                            static_cast<int>(members_.size()),
                            n_ + seconds_.size(), codec_);
}

void AllReducer::Start(uint64_t operation) {
  operation_ = operation;
  schedule_ = ScheduleOf(operation);
  previous_ = std::move(current_);
  current_ = std::move(next_);
  next_ = Make(operation + 1);
  std::ranges::copy(seconds_, vector_.begin() + static_cast<ptrdiff_t>(n_));
  // Ranks round apart, so that their errors average out; a replay as before.
  current_->Start(vector_,
                  RngKey(operation).Fold(static_cast<uint64_t>(rank_)).Bits(0));
  SendOutgoing();
}

void AllReducer::Finish(double seconds) {
  if (seconds_.empty() || operation_ >= first_ + trial_operations()) return;
  const uint64_t k = operation_ - first_;
  if (k + 1 == trial_operations()) {
    Choose();
    return;
  }
  float& least = seconds_[k / kTrials];
  const auto s = static_cast<float>(seconds);
  if (k % kTrials > 0) least = least == 0 ? s : std::min(least, s);
}

// Every member has the same means, to the bit.  The trial's last operation
// carries the times of all before it.
void AllReducer::Choose() {
  const std::vector<std::string_view> names = AllReduce::Names();
  double least = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const double mean = vector_[n_ + i];
    tried_[std::string(names[i])] = mean;
    if (i > 0 && !(mean < least)) continue;
    least = mean;
    chosen_ = names[i];
  }
  if (preferred_) chosen_ = names.at(*preferred_);
}

void AllReducer::SendTo(int rank, uint64_t operation,
                        const AllReduce::Message& m) {
  const CollectiveHead head{
      .operation = operation, .step = m.step, .body_bytes = m.bytes.size()};
  // Without a connection it goes out when there is one.
  transport_->Send(
      members_[static_cast<size_t>(rank)], Channel::kCollective,
      Frame{Payload::FromVector(EncodeCollectiveHead(head)), m.bytes});
}

void AllReducer::SendOutgoing() {
  for (const AllReduce::Message& m : current_->TakeOutgoing()) {
    SendTo(m.rank, operation_, m);
  }
  transport_->Flush();
}

absl::Status AllReducer::OnFrame(PeerId peer, const Frame& frame) {
  const auto it = std::find(members_.begin(), members_.end(), peer);
  if (it == members_.end()) {
    return absl::DataLossError(
        absl::StrCat("peer ", peer.value, " is not in this all-reduce"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      const CollectiveHead head,
      DecodeCollectiveHead(frame.head.bytes(), frame.body.size()));
  const int rank = static_cast<int>(it - members_.begin());
  const uint64_t upcoming = current_ ? operation_ + 1 : operation_;
  if (current_ && head.operation == operation_) {
    GOSSAMER_RETURN_IF_ERROR(current_->OnMessage(rank, head.step, frame.body));
    SendOutgoing();
  } else if (head.operation == upcoming && next_) {
    return next_->OnMessage(rank, head.step, frame.body);
  }
  return absl::OkStatus();  // an old one, sent again
}

void AllReducer::OnUp(PeerId peer) {
  const auto it = std::find(members_.begin(), members_.end(), peer);
  if (it == members_.end()) return;
  const int rank = static_cast<int>(it - members_.begin());
  if (previous_) {
    for (const auto& m : previous_->SentTo(rank)) {
      SendTo(rank, operation_ - 1, m);
    }
  }
  if (!current_) return;
  for (const auto& m : current_->SentTo(rank)) SendTo(rank, operation_, m);
}

}  // namespace gossamer
