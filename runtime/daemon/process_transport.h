// The ways from a peer process to its neighbours: the transport that it listens
// on, and NCCL where the peer computes on a GPU.
//
// Reports what happens on them.  This header knows nothing of what travels.

#ifndef GOSSAMER_RUNTIME_DAEMON_PROCESS_TRANSPORT_H_
#define GOSSAMER_RUNTIME_DAEMON_PROCESS_TRANSPORT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "algorithms/base/ids.h"
#include "algorithms/kernels/device_queue.h"
#include "runtime/base/real_loop.h"
#include "runtime/daemon/process_reports.h"
#include "runtime/transport/nccl/nccl_sum.h"
#include "runtime/transport/nccl/nccl_transport.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/transport_factory.h"
#include "topology/view.h"

namespace gossamer {

// Used on the loop, or while it does not run.
class ProcessTransport {
 public:
  // The pointers outlive it.  `has_member` says whether the view has a peer.
  ProcessTransport(RealLoop* loop, ProcessReports* reports,
                   std::function<bool(PeerId)> has_member)
      : loop_(loop), reports_(reports), has_member_(std::move(has_member)) {}
  ProcessTransport(const ProcessTransport&) = delete;
  ProcessTransport& operator=(const ProcessTransport&) = delete;

  // Makes the transport of that name; `options` lacks only where its reports
  // go.  `others`: the neighbours that a run begins with, of which it warns if
  // their connections do not fit.  Errors of MakeTransport.  Once.
  absl::Status Listen(std::string_view name, TransportOptions options,
                      size_t others);
  // Makes nccl_sum(), if the options of Listen name a device with NCCL. `queue`
  // is the one of the vectors.
  void OpenNcclSum(const DeviceQueue& queue);
  // Has NCCL connect the edges of a view, if there is a transport that uses it.
  void Prepare(const View& view);
  // Writes a line on what NCCL has brought, if it is used.
  void LogNccl() const;
  // Destroys all; nothing that uses it may be left.
  void Close();

  // Null before Listen.
  Transport* transport() const { return transport_.get(); }
  // The exact means of a centralized run; null: NCCL brings none.
  NcclSum* nccl_sum() const { return nccl_sum_.get(); }
  // The port that it listens on; 0: none yet.
  int port() const { return port_; }

 private:
  void ReportTo(TransportOptions& options);

  RealLoop* const loop_;
  ProcessReports* const reports_;
  const std::function<bool(PeerId)> has_member_;
  PeerId self_;
  NcclApi* api_ = nullptr;
  NcclDevice* device_ = nullptr;
  std::unique_ptr<Transport> transport_;
  NcclTransport* nccl_ = nullptr;  // transport_, if it uses NCCL
  std::unique_ptr<NcclSum> nccl_sum_;
  int port_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_PROCESS_TRANSPORT_H_
