#include "runtime/service/topology_service.h"

#include <openssl/rand.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/plain_text.h"
#include "algorithms/base/status_macros.h"
#include "runtime/membership/view_signature.h"
#include "runtime/transport/grpc/grpc_status.h"
#include "runtime/transport/grpc/socket_names.h"
#include "runtime/transport/grpc/socket_tuning.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// The most connections, half of them of one host, on which no caller has proved
// yet to be of the run.  A fleet on one machine opens as many at once as it has
// peers.
constexpr size_t kMaxUnauthenticated = 1024;

// The calls that one connection may have under way.
constexpr int kMaxStreams = 16;

// The time for TLS, and that for HTTP/2 to begin.
constexpr absl::Duration kHandshakeTime = absl::Seconds(10);

absl::StatusOr<std::string> RandomKey() {
  unsigned char key[32];
  if (RAND_bytes(key, sizeof(key)) != 1) {
    return absl::InternalError("OpenSSL has no random numbers");
  }
  return std::string(reinterpret_cast<const char*>(key), sizeof(key));
}

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

TopologyService::TopologyService(
    FleetOptions options, std::unique_ptr<Store> store, Clock clock, Log log,
    std::shared_ptr<CertificateFolder> certificates)
    : options_(std::move(options)),
      store_(std::move(store)),
      clock_(std::move(clock)),
      log_(std::move(log)),
      events_(std::make_shared<ServiceEvents>(log_)),
      certificates_(std::move(certificates)),
      limiter_(std::make_shared<ConnectionLimiter>(
          kMaxUnauthenticated, ConnectionLimiter::kMaxPerIdentity,
          ConnectionLimiter::kBanTime,
          certificates_ == nullptr ? 1 : TlsGate::kDescriptors)),
      guard_(std::make_shared<FloodGuard>(
          kMaxStreams * static_cast<size_t>(max_request_bytes()), limiter_)) {}

absl::StatusOr<std::unique_ptr<TopologyService>> TopologyService::Create(
    FleetOptions options, std::unique_ptr<Store> store, Clock clock, Log log,
    std::shared_ptr<CertificateFolder> certificates) {
  if (certificates != nullptr) {
    const Identity self{
        .run = options.run_id, .role = Role::kTopology, .peer = {}};
    if (certificates->identity() != self) {
      return absl::InvalidArgumentError(
          absl::StrCat("--certs: they are of ", ToUri(certificates->identity()),
                       ", and this is ", ToUri(self)));
    }
  }
  if (certificates == nullptr) {
    GOSSAMER_ASSIGN_OR_RETURN(options.mac_key, RandomKey());
  }
  // A schedule that cannot be is refused at the start, not once this instance
  // is needed.
  GOSSAMER_RETURN_IF_ERROR(CheckFleetSize(options, options.expected));
  std::unique_ptr<TopologyService> service(new TopologyService(
      std::move(options), std::move(store), std::move(clock), std::move(log),
      std::move(certificates)));
  const absl::Status active = service->TakeOver();
  if (absl::IsAlreadyExists(active)) {
    service->StandBy(active);
  } else if (!active.ok()) {
    return active;
  }
  return service;
}

absl::Status TopologyService::TakeOver() {
  // The right to save comes before the state is read: another instance might
  // change it in between.
  GOSSAMER_RETURN_IF_ERROR(store_->Acquire());
  GOSSAMER_ASSIGN_OR_RETURN(std::optional<FleetRecord> stored, store_->Load());
  GOSSAMER_ASSIGN_OR_RETURN(
      std::unique_ptr<ControlPlane> plane,
      ControlPlane::Create(
          options_, std::move(stored),
          [this](const FleetRecord& record) { return store_->Save(record); },
          clock_, log_, events_,
          certificates_ == nullptr
              ? SignView()
              : [this](wire::ViewMessage&
                           view) { return Sign(*certificates_, view); }));
  MutexLock lock(&mu_);
  if (!stands_by_.ok()) events_->Report("active", "this instance serves now");
  stands_by_ = absl::OkStatus();
  plane_ = std::move(plane);
  serials_.clear();  // another instance may have heard newer ones
  return absl::OkStatus();
}

void TopologyService::StandBy(const absl::Status& why) {
  MutexLock lock(&mu_);
  // From here on the state may be out of date: another instance may decide.
  plane_.reset();
  // The reason why the active instance is unknown varies from one attempt to
  // the next.
  const bool news = absl::IsAlreadyExists(why)
                        ? stands_by_ != why
                        : stands_by_.ok() || absl::IsAlreadyExists(stands_by_);
  if (news) events_->Report("stands_by", std::string(why.message()));
  stands_by_ = why;
}

void TopologyService::ReportTrust() {
  if (certificates_ == nullptr) return;
  const std::string problem = certificates_->Problem();
  MutexLock lock(&mu_);
  if (!problem.empty() && problem != trust_problem_) {
    events_->Report("trust_unread", problem);
  }
  trust_problem_ = problem;
  const std::string expiry = certificates_->TakeExpiryWarning();
  if (!expiry.empty()) events_->Report("certificate_expires", expiry);
}

void TopologyService::NoteSerial(const grpc::CallbackServerContext& context,
                                 const absl::StatusOr<Certificate>& caller) {
  if (certificates_ == nullptr) return;
  if (caller.ok()) {
    if (caller->identity.role != Role::kPeer) return;
    // A certificate that was accepted counts for what it names.
    serials_[caller->identity.peer] = caller->serial;
    return;
  }
  const absl::StatusOr<std::string> pem = ShownBy(context);
  if (!pem.ok()) return;
  const absl::StatusOr<Certificate> shown = ReadCertificate(*pem);
  if (!shown.ok() || shown->identity.role != Role::kPeer ||
      shown->identity.run != options_.run_id) {
    return;
  }
  // A refused one counts only for a peer that no accepted one is known of: the
  // old certificate of a peer that has a new one must not have it evicted.
  serials_.try_emplace(shown->identity.peer, shown->serial);
}

// Evicts members whose certificates are revoked.  Neighbours without the newest
// list would mix with them for as long as a view has them.
void TopologyService::EvictRevoked() {
  if (certificates_ == nullptr) return;
  const std::vector<std::string> revoked = certificates_->Revoked();
  MutexLock lock(&mu_);
  if (plane_ == nullptr) return;
  for (const auto& [peer, serial] : serials_) {
    if (!std::ranges::binary_search(revoked, serial)) continue;
    // This is repeated at each tick: the fleet may be unable to be without the
    // peer at the moment.
    plane_->Evict(
        peer, absl::StrCat("its certificate is revoked (serial ", serial, ")"));
  }
}

absl::StatusOr<TopologyService::Progress> TopologyService::Tick() {
  ReportFloods();
  ReportUnauthenticated();
  ReportTrust();
  EvictRevoked();
  const absl::Status held = store_->Held();
  bool was_active = false;
  {
    MutexLock lock(&mu_);
    was_active = plane_ != nullptr;
    // Held() is asked before the tick decides anything by the state.
    if (was_active && held.ok()) return plane_->Tick();
  }
  if (was_active) StandBy(held);
  const absl::Status active = TakeOver();
  if (active.ok()) return Progress();
  // Anything else is an error of the state itself, which waiting does not mend.
  if (!absl::IsAlreadyExists(active) && !absl::IsUnavailable(active)) {
    return active;
  }
  StandBy(active);
  return Progress();
}

absl::StatusOr<std::string> TopologyService::ShownBy(
    const grpc::CallbackServerContext& context) const {
  return shown_->Of(context.peer());
}

absl::StatusOr<Certificate> TopologyService::CallerOf(
    const grpc::CallbackServerContext& context) const {
  if (certificates_ == nullptr) return Certificate{};
  GOSSAMER_ASSIGN_OR_RETURN(const std::string pem, ShownBy(context));
  return certificates_->Check(pem);
}

absl::Status TopologyService::Authorize(
    const grpc::CallbackServerContext& context,
    const absl::StatusOr<Certificate>& caller, Call call, PeerId claimed,
    const std::string& run_id) {
  if (certificates_ == nullptr) return absl::OkStatus();
  const absl::Time now = clock_();
  absl::Status authorized = caller.status();
  if (caller.ok()) {
    authorized =
        access_.Check(caller->identity,
                      {.call = call,
                       .claimed = claimed,
                       .run_id = run_id,
                       .member = plane_->fleet().Has(caller->identity.peer)},
                      now);
  }
  // A connection that has ended is no refusal.
  if (authorized.ok() || absl::IsUnavailable(authorized)) return authorized;
  events_->ReportByTime("call_refused", now,
                        absl::StrCat("from ", PlainAddress(context.peer()),
                                     ": ", PlainText(authorized.message())));
  return authorized;
}

void TopologyService::ReportUnauthenticated() {
  const uint64_t refused = limiter_->refused();
  MutexLock lock(&mu_);
  events_->ReportByCount("strangers_refused", refused,
                         "connections so far: as many were open as may be on "
                         "which nobody had proved to be of the run, or their "
                         "host had flooded");
}

void TopologyService::ReportFloods() {
  for (const std::string& flood : guard_->TakeReports()) {
    MutexLock lock(&mu_);
    events_->ReportByTime("call_refused", clock_(), flood);
  }
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* TopologyService::Answer(
    grpc::CallbackServerContext* context, Call call, PeerId claimed,
    absl::Status (ControlPlane::*answer)(const Request&, Response&),
    const Request& request, Response& response) {
  absl::Status status;
  const absl::StatusOr<Certificate> caller = CallerOf(*context);
  if (caller.ok()) {
    // A caller that has proved to be of the run leaves its place among the
    // unauthenticated, whether or not this call is allowed.
    limiter_->MarkAuthenticated(context->peer(), certificates_ == nullptr
                                                     ? std::string()
                                                     : ToUri(caller->identity));
    if (const auto account = guard_->AccountOf(context->peer())) {
      account->CreditCall();
      account->CreditMessage(request.ByteSizeLong());
    }
  }
  {
    MutexLock lock(&mu_);
    status = stands_by_;
    if (status.ok()) {
      status = Authorize(*context, caller, call, claimed, request.run_id());
    }
    // A caller that may not make this call is not noted: it only claims to be
    // that peer.
    if (status.ok() || !caller.ok()) NoteSerial(*context, caller);
    if (status.ok()) status = (plane_.get()->*answer)(request, response);
    // The lease is looked at last: if it holds now, no other instance has
    // decided anything before this answer.
    const absl::Status held = stands_by_.ok() ? store_->Held() : stands_by_;
    if (!held.ok()) {
      status =
          absl::UnavailableError(absl::StrCat("stands by: ", held.message()));
    }
  }
  return Finish(context, status);
}

grpc::ServerUnaryReactor* TopologyService::Register(
    grpc::CallbackServerContext* context, const wire::RegisterRequest* request,
    wire::RegisterResponse* response) {
  // A view that this run's service has not signed is taken out of the request:
  // any peer could have made it.
  std::optional<wire::RegisterRequest> without;
  if (request->has_view() && certificates_ != nullptr &&
      !CheckView(*certificates_, request->view()).ok()) {
    without = *request;
    without->clear_view();
  }
  return Answer(context, Call::kRegister, {request->peer_id()},
                &ControlPlane::Register, without ? *without : *request,
                *response);
}

grpc::ServerUnaryReactor* TopologyService::Heartbeat(
    grpc::CallbackServerContext* context, const wire::HeartbeatRequest* request,
    wire::HeartbeatResponse* response) {
  return Answer(context, Call::kHeartbeat, {request->peer_id()},
                &ControlPlane::Heartbeat, *request, *response);
}

grpc::ServerUnaryReactor* TopologyService::GetStatus(
    grpc::CallbackServerContext* context, const wire::GetStatusRequest* request,
    wire::FleetStatus* response) {
  return Answer(context, Call::kGetStatus, {}, &ControlPlane::GetStatus,
                *request, *response);
}

grpc::ServerUnaryReactor* TopologyService::Stop(
    grpc::CallbackServerContext* context, const wire::StopRequest* request,
    wire::StopResponse* response) {
  return Answer(context, Call::kStop, {}, &ControlPlane::Stop, *request,
                *response);
}

grpc::ServerUnaryReactor* TopologyService::MeasureLinks(
    grpc::CallbackServerContext* context,
    const wire::MeasureLinksRequest* request,
    wire::LinkSurveyStatus* response) {
  return Answer(context, Call::kMeasure, {}, &ControlPlane::MeasureLinks,
                *request, *response);
}

absl::StatusOr<TopologyServer> StartTopologyServer(
    const std::string& listen, TopologyService* service,
    std::shared_ptr<CertificateFolder> certificates) {
  TopologyServer started;
  grpc::ServerBuilder builder;
  // No option of TCP matters for messages this small; limiter and guard do.
  const ServerSockets sockets = {.limiter = service->limiter(),
                                 .guard = service->guard()};
  if (certificates == nullptr) {
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(),
                             &started.port);
    AddTuning(sockets, &builder);
  } else {
    started.gate =
        std::make_unique<TlsGate>(std::move(certificates), service->shown(),
                                  sockets, kHandshakeTime, &builder);
    started.port = started.gate->Listen(listen);
  }
  builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(service->max_request_bytes());
  builder.SetMaxSendMessageSize(kMaxAnswerBytes);
  // A compressed message is inflated before any limit is checked.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                             1);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // Two servers on one port would each see half of the fleet.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  // Metadata is read before any handler sees the call.
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  // A caller that dawdles, opens too many streams or has gone is cut off.
  builder.AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(kHandshakeTime)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 15'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // Newer releases of gRPC go by this instead.  It is longer, since it holds
  // for pings, too, whose answers wait behind a large message on a slow link.
  builder.AddChannelArgument("grpc.http2.ping_timeout_ms", 30'000);
  service->guard()->Start();
  if (started.gate == nullptr || started.port != 0) {
    started.server = builder.BuildAndStart();
  }
  if (started.server == nullptr || started.port == 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", listen,
        ": the port is in use, or the address is not one of this machine; "
        "choose another with --listen (port 0 takes a free one)"));
  }
  if (started.gate != nullptr) started.gate->Start();
  return started;
}

}  // namespace gossamer
