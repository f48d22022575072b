#include "runtime/sim/sim_service.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gossamer::simulation {
namespace {

// The least deadline of MakeGrpcTopologyCalls: one call that hangs must not
// cost a lease.
constexpr absl::Duration kCallDeadline = absl::Seconds(2);
// The tick of gossamer-topology (runtime/service/main.cc).
constexpr absl::Duration kTick = absl::Milliseconds(200);
// The share of the service's starts whose clock is behind all others'.
constexpr double kWrongClocks = 0.25;

// Returns whether a backup knows enough of the present.  A backup from before a
// member joined or was evicted does not: the edges of that time are gone.  If
// no peer may join under way, a backup from before the view does not either: a
// peer without that view would be refused, and the others wait for it.
bool KnowsAll(const FleetRecord& backup, const FleetRecord& now, bool elastic) {
  if (backup.counts.removals != now.counts.removals ||
      (!elastic && backup.view.epoch != now.view.epoch) ||
      backup.members.size() != now.members.size()) {
    return false;
  }
  for (size_t i = 0; i < now.members.size(); ++i) {
    if (backup.members[i].id != now.members[i].id ||
        backup.members[i].standing != now.members[i].standing) {
      return false;
    }
  }
  return true;
}

}  // namespace

// Makes one call at a time, as the client does; a new call drops the one
// before.
class SimService::Calls final : public TopologyCalls {
 public:
  Calls(SimService* service, VirtualPeerLoop* loop, CrashPoint* crash)
      : service_(service), loop_(loop), crash_(crash) {}

  void Register(wire::RegisterRequest request,
                Done<wire::RegisterResponse> done) override {
    Start(&ControlPlane::Register, std::move(request), std::move(done));
  }
  void Heartbeat(wire::HeartbeatRequest request,
                 Done<wire::HeartbeatResponse> done) override {
    Start(&ControlPlane::Heartbeat, std::move(request), std::move(done));
  }

 private:
  template <typename Request, typename Response>
  void Start(absl::Status (ControlPlane::*method)(const Request&, Response&),
             Request request, Done<Response> done) {
    // The deadline and the answer race; the first one counts.
    auto answered = std::make_shared<bool>(false);
    const std::weak_ptr<bool> alive = alive_;
    // The function runs on the peer's loop, once.
    auto answer = [this, alive, answered, done = std::move(done)](
                      absl::Duration after, absl::Status status,
                      Response response,
                      std::shared_ptr<wire::ViewMessage> view) {
      loop_->RunAt(
          loop_->Now() + after,
          [alive, answered, done, status = std::move(status),
           response = std::move(response), view = std::move(view)]() mutable {
            if (alive.expired() || *answered) return;
            *answered = true;
            Lend(view.get(), response);
            done(status, response);
            TakeBack(response);
          });
    };
    answer(kCallDeadline, absl::DeadlineExceededError("no answer in time"), {},
           nullptr);
    const PeerId peer{request.peer_id()};
    // A call that is lost on its way never reaches the service; the deadline
    // answers.
    if (!crash_->CountEffect() || service_->Lost()) return;
    if (service_->deaf_to_.contains(peer)) return;
    const absl::Duration latency = service_->options_.latency;
    service_->loop_.RunAt(
        service_->loop_.Now() + latency,
        [service = service_, alive, method, latency, peer,
         request = std::move(request), answer = std::move(answer)] {
          Response response;
          absl::Status status = absl::UnavailableError("connection refused");
          if (service->plane_) {
            status = (service->plane_.get()->*method)(request, response);
            service->OnAnswered(request, status);
            service->Watch();
          }
          // An answer that is lost leaves the service changed: the client must
          // be able to ask again.
          if (alive.expired() || service->Lost()) return;
          if (service->mute_to_.contains(peer)) return;
          auto view = service->TakeView(response);
          answer(latency, std::move(status), std::move(response),
                 std::move(view));
        });
  }

  // The answer has the view, and does not own it, until it is taken back.
  static void Lend(wire::ViewMessage* view, wire::HeartbeatResponse& answer) {
    if (view != nullptr) answer.unsafe_arena_set_allocated_view(view);
  }
  static void TakeBack(wire::HeartbeatResponse& answer) {
    (void)answer.unsafe_arena_release_view();
  }
  static void Lend(wire::ViewMessage*, wire::RegisterResponse&) {}
  static void TakeBack(wire::RegisterResponse&) {}

  SimService* const service_;
  VirtualPeerLoop* const loop_;
  CrashPoint* const crash_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

SimService::SimService(VirtualLoop* loop, SimServiceOptions options, Log log,
                       Log violation)
    : loop_(loop),
      options_(std::move(options)),
      log_(std::move(log)),
      violation_(std::move(violation)),
      key_(RngKey(options_.seed).Fold("service")) {
  loop_.RunAt(loop_.Now() + kTick, [this] { Tick(); });
}

void SimService::Count(std::string_view fault) const {
  if (options_.on_fault) options_.on_fault(fault);
}

bool SimService::Lost() {
  if (key_.Fold("loss").Uniform(calls_++) >= loss_) return false;
  Count("lost_calls");
  return true;
}

// Starts the service.  A record from before the first view knows no training
// peer; the peers report that they train.
absl::Status SimService::Start(bool old) {
  // A disk that is restored from a backup is an ordinary fault; one that no
  // fleet could survive is not drawn.
  if (old && backup_ && disk_ &&
      (backup_->view.epoch == 0
           ? MayForget()
           : KnowsAll(*backup_, *disk_, options_.fleet.elastic))) {
    log_("starts from an old disk");
    Count("old_service_disks");
    disk_ = backup_;
  }
  // A year back, so that any use of a wall clock across a restart shows: leases
  // and epochs have to bear it.
  clock_error_ = key_.Fold("clock").Uniform(starts_) < kWrongClocks
                     ? -absl::Hours(24 * 365)
                     : absl::ZeroDuration();
  // Each incarnation draws a key, and uses it if its disk has none.
  FleetOptions fleet_options = options_.fleet;
  fleet_options.mac_key = absl::StrCat(key_.Fold("mac").Bits(starts_));
  ++starts_;
  absl::StatusOr<std::unique_ptr<ControlPlane>> plane = ControlPlane::Create(
      std::move(fleet_options), disk_,
      [this](const FleetRecord& record) {
        // A failed save must leave the answer ungiven, which the control plane
        // has to see to.
        if (key_.Fold("save").Uniform(saves_++) < disk_error_) {
          Count("service_disk_errors");
          return absl::ResourceExhaustedError("state: no space left on device");
        }
        disk_ = record;
        return absl::OkStatus();
      },
      [this] { return loop_.Now() + clock_error_; }, log_);
  if (!plane.ok()) return plane.status();
  plane_ = *std::move(plane);
  answered_view_ = nullptr;  // a name is of one view in one incarnation
  if (options_.observer) {
    options_.observer->Started(fleet()->record(), loop_.Now());
  }
  watched_version_ = fleet()->version();
  return absl::OkStatus();
}

// Returns whether the record may be lost.  If no peer may join under way, it
// may not while a peer has not heard of the view: the peer would be refused,
// and the others wait for it.
bool SimService::MayForget() const {
  if (options_.fleet.elastic || !disk_ || disk_->view.epoch == 0) return true;
  return std::ranges::all_of(disk_->members, [this](const MemberRecord& m) {
    const auto known = views_known_.find({m.incarnation_id, disk_->view.epoch});
    return known != views_known_.end();
  });
}

std::shared_ptr<wire::ViewMessage> SimService::TakeView(
    wire::HeartbeatResponse& answer) {
  if (!answer.has_view()) return nullptr;
  const auto name = [](const wire::ViewMessage& v) {
    return std::tuple(v.generation(), v.epoch(), v.resume_round());
  };
  if (answered_view_ == nullptr ||
      name(*answered_view_) != name(answer.view())) {
    answered_view_ =
        std::make_shared<wire::ViewMessage>(std::move(*answer.mutable_view()));
  }
  answer.clear_view();
  return answered_view_;
}

void SimService::LoseDisk() {
  if (!MayForget()) return;
  log_("loses its disk");
  disk_.reset();
}

void SimService::ReportMembers() const {
  if (!plane_) return;
  for (const MemberRecord& m : fleet()->record().members) {
    log_(absl::StrFormat("peer %d: standing %d%s%s%s, resumes from %d",
                         m.id.value, static_cast<int>(m.standing),
                         m.in_view ? ", in the view" : "",
                         m.needs_parameters ? ", needs parameters" : "",
                         m.finished ? ", finished" : "", m.resume_round));
  }
}

// The observer hears also of a call that could not be saved: the service has
// seen it.
void SimService::OnAnswered(const wire::RegisterRequest& request,
                            const absl::Status& status) {
  if (options_.observer && (status.ok() || absl::IsUnavailable(status))) {
    options_.observer->Registered(request, loop_.Now());
  }
}

void SimService::OnAnswered(const wire::HeartbeatRequest& request,
                            const absl::Status& status) {
  if (status.ok() || absl::IsUnavailable(status)) {
    if (options_.observer) options_.observer->Heard(request, loop_.Now());
    views_known_.emplace(request.incarnation_id(), request.view_epoch());
  }
}

void SimService::Watch() {
  // The observer looks at changes only: most heartbeats change nothing.
  if (fleet()->version() == watched_version_) return;
  watched_version_ = fleet()->version();
  if (!options_.observer) return;
  const std::string wrong =
      options_.observer->Changed(fleet()->record(), loop_.Now());
  if (!wrong.empty() && violation_) violation_(wrong);
}

void SimService::Tick() {
  if (plane_) {
    plane_->Tick();
    Watch();
  }
  loop_.RunAt(loop_.Now() + kTick, [this] { Tick(); });
}

void SimService::RequestStop() {
  wire::StopResponse response;
  if (plane_) plane_->Stop({}, response).IgnoreError();
}

std::unique_ptr<TopologyCalls> SimService::Connect(VirtualPeerLoop* loop,
                                                   CrashPoint* crash) {
  return std::make_unique<Calls>(this, loop, crash);
}

}  // namespace gossamer::simulation
