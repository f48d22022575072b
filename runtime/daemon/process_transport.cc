#include "runtime/daemon/process_transport.h"

#include <string>

#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/descriptor_limit.h"

namespace gossamer {

void ProcessTransport::ReportTo(TransportOptions& options) {
  options.report = [this](EventKind kind, const std::string& detail) {
    reports_->ReportAndLog(kind, detail);
  };
  options.on_problem = [this](PeerId peer, const absl::Status& why) {
    reports_->ReportProblem(peer, has_member_(peer), why);
  };
}

absl::Status ProcessTransport::Listen(std::string_view name,
                                      TransportOptions options, size_t others) {
  self_ = options.self;
  api_ = options.nccl;
  device_ = options.device;
  ReportTo(options);
  GOSSAMER_ASSIGN_OR_RETURN(MadeTransport made,
                            MakeTransport(name, loop_, std::move(options)));
  // Connections that do not fit are shut down, and the first one of an edge is
  // tried again.
  const std::string shortage =
      DescribeShortage(made.connection_capacity,
                       others * static_cast<size_t>(made.connections_an_edge),
                       "connections of peers");
  if (!shortage.empty()) reports_->Log(shortage);
  port_ = made.port;
  nccl_ = made.nccl;
  transport_ = std::move(made.transport);
  return absl::OkStatus();
}

void ProcessTransport::OpenNcclSum(const DeviceQueue& queue) {
  if (api_ == nullptr) return;
  nccl_sum_ = std::make_unique<NcclSum>(
      loop_, transport_.get(), api_, device_, queue,
      NcclSumOptions{
          .self = self_,
          .report = [this](EventKind kind, const std::string& detail) {
            reports_->ReportAndLog(kind, detail);
          }});
}

void ProcessTransport::Prepare(const View& view) {
  if (nccl_ != nullptr) nccl_->Prepare(view);
}

void ProcessTransport::LogNccl() const {
  if (nccl_ == nullptr) return;
  const NcclCounters& seen = nccl_->nccl_counters();
  reports_->Log(
      absl::StrFormat("NCCL brought %d payloads; %d fell back to gRPC",
                      seen.bodies, seen.fallbacks));
}

void ProcessTransport::Close() {
  nccl_sum_.reset();
  nccl_ = nullptr;
  transport_.reset();
}

}  // namespace gossamer
