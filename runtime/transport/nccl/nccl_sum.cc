#include "runtime/transport/nccl/nccl_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/collective/collective_message.h"
#include "runtime/transport/nccl/nccl_plan.h"
#include "runtime/transport/nccl/watchdog.h"

namespace gossamer {

NcclSum::NcclSum(EventLoop* loop, Transport* transport, NcclApi* api,
                 NcclDevice* device, const DeviceQueue& queue,
                 NcclSumOptions options)
    : loop_(loop),
      transport_(transport),
      api_(api),
      device_(device),
      queue_(queue),
      options_(std::move(options)) {}

NcclSum::~NcclSum() = default;

void NcclSum::SetView(const View& view, uint64_t first) {
  if (agreement_) return;
  const NcclPlan plan = NcclPlan::Of(view, options_.self);
  for (const std::string& why : plan.left_out()) Report("nccl_left_out", why);
  if (plan.group().size() != view.members.size()) return;
  members_ = plan.group();
  rank_ = *plan.RankOf(options_.self);
  const int size = static_cast<int>(members_.size());
  agreement_.emplace(rank_, size, first);
  first_ = operation_ = first;
  comm_ = std::make_unique<NcclCommunicator>(api_, device_, size, rank_,
                                             std::vector<int>(),
                                             NcclCommunicator::Patience());
  since_ = loop_->Now();
  if (rank_ == 0) {
    NcclUniqueId id;
    const NcclResult made = api_->GetUniqueId(&id);
    if (made != NcclResult::kSuccess) {
      Fail(NcclEvent::kFailed,
           absl::StrCat("ncclGetUniqueId: ", api_->TextOf(made)));
    } else {
      TakeId(id);
      for (const PeerId peer : members_) OnUp(peer);
    }
  }
  Arm();
}

void NcclSum::TakeId(const NcclUniqueId& id) {
  if (id_ || agreement_->failed()) return;
  id_ = id;
  const absl::Status begun = comm_->Make(id);
  if (!begun.ok()) Fail(NcclEvent::kFailed, std::string(begun.message()));
}

void NcclSum::Contribute(DeviceSpan<const float> vector, size_t size) {
  next_ = std::make_shared<DeviceVector<float>>(
      DeviceVector<float>::Unset(queue_, size));
  if (vector.empty()) {
    next_->Clear();
  } else {
    // Each part is divided before the sum, so that what NCCL leaves, and what
    // travels to a member that lacks it, is the mean.
    queue_.Copy(vector, next_->span());
    queue_.Run(&DeviceKernels::scale,
               1.0f / static_cast<float>(members_.size()), next_->span());
  }
  // NCCL works on a stream of its own.  A queue that has failed ends the peer
  // elsewhere.
  queue_.Wait().IgnoreError();
}

void NcclSum::Start(uint64_t operation) {
  operation_ = operation;
  previous_ = std::exchange(current_, std::exchange(next_, nullptr));
  agreement_->Start(operation);
  TellAll(operation, kNcclBegun);
  begun_ = agreement_->all_started() ? loop_->Now() : absl::InfiniteFuture();
  pending_ = !agreement_->failed();
  TakeQueue();
  Launch();
  Arm();
}

// All members launch their operations in one order, one at a time.
void NcclSum::Launch() {
  if (!pending_ || !comm_->ready()) return;
  pending_ = false;
  absl::Status begun = queue_.status();
  if (begun.ok()) begun = comm_->Sum(current_);
  if (!begun.ok()) Fail(NcclEvent::kFailed, std::string(begun.message()));
}

void NcclSum::Fail(NcclEvent event, const std::string& why) {
  if (agreement_->failed()) return;
  const NcclState before = comm_->state();
  why_ended_ = event;
  pending_ = false;
  agreement_->Fail();
  Report("nccl_broken",
         absl::StrCat("among all peers, while ", std::string(NameOf(before)),
                      ": ", why, "; means travel by gRPC from here on"));
  TellAll(*agreement_->lacks(), kNcclFailed);
  OnFailure();
}

// Once no member can have the mean that is under way, the compute engine takes
// the queue to encode it for the other way.
void NcclSum::OnFailure() {
  // An abort may end the operation at members that still wait for this one, as
  // if it had summed.  None of them waits any more.
  if (agreement_->all_failed()) comm_->End(why_ended_);
  if (!agreement_->Possible(operation_)) queue_taken_ = false;
  if (changed_) changed_();
}

void NcclSum::GiveTo(int rank) {
  if (!agreement_->Owes(rank)) return;
  owed_.insert(rank);
  if (queue_taken_) TakeQueue();
}

// A copy to the host blocks the loop, once in a run.
void NcclSum::TakeQueue() {
  queue_taken_ = true;
  for (const int rank : std::exchange(owed_, {})) {
    const uint64_t lacks = *agreement_->Owes(rank);
    const Vector* mean = lacks == operation_       ? &current_
                         : lacks + 1 == operation_ ? &previous_
                                                   : nullptr;
    if (mean == nullptr || *mean == nullptr) continue;
    auto values = std::make_shared<const std::vector<float>>((*mean)->ToHost());
    Tell(member(rank), lacks, kNcclSum,
         SharedBytes(std::as_bytes(std::span(*values)), values));
  }
}

absl::Status NcclSum::OnFrame(PeerId peer, uint64_t operation, uint32_t step,
                              const SharedBytes& body) {
  const auto it = std::ranges::find(members_, peer);
  if (it == members_.end() || peer == options_.self) {
    return absl::DataLossError(
        absl::StrCat("peer ", peer.value, " is in no group of NCCL with peer ",
                     options_.self.value));
  }
  const int rank = static_cast<int>(it - members_.begin());
  // No member is further ahead, since each needs all for every operation.
  if (step != kNcclUniqueId && operation > operation_ + 1) {
    return absl::DataLossError(absl::StrCat("a message of the mean ", operation,
                                            ", where that of ", operation_,
                                            " is under way"));
  }
  switch (step) {
    case kNcclUniqueId: {
      NcclUniqueId id;
      if (rank != 0 || body.size() != id.size()) {
        return absl::DataLossError(
            "the name of a group of NCCL that is none, or is not from its "
            "first member");
      }
      std::memcpy(id.data(), body.bytes().data(), id.size());
      TakeId(id);
      break;
    }
    case kNcclBegun:
      agreement_->OnStarted(rank, operation);
      if (begun_ == absl::InfiniteFuture() && agreement_->all_started()) {
        begun_ = loop_->Now();
      }
      break;
    case kNcclFailed:
      agreement_->OnFailed(rank, operation);
      GiveTo(rank);
      Fail(NcclEvent::kRemoteAbort,
           absl::StrCat("peer ", peer.value, " has given it up"));
      OnFailure();
      break;
    default: {
      // All members that have the mean send it: the first one is taken, and one
      // of an operation that is done is dropped.
      if (!agreement_->failed() || done() || operation != operation_ ||
          current_ == nullptr || !agreement_->MayHave(rank, operation)) {
        break;
      }
      if (body.size() != current_->size() * sizeof(float)) {
        return absl::DataLossError(
            absl::StrCat("a mean of ", body.size(), " bytes, not ",
                         current_->size() * sizeof(float)));
      }
      std::vector<float> values(current_->size());
      std::memcpy(values.data(), body.bytes().data(), body.size());
      // NCCL may still write to the one that it was given.
      current_ = std::make_shared<DeviceVector<float>>(
          DeviceVector<float>::Of(queue_, values));
      agreement_->Have();
      if (changed_) changed_();
    }
  }
  Arm();
  return absl::OkStatus();
}

void NcclSum::OnUp(PeerId peer) {
  const auto it = std::ranges::find(members_, peer);
  if (it == members_.end() || peer == options_.self) return;
  if (rank_ == 0 && id_) {
    const auto id = std::make_shared<const NcclUniqueId>(*id_);
    Tell(peer, 0, kNcclUniqueId, SharedBytes(std::span(*id), id));
  }
  if (current_ != nullptr) Tell(peer, operation_, kNcclBegun);
  if (agreement_->failed()) Tell(peer, *agreement_->lacks(), kNcclFailed);
  GiveTo(static_cast<int>(it - members_.begin()));
}

void NcclSum::Tell(PeerId to, uint64_t operation, uint32_t step,
                   SharedBytes body) {
  const CollectiveHead head{
      .operation = operation, .step = step, .body_bytes = body.size()};
  // Without a connection it goes out when there is one.
  transport_->Send(to, Channel::kCollective,
                   Frame{SharedBytes::FromVector(EncodeCollectiveHead(head)),
                         std::move(body)});
}

void NcclSum::TellAll(uint64_t operation, uint32_t step) {
  for (const PeerId peer : members_) {
    if (peer != options_.self) Tell(peer, operation, step);
  }
}

void NcclSum::Poll() {
  const absl::Time now = loop_->Now();
  if (agreement_->failed()) return;
  if (!comm_->ready()) {
    const absl::Status polled = comm_->PollMaking();
    if (!polled.ok()) {
      Fail(NcclEvent::kFailed, std::string(polled.message()));
    } else if (comm_->ready()) {
      Report("nccl_ready", absl::StrCat("among all peers, for means"));
      Launch();
    } else if (IsLate(since_, options_.making, now)) {
      Fail(NcclEvent::kLate,
           absl::StrCat("it was not complete after ",
                        absl::FormatDuration(options_.making)));
    }
  } else if (comm_->busy()) {
    const auto completed = comm_->PollOperation();
    if (!completed.ok()) {
      Fail(NcclEvent::kFailed, std::string(completed.status().message()));
    } else if (completed->has_value()) {
      agreement_->Have();
      if (changed_) changed_();
    } else if (IsLate(
                   begun_,
                   operation_ == first_ ? options_.making : options_.deadline,
                   now)) {
      Fail(NcclEvent::kLate, absl::StrCat("a mean has taken ",
                                          absl::FormatDuration(now - begun_)));
    }
  }
  Arm();
}

void NcclSum::Arm() {
  const bool waits = !comm_->ready() || comm_->busy();
  if (armed_ || agreement_->failed() || !waits) return;
  armed_ = true;
  loop_->RunAt(loop_->Now() + options_.poll,
               [this, alive = std::weak_ptr<bool>(alive_)] {
                 if (alive.expired()) return;
                 armed_ = false;
                 Poll();
               });
}

std::string NcclSum::Awaited() const {
  std::vector<std::string> peers;
  for (const int rank : agreement_->Awaited()) {
    peers.push_back(absl::StrCat("peer ", member(rank).value));
  }
  return peers.empty() ? "NCCL" : absl::StrJoin(peers, ", ");
}

void NcclSum::Report(EventKind kind, const std::string& detail) const {
  if (options_.report) options_.report(kind, detail);
}

}  // namespace gossamer
