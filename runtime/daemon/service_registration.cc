#include "runtime/daemon/service_registration.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace gossamer {
namespace {

// The time for its next round that a refused process has.
constexpr absl::Duration kRefusedFor = absl::Seconds(10);

}  // namespace

void ServiceRegistration::RequestStop() {
  stop_requested_ = true;
  EndUnlessRegistered();
  if (client_ == nullptr) return;
  reports_->Log("stopping: the fleet agrees on a last round");
  client_->RequestStop();
}

void ServiceRegistration::EndUnlessRegistered() {
  to_end_ = true;
  waiter_->Notify();
}

void ServiceRegistration::OnRefused(const absl::Status& why) {
  refused_ = why;
  // Nobody waits for anything of a process that another one has replaced, or
  // that is not admitted any longer.  Others stop at their next round.
  const bool nobody_waits =
      absl::IsAborted(why) || absl::IsPermissionDenied(why);
  ends_by_ = loop_->Now() + (nobody_waits ? absl::ZeroDuration() : kRefusedFor);
  waiter_->Notify();
  reports_->Report("service_refused", std::string(why.message()));
  reports_->Log(
      absl::StrCat("refused by the topology service: ", why.message()));
}

void ServiceRegistration::Listen(const std::string& service,
                                 std::function<void()> on_change) {
  client_->Observe(this, [this, on_change = std::move(on_change)] {
    on_change();
    waiter_->Notify();
  });
  client_->SetOnRefused([this](const absl::Status& why) { OnRefused(why); });
  client_->SetOnViewRefused([this](const absl::Status& why) {
    reports_->Log(absl::StrCat("topology service: refused ", why.message(),
                               "; going on with the last one"));
    reports_->ReportRefused("view_refused", {}, why);
  });
  client_->SetOnService([this, service](const absl::Status& status) {
    const std::string why(status.message());
    if (status.ok()) {
      reports_->Report("service_found", "at " + service);
      reports_->Log("topology service: connected");
    } else {
      reports_->Report("service_lost", why);
      reports_->Log(absl::StrCat("topology service: ", why, "; trying again"));
    }
  });
}

Task<absl::Status> ServiceRegistration::Run(
    TopologyClientOptions options, std::unique_ptr<TopologyCalls> calls,
    absl::Duration timeout, std::function<void()> on_change) {
  const std::string service = options.service;
  client_ = std::make_unique<TopologyClient>(std::move(options), loop_,
                                             std::move(calls));
  Listen(service, std::move(on_change));
  // The request came before there was a client.
  if (stop_requested_) client_->RequestStop();
  client_->Start();
  co_await waiter_->Until(
      [this] {
        return registered() || may_resume() || !refused_.ok() || to_end_;
      },
      loop_->Now() + timeout);
  if (!refused_.ok()) co_return refused_;
  if (!registered() && to_end_) {
    reports_->Log("ended before the topology service had answered");
    co_return absl::OkStatus();
  }
  if (may_resume()) {
    reports_->Log(absl::StrCat("no answer from the topology service at ",
                               service, "; asking the members of view ",
                               client_->last_view()->epoch,
                               " whether they train"));
    co_return absl::OkStatus();
  }
  if (!registered()) {
    co_return absl::UnavailableError(
        absl::StrCat("no answer from the topology service at ", service,
                     " for ", absl::FormatDuration(timeout),
                     "; is gossamer-topology running there?"));
  }
  // The service has given an id to a peer that asked without one.
  reports_->SetSelf(client_->peer_id());
  reports_->Log(absl::StrCat("registered as peer ", client_->peer_id().value,
                             " (", client_->registered(), " of ",
                             client_->expected(), ")"));
  co_return absl::OkStatus();
}

}  // namespace gossamer
