#include "runtime/transport/nccl/nccl_communicator.h"

#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {

// The buffers of an operation.  They outlive it, also after an abort.
struct NcclCommunicator::Operation {
  // Of a sum.
  std::shared_ptr<DeviceVector<float>> values;
  // Of an exchange.
  SharedBytes body;  // host memory that is copied in
  std::shared_ptr<void> send, receive;
  std::shared_ptr<std::byte[]> landing;
  size_t size = 0;  // of it
  std::shared_ptr<void> send_name, receive_name;
  std::shared_ptr<std::byte[]> landed_name;
  uint64_t name = 0;
  bool enqueued = false;  // NCCL has all of it on the stream
};

NcclCommunicator::NcclCommunicator(NcclApi* api, NcclDevice* device, int ranks,
                                   int rank)
    : api_(api), device_(device), ranks_(ranks), rank_(rank) {}

// A call on a non-blocking communicator may go on in the background.
absl::Status NcclCommunicator::Check(NcclResult result,
                                     const char* call) const {
  if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(call, ": ", api_->TextOf(result)));
}

absl::Status NcclCommunicator::Make(const NcclUniqueId& id) {
  if (state_ != NcclState::kWaiting) return absl::OkStatus();
  state_ = NextState(state_, NcclEvent::kId);
  GOSSAMER_RETURN_IF_ERROR(device_->Use());
  return Check(api_->CommInitRank(&comm_, ranks_, id, rank_),
               "ncclCommInitRankConfig");
}

absl::Status NcclCommunicator::PollMaking() {
  if (state_ != NcclState::kMaking) return absl::OkStatus();
  NcclResult error = NcclResult::kSuccess;
  GOSSAMER_RETURN_IF_ERROR(
      Check(api_->CommGetAsyncError(comm_, &error), "ncclCommGetAsyncError"));
  GOSSAMER_RETURN_IF_ERROR(Check(error, "ncclCommInitRankConfig"));
  if (error == NcclResult::kSuccess) {
    state_ = NextState(state_, NcclEvent::kMade);
  }
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Exchange(int rank, SharedBytes body,
                                        size_t bytes, uint64_t name) {
  operation_ = std::make_shared<Operation>();
  operation_->body = std::move(body);
  operation_->name = name;
  operation_->size = bytes;
  GOSSAMER_ASSIGN_OR_RETURN(operation_->landing, device_->AllocateHost(bytes));
  GOSSAMER_ASSIGN_OR_RETURN(operation_->send,
                            device_->Allocate(operation_->body.size()));
  GOSSAMER_ASSIGN_OR_RETURN(operation_->receive, device_->Allocate(bytes));
  GOSSAMER_ASSIGN_OR_RETURN(operation_->send_name,
                            device_->Allocate(sizeof name));
  GOSSAMER_ASSIGN_OR_RETURN(operation_->receive_name,
                            device_->Allocate(sizeof name));
  GOSSAMER_ASSIGN_OR_RETURN(operation_->landed_name,
                            device_->AllocateHost(sizeof name));
  GOSSAMER_RETURN_IF_ERROR(
      device_->CopyIn(operation_->send_name.get(),
                      std::as_bytes(std::span(&operation_->name, 1))));
  const std::span<const std::byte> out = operation_->body.bytes();
  GOSSAMER_RETURN_IF_ERROR(device_->CopyIn(operation_->send.get(), out));
  void* const stream = device_->stream();
  GOSSAMER_RETURN_IF_ERROR(Check(api_->GroupStart(), "ncclGroupStart"));
  const absl::Status calls[] = {
      Check(api_->Send(operation_->send.get(), out.size(), rank, comm_, stream),
            "ncclSend"),
      Check(api_->Recv(operation_->receive.get(), bytes, rank, comm_, stream),
            "ncclRecv"),
      Check(api_->Send(operation_->send_name.get(), sizeof name, rank, comm_,
                       stream),
            "ncclSend"),
      Check(api_->Recv(operation_->receive_name.get(), sizeof name, rank, comm_,
                       stream),
            "ncclRecv"),
      // The group is ended whatever its calls have said, lest the next one
      // nest.
      Check(api_->GroupEnd(), "ncclGroupEnd")};
  for (const absl::Status& call : calls) GOSSAMER_RETURN_IF_ERROR(call);
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Sum(
    std::shared_ptr<DeviceVector<float>> values) {
  operation_ = std::make_shared<Operation>();
  operation_->values = std::move(values);
  const DeviceSpan<float> span = operation_->values->span();
  return Check(api_->AllReduce(span.data, span.data, span.size, comm_,
                               device_->stream()),
               "ncclAllReduce");
}

absl::StatusOr<std::optional<SharedBytes>> NcclCommunicator::PollOperation() {
  NcclResult error = NcclResult::kSuccess;
  GOSSAMER_RETURN_IF_ERROR(
      Check(api_->CommGetAsyncError(comm_, &error), "ncclCommGetAsyncError"));
  GOSSAMER_RETURN_IF_ERROR(Check(error, "NCCL"));
  // The copy must not be enqueued before NCCL's own work is.
  if (error == NcclResult::kInProgress) return std::nullopt;
  if (!operation_->enqueued) {
    operation_->enqueued = true;
    if (operation_->landing != nullptr) {
      GOSSAMER_RETURN_IF_ERROR(
          device_->CopyOut({operation_->landing.get(), operation_->size},
                           operation_->receive.get()));
      GOSSAMER_RETURN_IF_ERROR(device_->CopyOut(
          {operation_->landed_name.get(), sizeof operation_->name},
          operation_->receive_name.get()));
    }
  }
  GOSSAMER_ASSIGN_OR_RETURN(const bool idle, device_->Idle());
  if (!idle) return std::nullopt;
  if (operation_->landed_name != nullptr &&
      std::memcmp(operation_->landed_name.get(), &operation_->name,
                  sizeof operation_->name) != 0 &&
      !SeededBug("nccl-any-name")) {
    return absl::DataLossError("the other end was at another exchange");
  }
  const std::shared_ptr<Operation> done = std::exchange(operation_, nullptr);
  if (done->landing == nullptr) return SharedBytes();
  return SharedBytes({done->landing.get(), done->size}, done->landing);
}

void NcclCommunicator::End(NcclEvent why) {
  state_ = NextState(state_, why);
  if (comm_ == nullptr) return;
  api_->CommAbort(std::exchange(comm_, nullptr), std::move(operation_));
  operation_ = nullptr;
}

}  // namespace gossamer
