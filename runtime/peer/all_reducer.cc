#include "runtime/peer/all_reducer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/collective/collective_message.h"

namespace gossamer {

absl::Status AllReducer::SetMembers(const std::string& name, int rank,
                                    const View& view, uint64_t first,
                                    const ParameterLayout& layout,
                                    GradientCompressor* compressor) {
  if (dense_ == nullptr) {
    GOSSAMER_ASSIGN_OR_RETURN(
        dense_, GradientCompressor::Create(GradientCompressor::kDense, layout));
  }
  // Alone a peer sends nothing: what a compressor left out would only come
  // late.
  if (compressor == nullptr || view.members.size() == 1) {
    compressor = dense_.get();
  }
  const std::string first_name =
      name == kAuto ? std::string(AllReduce::Names().front()) : name;
  const int size = static_cast<int>(view.members.size());
  // This operation is only checked: Make() may then rely on it.
  GOSSAMER_RETURN_IF_ERROR(
      AllReduce::Create(first_name, rank, size, compressor->Form(first, size))
          .status());
  // Its first operations may be of floats, which any schedule carries.
  if (!compressor->summable() && first_name != kOfPayloads) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-reduce \"", name, "\" sends sums on; payloads need ",
                     std::string(kOfPayloads)));
  }
  name_ = name;
  rank_ = rank;
  members_.clear();
  for (const Member& m : view.members) members_.push_back(m.id);
  compressor_ = compressor;
  // The first view begins the operations.  A later one of the same members
  // leaves those under way as they are.
  if (!next_) {
    first_ = operation_ = first;
    if (nccl_sum_ != nullptr && compressor_->summable() &&
        !compressor_->has_residual()) {
      nccl_sum_->SetView(view, first);
    }
    // NCCL leaves no times to choose by: if it fails, one schedule goes on.
    if (name_ == kAuto && !ByNccl(first)) {
      seconds_.assign(AllReduce::Names().size(), 0);
    } else {
      chosen_ = first_name;
    }
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
  const int size = static_cast<int>(members_.size());
  AllReduceForm form = compressor_->Form(operation, size);
  // The times of the trial travel behind the gradient, as floats of their own:
  // the mean of all members' is the same at all, and so is the choice.
  form.floats += seconds_.size();
  return *AllReduce::Create(ScheduleOf(operation), rank_, size,
                            std::move(form));
}

ReduceContext AllReducer::ContextOf(uint64_t operation) const {
  return {operation, rank_, static_cast<int>(members_.size())};
}

bool AllReducer::ByNccl(uint64_t operation) const {
  return nccl_sum_ != nullptr && operation < nccl_end_ &&
         nccl_sum_->Possible(operation);
}

// This runs on the compute engine.  Frames that come meanwhile change only
// operations: the current one is done, and the next one keeps what it gets
// until Start().
bool AllReducer::Begin(uint64_t operation, DeviceSpan<const float> gradient,
                       bool by_nccl) {
  gradient_ = gradient;
  begun_ = operation;
  begun_by_nccl_ = by_nccl;
  if (by_nccl) {
    nccl_sum_->Contribute(gradient, compressor_->Form(operation, 1).floats);
    return true;
  }
  return Encode();
}

bool AllReducer::Encode() {
  const AllReduceForm form =
      compressor_->Form(begun_, static_cast<int>(members_.size()));
  vector_.resize(form.floats + seconds_.size());
  std::ranges::copy(seconds_,
                    vector_.begin() + static_cast<ptrdiff_t>(form.floats));
  std::span<const float> gradient;
  if (queue_.on_host()) {
    gradient = HostSpan(gradient_);
  } else if (!gradient_.empty()) {
    host_gradient_ = queue_.ToHost(gradient_);
    gradient = host_gradient_;
  }
  const bool accepts = compressor_->Accepts(gradient);
  compressor_->Begin(ContextOf(begun_),
                     accepts ? gradient : std::span<const float>());
  // With a leader the contribution depends on its message, which may not be
  // here.
  contributed_ = form.leader < 0;
  payload_ = contributed_ ? compressor_->Contribute(
                                {}, std::span(vector_).first(form.floats))
                          : SharedBytes();
  if (form.leader == rank_ && sent_ahead_ != begun_) {
    leader_message_ = compressor_->MakeLeaderMessage();
  }
  return accepts;
}

void AllReducer::Start(uint64_t operation) {
  operation_ = operation;
  // One earlier operation is enough: this one can only be started once every
  // member has contributed to the one before it.
  previous_ = std::move(current_);
  current_ = std::move(next_);
  next_ = Make(operation_ + 1);
  by_nccl_ = begun_by_nccl_;
  if (by_nccl_) {
    nccl_sum_->Start(operation_);
  } else {
    Send();
  }
}

void AllReducer::Restart() {
  by_nccl_ = false;
  Send();
}

void AllReducer::Send() {
  if (nccl_sum_ != nullptr) nccl_sum_->TakeQueue();
  // The message is empty if SendNextLeaderMessage() has sent it already.
  if (!leader_message_.empty()) {
    current_->SetLeaderMessage(std::exchange(leader_message_, SharedBytes()));
  }
  Contribute();
  SendOutgoing(*current_, operation_);
}

// A contribution may go once the leader's message is here, if there is one.
void AllReducer::Contribute() {
  if (by_nccl_ || !current_->can_start() || current_->started()) return;
  if (!contributed_) {
    payload_ = compressor_->Contribute(
        current_->leader_message(),
        std::span(vector_).first(vector_.size() - seconds_.size()));
    contributed_ = true;
  }
  current_->Start(vector_, payload_);
}

DeviceSpan<const float> AllReducer::Mean() {
  if (by_nccl_) return nccl_sum_->Mean();
  const auto mean = compressor_->Finish(
      std::span(vector_).first(vector_.size() - seconds_.size()));
  // This is still the compute engine; the loop sends the message.
  leader_message_ = compressor_->MakeNextLeaderMessage(ContextOf(operation_));
  if (queue_.on_host()) return mean;
  mean_.EnsureSize(queue_, mean.size());
  mean_.CopyFrom(mean);
  return mean_;
}

void AllReducer::SendNextLeaderMessage() {
  if (leader_message_.empty()) return;
  // Begin() of that operation must not ask for the message again.
  sent_ahead_ = operation_ + 1;
  next_->SetLeaderMessage(std::exchange(leader_message_, SharedBytes()));
  SendOutgoing(*next_, operation_ + 1);
}

std::string AllReducer::Awaited() const {
  if (by_nccl_) return nccl_sum_->Awaited();
  const auto awaited = current_ ? current_->awaited() : std::nullopt;
  if (!awaited) return "nobody";
  return absl::StrCat("peer ",
                      members_[static_cast<size_t>(awaited->rank)].value);
}

void AllReducer::Finish(double seconds) {
  if (nccl_sum_ != nullptr) nccl_sum_->ReleaseQueue();
  if (seconds_.empty() || operation_ >= first_ + trial_operations()) return;
  // The last operation's own time cannot travel any more: it only carries the
  // times of those before.
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
  // The tie goes to the first name, at all members alike; so does a mean that
  // is not a number.
  double least = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const double mean = vector_[vector_.size() - seconds_.size() + i];
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
      Frame{SharedBytes::FromVector(EncodeCollectiveHead(head)), m.bytes});
}

void AllReducer::SendOutgoing(AllReduce& op, uint64_t operation) {
  for (const AllReduce::Message& m : op.TakeOutgoing()) {
    SendTo(m.rank, operation, m);
  }
}

void AllReducer::AnnounceEnd() {
  announced_end_ = true;
  if (nccl_sum_ != nullptr) nccl_sum_->TakeQueue();
  for (const PeerId peer : members_) SendFin(peer);
}

void AllReducer::SendFin(PeerId peer) {
  if (peer == members_[static_cast<size_t>(rank_)]) return;
  // A FIN names the first operation that this member has no part in.
  const uint64_t upcoming = current_ ? operation_ + 1 : operation_;
  const CollectiveHead head{.operation = upcoming, .step = kFin};
  transport_->Send(peer, Channel::kCollective,
                   Frame{SharedBytes::FromVector(EncodeCollectiveHead(head)),
                         SharedBytes()});
}

std::vector<PeerId> AllReducer::NotEnded() const {
  std::vector<PeerId> remaining;
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    const bool self = rank == static_cast<size_t>(rank_);
    if (self || ended_.contains(members_[rank])) continue;
    remaining.push_back(members_[rank]);
  }
  return remaining;
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
  if (IsNcclMessage(head.step)) {
    if (nccl_sum_ != nullptr) {
      return nccl_sum_->OnFrame(peer, head.operation, head.step, frame.body);
    }
    return absl::DataLossError(absl::StrCat(
        "peer ", peer.value, " sums by NCCL, and this peer does not"));
  }
  if (head.step == kFin) {
    ended_.insert(peer);
    // A FIN is repeated on every connection; the smallest number of all
    // members holds.
    ended_at_ = std::min(ended_at_, head.operation);
    return absl::OkStatus();
  }
  const int rank = static_cast<int>(it - members_.begin());
  const uint64_t upcoming = current_ ? operation_ + 1 : operation_;
  if (current_ && head.operation == operation_) {
    // The message may have been the leader's.
    GOSSAMER_RETURN_IF_ERROR(current_->OnMessage(rank, head.step, frame.body));
    Contribute();
    SendOutgoing(*current_, operation_);
  } else if (head.operation == upcoming && next_) {
    return next_->OnMessage(rank, head.step, frame.body);
  }
  return absl::OkStatus();  // an old one, sent again
}

void AllReducer::OnUp(PeerId peer) {
  const auto it = std::find(members_.begin(), members_.end(), peer);
  if (it == members_.end()) return;
  const int rank = static_cast<int>(it - members_.begin());
  // A broken connection may have lost any message.  The other end ignores those
  // that it has.
  const auto resend = [&](const std::optional<AllReduce>& op,
                          uint64_t operation) {
    if (!op) return;
    for (const auto& m : op->SentTo(rank)) SendTo(rank, operation, m);
  };
  resend(previous_, operation_ - 1);
  resend(current_, operation_);
  resend(next_, operation_ + 1);  // has sent nothing before the first
  if (nccl_sum_ != nullptr) nccl_sum_->OnUp(peer);
  if (announced_end_) SendFin(peer);
}

}  // namespace gossamer
