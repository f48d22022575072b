#include "runtime/membership/topology_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/real_loop.h"
#include "runtime/base/rng.h"
#include "runtime/membership/protocol.h"
#include "runtime/membership/view_message.h"

namespace gossamer {
namespace {

// While everybody waits for the view, or for the fleet to agree on its end.
constexpr absl::Duration kEagerInterval = absl::Milliseconds(200);
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLastRetry = absl::Seconds(5);

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  // Identity only: the parsers of compressed messages have had bombs.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // Reconnecting must not be slower than the retries here.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

absl::Status ToAbsl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

// The service has understood and said no; asking again will not help.
bool IsFinal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

std::string ToBytes(const std::vector<double>& sketch) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(sketch.data()),
          sketch.size() * sizeof(double)};
}

}  // namespace

// gRPC's threads see this and the loop, never the client.
// Blocking calls on a thread of their own, one after the other.  gRPC 1.51's
// callback API is the obvious choice, but now and then it fails an assertion
// of its own when a call's last reference goes while its callback returns.
struct TopologyClient::Calls {
  Calls(const std::string& address, EventLoop* loop)
      : stub(wire::Topology::NewStub(MakeChannel(address))), thread(loop) {}

  template <typename Request, typename Response>
  struct Call {
    grpc::ClientContext context;
    Request request;
    Response response;
    grpc::Status status;
  };

  // Calls `method`; `done(status, response)` runs on the loop unless the
  // client is gone by then.
  template <typename Request, typename Response, typename Done>
  void Start(absl::Duration deadline,
             grpc::Status (wire::Topology::Stub::*method)(grpc::ClientContext*,
                                                          const Request&,
                                                          Response*),
             Request request, Done done) {
    auto call = std::make_shared<Call<Request, Response>>();
    call->request = std::move(request);
    call->context.set_deadline(gpr_time_from_millis(
        absl::ToInt64Milliseconds(deadline), GPR_TIMESPAN));
    // May be cancelled from the loop at any time.
    current = std::shared_ptr<grpc::ClientContext>(call, &call->context);
    thread.Run(
        [this, call, method] {
          call->status = (stub.get()->*method)(&call->context, call->request,
                                               &call->response);
        },
        [weak = std::weak_ptr<bool>(alive), call, done] {
          if (weak.lock()) done(ToAbsl(call->status), call->response);
        });
  }

  const std::unique_ptr<wire::Topology::Stub> stub;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  std::shared_ptr<grpc::ClientContext> current;  // the last call's
  ThreadCompute thread;  // ends first: its work uses the stub
};

TopologyClient::TopologyClient(TopologyClientOptions options, EventLoop* loop)
    : options_(std::move(options)),
      loop_(loop),
      calls_(std::make_unique<Calls>(options_.service, loop)) {}

TopologyClient::~TopologyClient() {
  on_finished_ = nullptr;
  End();
  calls_->alive.reset();
  if (calls_->current) calls_->current->TryCancel();
}

void TopologyClient::Start() {
  if (phase_ != Phase::kIdle) return;
  phase_ = Phase::kRegistering;
  Send();
}

void TopologyClient::SetOnChange(std::function<void()> on_change) {
  on_change_ = std::move(on_change);
}

void TopologyClient::AcknowledgeStop(uint64_t round) {
  if (acknowledged_stop_ == round) return;
  acknowledged_stop_ = round;
  SendSoon();
}

void TopologyClient::RequestStop() {
  if (stop_requested_) return;
  stop_requested_ = true;
  SendSoon();
}

void TopologyClient::Report(const PeerReport& report) {
  const bool keep =
      report.sketch.empty() ||
      (!report_.sketch.empty() && std::countr_zero(report.sketch_round) <
                                      std::countr_zero(report_.sketch_round));
  std::vector<double> sketch = std::move(report_.sketch);
  const uint64_t sketch_round = report_.sketch_round;
  report_ = report;
  if (!keep) return;
  report_.sketch = std::move(sketch);
  report_.sketch_round = sketch_round;
}

void TopologyClient::Finish(absl::Duration limit, EventLoop::Callback done) {
  if (finished_) return;
  finished_ = true;
  on_finished_ = std::move(done);
  if (phase_ != Phase::kRegistered) {
    loop_->Post([weak = std::weak_ptr<bool>(calls_->alive), this] {
      if (weak.lock()) End();
    });
    return;
  }
  finish_timer_ = loop_->RunAt(loop_->Now() + limit, [this] {
    finish_timer_ = {};
    End();
  });
  SendSoon();
}

// Nothing is sent any more; whoever waits for Finish() goes on.
void TopologyClient::End() {
  phase_ = Phase::kEnded;
  for (EventLoop::TimerId* timer : {&timer_, &finish_timer_}) {
    if (*timer != EventLoop::TimerId{}) loop_->Cancel(*timer);
    *timer = {};
  }
  if (on_finished_) std::exchange(on_finished_, nullptr)();
}

void TopologyClient::Send() {
  if (in_flight_) {
    send_again_ = true;
    return;
  }
  if (phase_ == Phase::kRegistering) SendRegister();
  if (phase_ == Phase::kRegistered) SendHeartbeat();
}

void TopologyClient::SendAt(absl::Time when) {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
  timer_ = loop_->RunAt(when, [this] {
    timer_ = {};
    Send();
  });
}

void TopologyClient::SendSoon() {
  if (phase_ == Phase::kRegistered) SendAt(loop_->Now());
}

void TopologyClient::SendRegister() {
  wire::RegisterRequest request;
  request.set_protocol_version(kControlProtocolVersion);
  request.set_run_id(options_.run_id);
  request.set_peer_id(options_.peer_id.value);
  request.set_boot_id(options_.boot_id);
  request.set_address(options_.address);
  request.set_layout_fingerprint(options_.layout_fingerprint);
  request.set_configuration_hash(options_.configuration_hash);
  for (uint64_t round : options_.checkpoint_rounds) {
    request.add_checkpoint_rounds(round);
  }
  in_flight_ = true;
  calls_->Start<wire::RegisterRequest, wire::RegisterResponse>(
      options_.call_deadline, &wire::Topology::Stub::Register,
      std::move(request),
      [this](const absl::Status& status,
             const wire::RegisterResponse& response) {
        OnRegistered(status, response);
      });
}

void TopologyClient::OnRegistered(const absl::Status& status,
                                  const wire::RegisterResponse& response) {
  in_flight_ = false;
  if (phase_ != Phase::kRegistering) return;
  if (!status.ok()) {
    IsFinal(status) ? Refused(status) : Retry(status);
    return;
  }
  SetReachable(absl::OkStatus());
  options_.peer_id = {response.peer_id()};
  registered_ = response.registered();
  expected_ = response.expected();
  heartbeat_ =
      absl::Seconds(std::clamp(response.heartbeat_seconds(), 0.01, 60.0));
  phase_ = Phase::kRegistered;
  SendAt(loop_->Now());
  if (on_change_) on_change_();
}

wire::HeartbeatRequest TopologyClient::MakeHeartbeat() const {
  wire::HeartbeatRequest request;
  request.set_run_id(options_.run_id);
  request.set_peer_id(options_.peer_id.value);
  request.set_boot_id(options_.boot_id);
  request.set_view_generation(view_.generation);
  request.set_view_epoch(view_.epoch);
  request.set_round(report_.round);
  request.set_steps(report_.steps);
  request.set_rounds_per_second(report_.rounds_per_second);
  request.set_busy_seconds(report_.tempo.busy_seconds);
  request.set_exchange_seconds(report_.tempo.exchange_seconds);
  request.set_tempo_rounds(report_.tempo.rounds);
  request.set_generator_loss(report_.generator_loss);
  request.set_discriminator_loss(report_.discriminator_loss);
  if (report_.score) request.set_score(*report_.score);
  request.set_bytes_sent(report_.bytes_sent);
  request.set_sketch(ToBytes(report_.sketch));
  request.set_sketch_round(report_.sketch_round);
  request.set_round_begun(begun_);
  request.set_acknowledged_stop(acknowledged_stop_);
  request.set_request_stop(stop_requested_);
  request.set_finished(finished_);
  return request;
}

void TopologyClient::SendHeartbeat() {
  wire::HeartbeatRequest request = MakeHeartbeat();
  report_.sketch.clear();
  in_flight_ = true;
  calls_->Start<wire::HeartbeatRequest, wire::HeartbeatResponse>(
      options_.call_deadline, &wire::Topology::Stub::Heartbeat,
      std::move(request),
      [this, finished = finished_](const absl::Status& status,
                                   const wire::HeartbeatResponse& response) {
        OnHeartbeat(status, response, finished);
      });
}

void TopologyClient::OnHeartbeat(const absl::Status& status,
                                 const wire::HeartbeatResponse& response,
                                 bool finished) {
  in_flight_ = false;
  if (phase_ != Phase::kRegistered) return;
  if (status.code() == absl::StatusCode::kNotFound && view_.epoch == 0) {
    // The service has lost the registration before it led to a view.
    phase_ = Phase::kRegistering;
    Retry(status);
    return;
  }
  if (!status.ok()) {
    IsFinal(status) ? Refused(status) : Retry(status);
    return;
  }
  if (finished) {
    End();
    return;
  }
  SetReachable(absl::OkStatus());
  Learn(response);
  if (phase_ != Phase::kRegistered) return;
  const bool again = std::exchange(send_again_, false);
  // A timer that is set already is an earlier one: SendSoon() of a callback.
  if (timer_ == EventLoop::TimerId{}) {
    SendAt(loop_->Now() + (again ? absl::ZeroDuration() : Interval()));
  }
}

void TopologyClient::Learn(const wire::HeartbeatResponse& response) {
  registered_ = response.registered();
  expected_ = response.expected();
  if (response.fleet_round() > 0) fleet_round_ = response.fleet_round();
  if (response.fleet_busy_seconds() > 0) {
    fleet_busy_ = response.fleet_busy_seconds();
  }
  stop_ = {.round = response.stop_round(),
           .committed = response.stop_committed()};
  if (response.has_view()) {
    absl::StatusOr<View> view = FromMessage(response.view());
    if (!view.ok()) {
      Refused(view.status());
      return;
    }
    if (view->run_id == options_.run_id && view->NewerThan(view_) &&
        view->RankOf(options_.peer_id)) {
      view_ = *std::move(view);
    }
  }
  if (on_change_) on_change_();
}

absl::Duration TopologyClient::Interval() const {
  const bool eager = view_.epoch == 0 || (stop_.round != 0 && !stop_.committed);
  return eager ? std::min(heartbeat_, kEagerInterval) : heartbeat_;
}

// Exponential, with jitter so that a fleet does not come back in one instant.
void TopologyClient::Retry(const absl::Status& why) {
  SetReachable(why);
  const absl::Duration full = std::min(
      kLastRetry, kFirstRetry * (1 << std::min<uint64_t>(failures_, 6)));
  const double jitter =
      RngKey(options_.boot_id).Fold("retry").Uniform(failures_++);
  send_again_ = false;
  SendAt(loop_->Now() + full * (0.5 + 0.5 * jitter));
}

void TopologyClient::SetReachable(const absl::Status& status) {
  if (status.ok()) failures_ = 0;
  if (reachable_ == status.ok()) return;
  reachable_ = status.ok();
  if (!on_service_) return;
  if (status.ok()) {
    on_service_(status);
    return;
  }
  on_service_(absl::Status(
      status.code(),
      absl::StrCat("no answer from the topology service at ", options_.service,
                   " (", status.message(), "); ",
                   view_.epoch == 0 ? "waiting for it"
                                    : "going on with the last view")));
}

void TopologyClient::Refused(const absl::Status& why) {
  End();
  if (on_refused_) on_refused_(why);
}

}  // namespace gossamer
