#include "runtime/peer/all_reducer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/collective/collective_message.h"
#include "runtime/base/status_macros.h"

namespace gossamer {

absl::Status AllReducer::SetMembers(const std::string& name, int rank,
                                    std::vector<PeerId> members, size_t n,
                                    uint64_t first) {
  GOSSAMER_RETURN_IF_ERROR(
      AllReduce::Create(name, rank, static_cast<int>(members.size()), n)
          .status());
  name_ = name;
  rank_ = rank;
  members_ = std::move(members);
  n_ = n;
  if (!next_) {
    next_ = Make();
    operation_ = first;
  }
  return absl::OkStatus();
}

AllReduce AllReducer::Make() const {
  return *AllReduce::Create(name_, rank_, static_cast<int>(members_.size()),
                            n_);
}

void AllReducer::Start(uint64_t operation, std::span<float> vector) {
  operation_ = operation;
  previous_ = std::move(current_);
  current_ = std::move(next_);
  next_ = Make();
  current_->Start(vector);
  SendOutgoing();
}

void AllReducer::SendTo(int rank, uint64_t operation,
                        const AllReduce::Message& m) {
  const CollectiveHead head{
      .operation = operation,
      .step = m.step,
      .count = static_cast<uint32_t>(m.bytes.size() / sizeof(float))};
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
