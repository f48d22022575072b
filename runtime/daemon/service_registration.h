// The standing of a peer process with the topology service: it registers, and
// where the service refuses it for good it says until when it may go on.
//
// Owns the client that the peer has as its membership.  This header knows
// nothing of what the peer trains or of how calls travel.

#ifndef GOSSAMER_RUNTIME_DAEMON_SERVICE_REGISTRATION_H_
#define GOSSAMER_RUNTIME_DAEMON_SERVICE_REGISTRATION_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/daemon/process_reports.h"
#include "runtime/membership/topology_client.h"
#include "runtime/peer/waiter.h"

namespace gossamer {

// Used on the loop.
class ServiceRegistration {
 public:
  // The pointers outlive it.  `waiter` is the process's, notified of every
  // change here.
  ServiceRegistration(EventLoop* loop, Waiter* waiter, ProcessReports* reports)
      : loop_(loop), waiter_(waiter), reports_(reports) {}
  ServiceRegistration(const ServiceRegistration&) = delete;
  ServiceRegistration& operator=(const ServiceRegistration&) = delete;

  // Creates the client and registers; returns within `timeout`.  OK:
  // registered, may resume from the last view, or asked to end (see
  // registered(), may_resume()).  kUnavailable: no answer.  Else refused().
  // `on_change` runs whenever the view or anything else of the membership may
  // have changed.  Called once.
  Task<absl::Status> Run(TopologyClientOptions options,
                         std::unique_ptr<TopologyCalls> calls,
                         absl::Duration timeout,
                         std::function<void()> on_change);
  // Destroys the client; nothing that uses it may be left.
  void Close() { client_.reset(); }

  // Null before Run and after Close.
  TopologyClient* client() const { return client_.get(); }
  bool registered() const { return client_ && client_->registered() != 0; }
  // It is not, and there is a view to resume from if others train by it.
  bool may_resume() const { return client_ && client_->last_view() != nullptr; }
  // Whether the view has this peer; false before there is one.
  bool HasMember(PeerId peer) const {
    return client_ && client_->view().RankOf(peer);
  }
  // Asks the fleet to stop, now or once there is a client.
  void RequestStop();
  // The process is to end: it waits for no first answer of the service, because
  // nobody else has to learn of a peer that the service does not know.
  void EndUnlessRegistered();

  // OK unless the service has refused the peer for good.
  const absl::Status& refused() const { return refused_; }
  // The process ends by then, whatever it waits for; InfiniteFuture unless it
  // is refused.
  absl::Time ends_by() const { return ends_by_; }

 private:
  void Listen(const std::string& service, std::function<void()> on_change);
  void OnRefused(const absl::Status& why);

  EventLoop* const loop_;
  Waiter* const waiter_;
  ProcessReports* const reports_;
  std::unique_ptr<TopologyClient> client_;
  bool stop_requested_ = false;
  bool to_end_ = false;
  absl::Status refused_;
  absl::Time ends_by_ = absl::InfiniteFuture();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_SERVICE_REGISTRATION_H_
